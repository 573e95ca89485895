// SPDX-License-Identifier: Apache-2.0
// fp32_fma against the host's std::fma: special classes crossed with each other, then random
// vectors whose exponents are chosen so that cancellation, sticky bits, subnormals and overflow
// happen.
#include <bit>
#include <cmath>

#include "Vfp_fma.h"
#include "bench.hpp"

namespace {

using unit::Checker;
using unit::Operands;
using unit::Random;

constexpr std::uint32_t kSign = 0x80000000U;
constexpr std::uint32_t kFraction = 0x007FFFFFU;
constexpr int kBias = 127;
constexpr int kMaxExponent = 254;

std::uint32_t host_fma(const Operands& in) {
  return std::bit_cast<std::uint32_t>(std::fma(
      std::bit_cast<float>(in[0]), std::bit_cast<float>(in[1]), std::bit_cast<float>(in[2])));
}

void check(Checker& checker, const Operands& in) { checker.add(in, host_fma(in)); }

/// Magnitudes at and next to every border, and powers of two whose products reach the borders.
constexpr std::uint32_t kSpecials[] = {
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
    0x7E800000, 0x7F000000, 0x7F7FFFFE, 0x7F7FFFFF,              // largest normals
    0x7F800000,                                                  // infinity
    0x7F800001, 0x7FBFFFFF,                                      // signalling NaNs
    0x7FC00000, 0x7FC00001, 0x7FFFFFFF,                          // quiet NaNs
};

void cross_specials(Checker& checker) {
  for (const std::uint32_t a : kSpecials) {
    for (const std::uint32_t b : kSpecials) {
      for (const std::uint32_t c : kSpecials) {
        for (std::uint32_t signs = 0; signs < 8; ++signs) {
          check(checker,
                {a | ((signs & 1U) != 0 ? kSign : 0U), b | ((signs & 2U) != 0 ? kSign : 0U),
                 c | ((signs & 4U) != 0 ? kSign : 0U)});
        }
      }
    }
  }
}

/// Fractions that make ties, long carries and long runs of lost zeros likely.
std::uint32_t fraction(Random& random) {
  const std::uint32_t word = random.word();
  switch (random.between(0, 5)) {
    case 0:
      return word & random.word() & random.word() & kFraction;  // few ones
    case 1:
      return (word | random.word() | random.word()) & kFraction;  // few zeros
    case 2:
      return (word << random.between(1, 23)) & kFraction;  // short
    case 3:
      return (0U - (1U << random.between(0, 23))) & kFraction;  // ones, then zeros
    default:
      return word & kFraction;
  }
}

std::uint32_t number(Random& random, int exponent) {
  const int clamped = exponent < 0 ? 0 : exponent > kMaxExponent ? kMaxExponent : exponent;
  return (random.word() & kSign) | (static_cast<std::uint32_t>(clamped) << 23) | fraction(random);
}

/// Two factors whose product has, within one, the biased exponent `target`.
void factors(Random& random, int target, Operands& in) {
  const int low = target + kBias - kMaxExponent;
  const int first = random.between(low < 0 ? 0 : low,
                                   target + kBias > kMaxExponent ? kMaxExponent : target + kBias);
  in[0] = number(random, first);
  in[1] = number(random, target + kBias - first);
}

/// c within a few units of -a·b, so that most or all leading bits cancel.
Operands cancelling(Random& random) {
  Operands in{};
  factors(random, random.between(-20, kMaxExponent), in);
  const std::uint32_t product = host_fma({in[0], in[1], 0});
  in[2] = (product ^ kSign) + static_cast<std::uint32_t>(random.between(-3, 3));
  return in;
}

Operands correlated(Random& random, int low, int high) {
  Operands in{};
  const int target = random.between(low, high);
  factors(random, target, in);
  in[2] = number(random, target + random.between(-52, 30));
  return in;
}

/// A product of 25 significant bits, which is a tie, and an addend far enough below to be no more
/// than the sticky bit that decides it.
Operands sticky_tie(Random& random) {
  Operands in{};
  const int target = random.between(60, kMaxExponent);
  factors(random, target, in);
  const int bits = random.between(2, 23);
  const std::uint32_t short_a =
      (1U << (24 - bits)) | (in[0] & kFraction & (0U - (1U << (24 - bits))));
  const std::uint32_t short_b =
      (1U << (bits - 1)) | (in[1] & kFraction & (0U - (1U << (bits - 1))));
  in[0] = (in[0] & ~kFraction) | short_a;
  in[1] = (in[1] & ~kFraction) | short_b;
  in[2] = number(random, random.between(0, target - 20));
  return in;
}

Operands random_operands(Random& random, std::uint64_t index) {
  switch (index % 7) {
    case 0:
      return {random.word(), random.word(), random.word()};
    case 1:
      return correlated(random, 1, kMaxExponent);
    case 2:
      return cancelling(random);
    case 3:
      return correlated(random, -60, 30);  // subnormal
    case 4:
      return correlated(random, kMaxExponent - 2, kMaxExponent + 3);  // overflow
    case 5:
      return sticky_tie(random);
    default:
      return {number(random, random.between(117, 130)), number(random, random.between(117, 130)),
              number(random, random.between(117, 137))};  // as in a matrix product
  }
}

void generate(const unit::Operation& /*operation*/, Checker& checker, Random& random,
              std::uint64_t count) {
  cross_specials(checker);
  for (std::uint64_t index = 0; index < count; ++index) {
    check(checker, random_operands(random, index));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Vfp_fma model;
  const auto run = [&model](const std::array<unit::Lanes, unit::kMaxOperands>& in) {
    unit::write_lanes(model.a_i, in[0]);
    unit::write_lanes(model.b_i, in[1]);
    unit::write_lanes(model.c_i, in[2]);
    model.eval();
    return unit::read_lanes(model.result_o);
  };
  constexpr std::uint64_t kCount = 24'000'000;
  const unit::Bench bench{"fp_fma",
                          {{"f32_mulAdd", {unit::kF32, unit::kF32, unit::kF32}, unit::kF32, run}},
                          kCount,
                          generate};
  return unit::bench_main(bench, argc, argv);
}
