// SPDX-License-Identifier: Apache-2.0
/// What an instruction of a vector program computes, on 32-bit words (docs/numerics.md, VECTOR).
/// Branch-free and always inlined, as scalar.h; operands that an instruction does not have are
/// ignored. b of SEGMENT is the bits of the last number of its table.
#pragma once

#include "npu_micro.h"
#include "scalar.h"

namespace npu::scalar {

inline constexpr std::uint32_t kOne = 0x3F80'0000;

[[gnu::always_inline]] inline float as_float(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

[[gnu::always_inline]] inline std::uint32_t div32(std::uint32_t a, std::uint32_t b) {
  return canonical(std::bit_cast<std::uint32_t>(as_float(a) / as_float(b)));
}

[[gnu::always_inline]] inline std::uint32_t sqrt32(std::uint32_t a) {
  return canonical(std::bit_cast<std::uint32_t>(__builtin_sqrtf(as_float(a))));
}

/// fp32 bits as an integer of the same order, -0 just below +0. Not for NaNs.
[[gnu::always_inline]] inline std::int32_t ordered(std::uint32_t bits) {
  const auto value = static_cast<std::int32_t>(bits);
  return value ^ ((value >> 31) & 0x7FFF'FFFF);
}

[[gnu::always_inline]] inline std::uint32_t fmax32(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t larger = ordered(a) > ordered(b) ? a : b;
  return (is_nan(a) | is_nan(b)) ? kFp32Nan : larger;
}

[[gnu::always_inline]] inline std::uint32_t fmin32(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t smaller = ordered(a) < ordered(b) ? a : b;
  return (is_nan(a) | is_nan(b)) ? kFp32Nan : smaller;
}

[[gnu::always_inline]] inline std::uint32_t int_to_float(std::uint32_t a) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(a)));
}

/// To int32, towards zero; beyond the range the nearest int32, NaN 0.
[[gnu::always_inline]] inline std::uint32_t float_to_int(float value) {
  const bool above = value >= 0x1p31F;
  const bool below = value < -0x1p31F;
  const bool inside = value >= -0x1p31F && value < 0x1p31F;  // no NaN
  const auto whole = static_cast<std::int32_t>(inside ? value : 0.0F);
  const std::uint32_t beyond = above ? 0x7FFF'FFFFU : (below ? kFp32Sign : 0U);
  return inside ? static_cast<std::uint32_t>(whole) : beyond;
}

/// To a whole number, to nearest even. From 2^23 on all are; below, the sum with 2^23 rounds there.
[[gnu::always_inline]] inline float round_even(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & ~kFp32Sign;
  const float rounded = (as_float(magnitude) + 0x1p23F) - 0x1p23F;
  const std::uint32_t small = std::bit_cast<std::uint32_t>(rounded) | (bits & kFp32Sign);
  return as_float(magnitude < 0x4B00'0000 ? small : bits);
}

/// |a|, but beyond the table's end its last number; a NaN is not beyond.
[[gnu::always_inline]] inline std::uint32_t segment_result(std::uint32_t a, std::uint32_t limit) {
  const std::uint32_t magnitude = a & ~kFp32Sign;
  return magnitude > limit && !is_nan(magnitude) ? limit : magnitude;
}

/// Where an element's row begins among kTableWords, and above it the sign of a.
[[gnu::always_inline]] inline std::uint32_t segment_place(std::uint32_t a, std::uint32_t first,
                                                          std::uint32_t shift, std::uint32_t last,
                                                          std::uint32_t row) {
  const std::uint32_t magnitude = a & ~kFp32Sign;
  const std::uint32_t above = (magnitude > first ? magnitude - first : 0) >> shift;
  const std::uint32_t index = above < last ? above : last;
  return (row + index) * isa::kTableColumns | (a & kFp32Sign);
}

template <isa::MicroOp kOp>
[[gnu::always_inline]] inline std::uint32_t micro(std::uint32_t a, std::uint32_t b,
                                                  std::uint32_t c) {
  using enum isa::MicroOp;
  const auto as_int = [](std::uint32_t word) { return static_cast<std::int32_t>(word); };
  switch (kOp) {
    case kMov:
      return a;
    case kFma:
      return fma32(a, b, c);
    case kDiv:
      return div32(a, b);
    case kSqrt:
      return sqrt32(a);
    case kFmax:
      return fmax32(a, b);
    case kFmin:
      return fmin32(a, b);
    case kFlt:
      return as_float(a) < as_float(b) ? 1 : 0;
    case kFle:
      return as_float(a) <= as_float(b) ? 1 : 0;
    case kFeq:
      return as_float(a) == as_float(b) ? 1 : 0;
    case kSel:
      return a != 0 ? b : c;
    case kAnd:
      return a & b;
    case kOr:
      return a | b;
    case kXor:
      return a ^ b;
    case kIadd:
      return a + b;
    case kIsub:
      return a - b;
    case kImul:
      return a * b;
    case kImax:
      return as_int(a) > as_int(b) ? a : b;
    case kImin:
      return as_int(a) < as_int(b) ? a : b;
    case kIlt:
      return as_int(a) < as_int(b) ? 1 : 0;
    case kIeq:
      return a == b ? 1 : 0;
    case kShl:
      return a << (b % 32);
    case kSrl:
      return a >> (b % 32);
    case kSra:
      return static_cast<std::uint32_t>(as_int(a) >> (b % 32));
    case kI2f:
      return int_to_float(a);
    case kF2i:
      return float_to_int(round_even(a));
    case kF2iTrunc:
      return float_to_int(as_float(a));
    case kRoundFp16:
      return widen_fp16(narrow_fp16(a));  // a canonical NaN stays one
    case kRoundBf16:
      return widen_bf16(narrow_bf16(a));
    case kSegment:
      return segment_result(a, b);
  }
}

/// What a reduction does with a lane and an element.
template <isa::Reduce kReduce>
[[gnu::always_inline]] inline std::uint32_t combine(std::uint32_t lane, std::uint32_t element) {
  using enum isa::MicroOp;
  switch (kReduce) {
    case isa::Reduce::kNone:
      return element;
    case isa::Reduce::kFadd:
      return micro<kFma>(lane, kOne, element);
    case isa::Reduce::kFmax:
      return micro<kFmax>(lane, element, 0);
    case isa::Reduce::kFmin:
      return micro<kFmin>(lane, element, 0);
    case isa::Reduce::kIadd:
      return micro<kIadd>(lane, element, 0);
    case isa::Reduce::kImax:
      return micro<kImax>(lane, element, 0);
    case isa::Reduce::kImin:
      return micro<kImin>(lane, element, 0);
  }
}

}  // namespace npu::scalar
