// SPDX-License-Identifier: Apache-2.0
// SCATTER's addition, by the definition of the formats and the host's float; not by the RTL's way.
#pragma once

#include <algorithm>

#include "format.hpp"

// The value rounded to the format, to nearest even.
inline uint32_t narrow(const unit::Format& format, float value) {
  if (std::isnan(value)) return format.nan();
  const uint32_t sign = std::signbit(value) ? format.sign_bit() : 0;
  if (value == 0 || std::isinf(value)) return sign | (value == 0 ? 0 : format.infinity());
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const double units =
      std::nearbyint(std::ldexp(std::fabs(double(value)), format.fraction_bits() - exponent));
  const uint64_t bits = uint64_t(units) + (uint64_t(exponent + bias - 1) << format.fraction_bits());
  return sign | uint32_t(std::min<uint64_t>(bits, format.infinity()));
}

inline uint32_t added(unsigned dtype, uint32_t was, uint32_t more) {
  if (dtype == 4) return was + more;
  const unit::Format& format = dtype == 0 ? unit::kF32 : dtype == 1 ? unit::kF16 : unit::kBf16;
  const float sum = float(unit::value_of(format, was)) + float(unit::value_of(format, more));
  return narrow(format, sum);
}
