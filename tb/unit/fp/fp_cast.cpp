// SPDX-License-Identifier: Apache-2.0
// The four conversions against the definition of the formats. Widening is exhaustive. Narrowing is
// tried at every border between two results, and on random values. The reference is a search in the
// table of all values of the narrow format: it shares no method with the hardware.
#include <algorithm>
#include <bit>
#include <cmath>

#include "Vfp_cast.h"
#include "bench.hpp"

namespace {

using unit::Checker;
using unit::Format;
using unit::Random;

/// All non-negative values of a 16-bit format in order. Infinity stands for the value that the next
/// exponent would have: what rounds to it overflows.
class NarrowTable {
 public:
  explicit NarrowTable(const Format& format) : format_(format) {
    for (std::uint32_t bits = 0; bits < format.infinity(); ++bits) {
      values_.push_back(unit::value_of(format, bits));
    }
    values_.push_back(2.0 *
                      unit::value_of(format, format.infinity() - (1U << format.fraction_bits())));
  }

  [[nodiscard]] double value(std::uint32_t bits) const { return values_[bits]; }

  /// The nearest, of two equally near the one with an even last bit.
  [[nodiscard]] std::uint32_t round(std::uint32_t f32) const {
    if (unit::kF32.is_nan(f32)) return format_.nan();
    const std::uint32_t sign = (f32 & unit::kF32.sign_bit()) != 0 ? format_.sign_bit() : 0U;
    const double magnitude = std::fabs(unit::value_of(unit::kF32, f32));
    if (magnitude >= values_.back()) return sign | format_.infinity();
    const auto above = std::upper_bound(values_.begin(), values_.end(), magnitude);
    const auto high = static_cast<std::uint32_t>(above - values_.begin());
    const double to_low = magnitude - values_[high - 1];
    const double to_high = values_[high] - magnitude;
    const bool take_high = to_high < to_low || (to_high == to_low && high % 2 == 0);
    return sign | (take_high ? high : high - 1);
  }

 private:
  Format format_;
  std::vector<double> values_;
};

std::uint32_t float_bits(double value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

void widen(const Format& from, Checker& checker) {
  for (std::uint32_t bits = 0; bits < (1U << from.bits); ++bits) {
    checker.add({bits}, float_bits(unit::value_of(from, bits)));
  }
}

void narrow(const Format& to, Checker& checker, Random& random, std::uint64_t count) {
  const NarrowTable table(to);
  const auto both_signs = [&](std::uint32_t f32) {
    checker.add({f32}, table.round(f32));
    checker.add({f32 ^ unit::kF32.sign_bit()}, table.round(f32 ^ unit::kF32.sign_bit()));
  };
  for (std::uint32_t bits = 0; bits < to.infinity(); ++bits) {
    // The value itself and the tie above it are exact in f32, up to where the format overflows.
    const double exact = table.value(bits);
    const double tie = exact / 2 + table.value(bits + 1) / 2;
    for (const double border : {exact, tie}) {
      const std::uint32_t f32 = float_bits(border);
      if (f32 != 0) both_signs(f32 - 1);
      both_signs(f32);
      both_signs(f32 + 1);
    }
  }
  for (std::uint64_t index = 0; index < count; ++index) both_signs(random.word());
  // The exponents around the format's whole range, evenly: uniform bits rarely hit f16's.
  const int low = to.exponent_bits == 8 ? 0 : 127 - 27;
  const int high = to.exponent_bits == 8 ? 255 : 127 + 17;
  for (std::uint64_t index = 0; index < count; ++index) {
    const auto exponent = static_cast<std::uint32_t>(random.between(low, high));
    both_signs((exponent << 23) | (random.word() >> 9));
  }
}

/// Every class of f32: zero, subnormals, normals, infinity, quiet and signalling NaNs.
void f32_classes(const Format& to, Checker& checker) {
  const NarrowTable table(to);
  for (const std::uint32_t bits :
       {0x00000000U, 0x00000001U, 0x007FFFFFU, 0x00800000U, 0x3F800000U, 0x7F7FFFFFU, 0x7F800000U,
        0x7F800001U, 0x7FBFFFFFU, 0x7FC00000U, 0x7FC00001U, 0x7FFFFFFFU}) {
    checker.add({bits}, table.round(bits));
    checker.add({bits | unit::kF32.sign_bit()}, table.round(bits | unit::kF32.sign_bit()));
  }
}

void generate(const unit::Operation& operation, Checker& checker, Random& random,
              std::uint64_t count) {
  const Format& from = operation.operands.front();
  if (from.bits < operation.result.bits) {
    widen(from, checker);
  } else {
    f32_classes(operation.result, checker);
    narrow(operation.result, checker, random, count);
  }
}

using Inputs = std::array<unit::Lanes, unit::kMaxOperands>;

}  // namespace

int main(int argc, char** argv) {
  Vfp_cast model;
  const auto through = [&model](auto& output) {
    return [&model, &output](const Inputs& in) {
      unit::write_lanes(model.value_i, in[0]);
      model.eval();
      return unit::read_lanes(output);
    };
  };
  constexpr std::uint64_t kCount = 1'000'000;
  const unit::Bench bench{
      "fp_cast",
      {{"f16_to_f32", {unit::kF16}, unit::kF32, through(model.f16_to_f32_o)},
       {"bf16_to_f32", {unit::kBf16}, unit::kF32, through(model.bf16_to_f32_o)},
       {"f32_to_f16", {unit::kF32}, unit::kF16, through(model.f32_to_f16_o)},
       {"f32_to_bf16", {unit::kF32}, unit::kBf16, through(model.f32_to_bf16_o)}},
      kCount,
      generate};
  return unit::bench_main(bench, argc, argv);
}
