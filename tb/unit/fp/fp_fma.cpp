// SPDX-License-Identifier: Apache-2.0
// fp32_fma against the host's std::fma: special classes crossed with each other, then random
// vectors whose exponents are chosen so that cancellation, sticky bits, subnormals and overflow
// happen.
#include <bit>
#include <cmath>

#include "Vfp_fma.h"
#include "operands.hpp"

namespace {

using unit::Checker;
using unit::Operands;
using unit::Random;

constexpr std::uint32_t kSign = unit::kF32Sign;
constexpr std::uint32_t kFraction = unit::kF32Fraction;
constexpr int kBias = unit::kF32Bias;
constexpr int kMaxExponent = unit::kF32MaxExponent;

std::uint32_t host_fma(const Operands& in) {
  return std::bit_cast<std::uint32_t>(std::fma(
      std::bit_cast<float>(in[0]), std::bit_cast<float>(in[1]), std::bit_cast<float>(in[2])));
}

void check(Checker& checker, const Operands& in) { checker.add(in, host_fma(in)); }

void cross_specials(Checker& checker) {
  for (const std::uint32_t a : unit::kF32Specials) {
    for (const std::uint32_t b : unit::kF32Specials) {
      for (const std::uint32_t c : unit::kF32Specials) {
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
/// Two factors whose product has, within one, the biased exponent `target`.
void factors(Random& random, int target, Operands& in) {
  const int low = target + kBias - kMaxExponent;
  const int first = random.between(low < 0 ? 0 : low,
                                   target + kBias > kMaxExponent ? kMaxExponent : target + kBias);
  in[0] = unit::f32_number(random, first);
  in[1] = unit::f32_number(random, target + kBias - first);
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
  in[2] = unit::f32_number(random, target + random.between(-52, 30));
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
  in[2] = unit::f32_number(random, random.between(0, target - 20));
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
      return {unit::f32_number(random, random.between(117, 130)),
              unit::f32_number(random, random.between(117, 130)),
              unit::f32_number(random, random.between(117, 137))};  // as in a matrix product
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
