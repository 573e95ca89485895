// SPDX-License-Identifier: Apache-2.0
// What docs/numerics.md says about VECTOR, in the host's arithmetic: one element, one row. Programs
// are the generated tables; nothing else is shared with the RTL.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "format.hpp"
#include "npu_vector_programs.h"

namespace interpret {

using npu::isa::MicroOp;
using npu::isa::Reduce;

inline float f(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t u(float value) { return unit::kF32.canonical(std::bit_cast<uint32_t>(value)); }
inline int32_t s(uint32_t word) { return static_cast<int32_t>(word); }
inline bool is_nan(uint32_t word) { return unit::kF32.is_nan(word); }

inline uint32_t extreme(uint32_t a, uint32_t b, bool largest) {
  if (is_nan(a) || is_nan(b)) return unit::kF32.nan();
  const bool a_below = f(a) == f(b) ? std::signbit(f(a)) : f(a) < f(b);
  return a_below == largest ? b : a;
}

inline uint32_t to_int(uint32_t word, bool nearest) {
  if (is_nan(word)) return 0;
  const double value = nearest ? std::nearbyint(double(f(word))) : std::trunc(double(f(word)));
  if (value >= 2147483647.0) return 0x7FFFFFFF;
  if (value <= -2147483648.0) return 0x80000000;
  return static_cast<uint32_t>(static_cast<int32_t>(value));
}

inline uint32_t execute(MicroOp op, uint32_t a, uint32_t b, uint32_t c) {
  switch (op) {
    case MicroOp::kMov:
      return a;
    case MicroOp::kFma:
      return u(std::fma(f(a), f(b), f(c)));
    case MicroOp::kDiv:
      return u(f(a) / f(b));
    case MicroOp::kSqrt:
      return u(std::sqrt(f(a)));
    case MicroOp::kFmax:
      return extreme(a, b, true);
    case MicroOp::kFmin:
      return extreme(a, b, false);
    case MicroOp::kFlt:
      return f(a) < f(b);
    case MicroOp::kFle:
      return f(a) <= f(b);
    case MicroOp::kFeq:
      return f(a) == f(b);
    case MicroOp::kSel:
      return a != 0 ? b : c;
    case MicroOp::kAnd:
      return a & b;
    case MicroOp::kOr:
      return a | b;
    case MicroOp::kXor:
      return a ^ b;
    case MicroOp::kIadd:
      return a + b;
    case MicroOp::kIsub:
      return a - b;
    case MicroOp::kImul:
      return a * b;
    case MicroOp::kImax:
      return s(a) > s(b) ? a : b;
    case MicroOp::kImin:
      return s(a) < s(b) ? a : b;
    case MicroOp::kIlt:
      return s(a) < s(b);
    case MicroOp::kIeq:
      return a == b;
    case MicroOp::kShl:
      return a << (b % 32);
    case MicroOp::kSrl:
      return a >> (b % 32);
    case MicroOp::kSra:
      return static_cast<uint32_t>(s(a) >> (b % 32));
    case MicroOp::kI2f:
      return u(static_cast<float>(s(a)));
    case MicroOp::kF2i:
      return to_int(a, true);
    case MicroOp::kF2iTrunc:
      return to_int(a, false);
  }
  return 0;
}

inline uint32_t join(Reduce reduce, uint32_t a, uint32_t b) {
  switch (reduce) {
    case Reduce::kFadd:
      return u(std::fma(f(a), 1.0F, f(b)));
    case Reduce::kFmax:
      return extreme(a, b, true);
    case Reduce::kFmin:
      return extreme(a, b, false);
    case Reduce::kIadd:
      return a + b;
    case Reduce::kImax:
      return s(a) > s(b) ? a : b;
    case Reduce::kImin:
      return s(a) < s(b) ? a : b;
    case Reduce::kNone:
      break;
  }
  return a;
}

struct Element {
  std::array<uint32_t, npu::isa::kMaxSources> source{};
  std::array<uint32_t, npu::isa::kImmediates> imm{};
  uint32_t index = 0;
};

inline uint32_t run(const npu::isa::VectorProgram& program, const Element& element) {
  using namespace npu::isa;
  std::array<uint32_t, kRegisters> registers{};
  uint32_t out = 0;
  const auto operand = [&](unsigned code) {
    if (code < kOperandSrc) return registers[code];
    if (code < kOperandIndex) return element.source[code - kOperandSrc];
    if (code == kOperandIndex) return element.index;
    if (code < kOperandConst) return element.imm[code - kOperandImm];
    return kConstants[code - kOperandConst];
  };
  for (unsigned i = 0; i < program.length; ++i) {
    const Instruction& line = kCode[program.start + i];
    const uint32_t result = execute(line.op, operand(line.a), operand(line.b), operand(line.c));
    (line.dst == kDstOut ? out : registers[line.dst]) = result;
  }
  return out;
}

inline uint32_t reduce_row(Reduce reduce, const std::vector<uint32_t>& row) {
  std::array<uint32_t, npu::isa::kReductionLanes> lane;
  lane.fill(npu::isa::kIdentity[static_cast<unsigned>(reduce)]);
  for (size_t i = 0; i < row.size(); ++i) lane[i % 16] = join(reduce, lane[i % 16], row[i]);
  for (unsigned half = 8; half != 0; half /= 2)
    for (unsigned i = 0; i < half; ++i) lane[i] = join(reduce, lane[i], lane[i + half]);
  return lane[0];
}

// Types in the order of their numbers.
enum DType { kFp32, kFp16, kBf16, kInt8, kInt32, kUint8, kInt64 };
constexpr std::array<unsigned, 7> kBytes{4, 2, 2, 1, 4, 1, 8};

inline uint32_t load(unsigned dtype, uint64_t bits) {
  switch (dtype) {
    case kFp16:
      return u(static_cast<float>(unit::value_of(unit::kF16, uint32_t(bits))));
    case kBf16:
      return u(static_cast<float>(unit::value_of(unit::kBf16, uint32_t(bits))));
    case kInt8:
      return static_cast<uint32_t>(static_cast<int8_t>(bits));
    default:
      return static_cast<uint32_t>(bits);
  }
}

inline uint64_t store(unsigned dtype, uint32_t word) {
  switch (dtype) {
    case kFp16:
      return is_nan(word) ? unit::kF16.nan()
                          : std::bit_cast<uint16_t>(static_cast<_Float16>(f(word)));
    case kBf16: {
      if (is_nan(word)) return unit::kBf16.nan();
      // Half way is 0x8000 below the kept half; a tie goes to the even one.
      const uint32_t kept = word >> 16, rest = word & 0xFFFF;
      return kept + (rest > 0x8000 || (rest == 0x8000 && kept % 2 == 1) ? 1 : 0);
    }
    case kInt8:
    case kUint8:
      return word & 0xFF;
    case kInt64:
      return static_cast<uint64_t>(static_cast<int64_t>(s(word)));
    default:
      return word;
  }
}

}  // namespace interpret
