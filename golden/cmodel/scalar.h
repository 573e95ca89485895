// SPDX-License-Identifier: Apache-2.0
/// The arithmetic primitives on bit patterns. Branch-free, so that loops over them vectorise;
/// always inlined, because files compiled for different instruction sets include them.
/// They want round-to-nearest-even and no flushing of subnormals: see FloatEnvironment.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace npu::scalar {

inline constexpr std::uint32_t kFp32Sign = 0x8000'0000;
inline constexpr std::uint32_t kFp32Inf = 0x7F80'0000;
inline constexpr std::uint32_t kFp32Nan = 0x7FC0'0000;
inline constexpr std::uint16_t kFp16Nan = 0x7E00;
inline constexpr std::uint16_t kBf16Nan = 0x7FC0;

[[gnu::always_inline]] inline std::uint16_t load16(const std::byte* p) {
  std::uint16_t value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}

[[gnu::always_inline]] inline std::uint32_t load32(const std::byte* p) {
  std::uint32_t value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}

[[gnu::always_inline]] inline bool is_nan(std::uint32_t bits) {
  return (bits & ~kFp32Sign) > kFp32Inf;
}

[[gnu::always_inline]] inline std::uint32_t canonical(std::uint32_t bits) {
  return is_nan(bits) ? kFp32Nan : bits;
}

/// a·b + c with one rounding.
[[gnu::always_inline]] inline std::uint32_t fma32(std::uint32_t a, std::uint32_t b,
                                                  std::uint32_t c) {
  const float sum =
      __builtin_fmaf(std::bit_cast<float>(a), std::bit_cast<float>(b), std::bit_cast<float>(c));
  return canonical(std::bit_cast<std::uint32_t>(sum));
}

/// Exact. NaN payloads survive: canonicalise where the result is seen.
[[gnu::always_inline]] inline std::uint32_t widen_fp16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t magnitude = half & 0x7FFF;
  // Exponent and fraction in place, bias off by 112: the product puts it right, exactly, for
  // subnormals too. Infinities and NaNs have the top exponent set afterwards.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  const std::uint32_t top = magnitude >= 0x7C00 ? kFp32Inf : 0;
  return sign | std::bit_cast<std::uint32_t>(scaled) | top;
}

/// Exact, as widen_fp16.
[[gnu::always_inline]] inline std::uint32_t widen_bf16(std::uint16_t brain) {
  return static_cast<std::uint32_t>(brain) << 16;
}

/// To nearest even; overflow to infinity, subnormals kept, NaN to the canonical one.
[[gnu::always_inline]] inline std::uint16_t narrow_fp16(std::uint32_t bits) {
  const std::uint32_t sign = (bits & kFp32Sign) >> 16;
  const std::uint32_t magnitude = bits & ~kFp32Sign;
  // Normal results: rebias, add half an ULP less one plus the even bit, drop 13 bits.
  const std::uint32_t rounded = (magnitude - (112U << 23) + 0xFFF + ((magnitude >> 13) & 1)) >> 13;
  // Below 2^-14 the ULP is 2^-24, which is that of 0.5: adding 0.5 rounds right there.
  const float shifted = std::bit_cast<float>(magnitude < 0x3880'0000 ? magnitude : 0) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3F00'0000;
  std::uint32_t half = magnitude < 0x3880'0000 ? subnormal : rounded;
  half = magnitude >= 0x4780'0000 ? 0x7C00 : half;
  half = magnitude > kFp32Inf ? kFp16Nan : half | sign;
  return static_cast<std::uint16_t>(half);
}

/// To nearest even; overflow to infinity, subnormals kept, NaN to the canonical one.
[[gnu::always_inline]] inline std::uint16_t narrow_bf16(std::uint32_t bits) {
  const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  return static_cast<std::uint16_t>(is_nan(bits) ? kBf16Nan : rounded);
}

/// acc + a·b modulo 2^32.
[[gnu::always_inline]] inline std::uint32_t mac8(std::int8_t a, std::int8_t b, std::uint32_t acc) {
  return acc + static_cast<std::uint32_t>(std::int32_t{a} * std::int32_t{b});
}

}  // namespace npu::scalar
