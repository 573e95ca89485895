// SPDX-License-Identifier: Apache-2.0
// Number formats as rows of a table, and what the benches need to know of one: how it is written in
// hexadecimal, its value, its canonical NaN.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace unit {

/// Binary interchange format; `exponent_bits` is 0 for two's complement integers.
struct Format {
  const char* name;
  int bits;
  int exponent_bits;

  [[nodiscard]] constexpr int hex_digits() const { return bits / 4; }
  [[nodiscard]] constexpr int fraction_bits() const { return bits - 1 - exponent_bits; }
  [[nodiscard]] constexpr bool is_float() const { return exponent_bits != 0; }
  [[nodiscard]] constexpr std::uint32_t sign_bit() const { return 1U << (bits - 1); }
  [[nodiscard]] constexpr std::uint32_t infinity() const {
    return ((1U << exponent_bits) - 1U) << fraction_bits();
  }
  /// The one quiet NaN that an operation may return.
  [[nodiscard]] constexpr std::uint32_t nan() const {
    return infinity() | (1U << (fraction_bits() - 1));
  }
  [[nodiscard]] constexpr bool is_nan(std::uint32_t bits_of) const {
    return is_float() && (bits_of & (sign_bit() - 1U)) > infinity();
  }
  [[nodiscard]] constexpr std::uint32_t canonical(std::uint32_t bits_of) const {
    return is_nan(bits_of) ? nan() : bits_of;
  }
};

inline constexpr Format kF32{"f32", 32, 8};
inline constexpr Format kF16{"f16", 16, 5};
inline constexpr Format kBf16{"bf16", 16, 8};
inline constexpr Format kI8{"i8", 8, 0};
inline constexpr Format kI32{"i32", 32, 0};
/// A truth value: TestFloat writes it as one digit.
inline constexpr Format kBool{"bool", 4, 0};

/// The value, by the definition of the format; exact in double for every format here.
inline double value_of(const Format& format, std::uint32_t bits_of) {
  if (!format.is_float()) {
    const int unused = 32 - format.bits;
    return static_cast<double>(static_cast<std::int32_t>(bits_of << unused) >> unused);
  }
  const std::uint32_t magnitude = bits_of & (format.sign_bit() - 1U);
  const double sign = (bits_of & format.sign_bit()) != 0 ? -1.0 : 1.0;
  if (magnitude > format.infinity()) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude == format.infinity()) return sign * std::numeric_limits<double>::infinity();
  const int fraction_bits = format.fraction_bits();
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(magnitude >> fraction_bits);
  std::uint32_t significand = magnitude & ((1U << fraction_bits) - 1U);
  if (exponent != 0) significand |= 1U << fraction_bits;
  const int scale = (exponent == 0 ? 1 : exponent) - bias - fraction_bits;
  return sign * std::ldexp(static_cast<double>(significand), scale);
}

/// `0x3f800000 (1)`
std::string describe(const Format& format, std::uint32_t bits_of);

}  // namespace unit
