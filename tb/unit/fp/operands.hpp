// SPDX-License-Identifier: Apache-2.0
// Operands that benches of fp32 functions have in common: classes and borders, and numbers whose
// fractions have runs of zeros and ones.
#pragma once

#include "bench.hpp"

namespace unit {

inline constexpr std::uint32_t kF32Sign = 0x80000000U;
inline constexpr std::uint32_t kF32Fraction = 0x007FFFFFU;
inline constexpr int kF32Bias = 127;
inline constexpr int kF32MaxExponent = 254;

/// Magnitudes at and next to every border, and powers of two whose products reach the borders.
inline constexpr std::uint32_t kF32Specials[] = {
    0x00000000,                                                  // zero
    0x00000001, 0x00000002, 0x00000003, 0x00400000, 0x007FFFFE,  // subnormals
    0x007FFFFF,                                                  // largest subnormal
    0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000,              // smallest normals
    0x33800000, 0x34000000, 0x34000001,                          // near one unit in the last place
    0x3EFFFFFF, 0x3F000000, 0x3F000001,                          // near 1/2
    0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC00000,              // near 1, 1.5
    0x3FFFFFFF, 0x40000000, 0x40400000,                          // near 2, 3
    0x1F800000, 0x20000000, 0x5F000000, 0x5F800000,              // 2^-64, 2^-63, 2^63, 2^64
    0x0C000000, 0x73000000,                                      // 2^-103, 2^103
    0x4B000000, 0x4EFFFFFF, 0x4F000000, 0x4F000001,              // 2^23, near 2^31
    0x7E800000, 0x7F000000, 0x7F7FFFFE, 0x7F7FFFFF,              // largest normals
    0x7F800000,                                                  // infinity
    0x7F800001, 0x7FBFFFFF,                                      // signalling NaNs
    0x7FC00000, 0x7FC00001, 0x7FFFFFFF,                          // quiet NaNs
};

inline std::uint32_t f32_fraction(Random& random) {
  const std::uint32_t word = random.word();
  switch (random.between(0, 5)) {
    case 0:
      return word & random.word() & random.word() & kF32Fraction;  // few ones
    case 1:
      return (word | random.word() | random.word()) & kF32Fraction;  // few zeros
    case 2:
      return (word << random.between(1, 23)) & kF32Fraction;  // short
    case 3:
      return (0U - (1U << random.between(0, 23))) & kF32Fraction;  // ones, then zeros
    default:
      return word & kF32Fraction;
  }
}

/// A number of this biased exponent, clamped to what exists.
inline std::uint32_t f32_number(Random& random, int exponent) {
  const int clamped = exponent < 0 ? 0 : exponent > kF32MaxExponent ? kF32MaxExponent : exponent;
  return (random.word() & kF32Sign) | (static_cast<std::uint32_t>(clamped) << 23) |
         f32_fraction(random);
}

}  // namespace unit
