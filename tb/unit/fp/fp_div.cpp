// SPDX-License-Identifier: Apache-2.0
// fp32_div and fp32_sqrt against the host's division and square root, which IEEE 754 rounds
// correctly: special classes crossed with each other, then random vectors whose exponents are
// chosen so that subnormals, overflow and results next to a tie happen.
#include <bit>
#include <cmath>

#include "Vfp_div.h"
#include "operands.hpp"

namespace {

using unit::Checker;
using unit::Operands;
using unit::Random;

float to_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }

void check_div(Checker& checker, std::uint32_t a, std::uint32_t b) {
  checker.add({a, b}, std::bit_cast<std::uint32_t>(to_float(a) / to_float(b)));
}

void check_sqrt(Checker& checker, std::uint32_t a) {
  checker.add({a}, std::bit_cast<std::uint32_t>(std::sqrt(to_float(a))));
}

void cross_specials(Checker& checker) {
  for (const std::uint32_t a : unit::kF32Specials) {
    for (const std::uint32_t b : unit::kF32Specials) {
      for (std::uint32_t signs = 0; signs < 4; ++signs) {
        check_div(checker, a | ((signs & 1U) != 0 ? unit::kF32Sign : 0U),
                  b | ((signs & 2U) != 0 ? unit::kF32Sign : 0U));
      }
    }
  }
}

/// a within a few units of q·b, so that the quotient is exact or very close to a number or a tie.
void near_exact(Checker& checker, Random& random) {
  const std::uint32_t b = unit::f32_number(random, random.between(1, 254));
  const std::uint32_t q = unit::f32_number(random, random.between(1, 254)) & ~1U;
  const float product = to_float(q | 1U) * to_float(b);
  check_div(
      checker,
      std::bit_cast<std::uint32_t>(product) + static_cast<std::uint32_t>(random.between(-1, 1)), b);
}

/// The quotient's exponent within a few of `target`.
void quotient_near(Checker& checker, Random& random, int target) {
  const int b = random.between(0, unit::kF32MaxExponent);
  check_div(checker, unit::f32_number(random, target + b - unit::kF32Bias + random.between(-2, 2)),
            unit::f32_number(random, b));
}

void divide(Checker& checker, Random& random, std::uint64_t count) {
  cross_specials(checker);
  for (std::uint64_t index = 0; index < count; ++index) {
    switch (index % 5) {
      case 0:
        check_div(checker, random.word(), random.word());
        break;
      case 1:
        near_exact(checker, random);
        break;
      case 2:
        quotient_near(checker, random, random.between(-26, 2));  // subnormal
        break;
      case 3:
        quotient_near(checker, random, random.between(252, 256));  // overflow
        break;
      default:
        quotient_near(checker, random, random.between(100, 150));
    }
  }
}

void root(Checker& checker, Random& random, std::uint64_t count) {
  for (const std::uint32_t a : unit::kF32Specials) {
    check_sqrt(checker, a);
    check_sqrt(checker, a | unit::kF32Sign);
  }
  for (std::uint64_t index = 0; index < count; ++index) {
    const std::uint32_t number = unit::f32_number(random, random.between(0, 254)) & ~unit::kF32Sign;
    const float value = to_float(number);
    switch (index % 3) {
      case 0:
        check_sqrt(checker, random.word());
        break;
      case 1:
        check_sqrt(checker, number);
        break;
      default:  // next to a square
        check_sqrt(checker, std::bit_cast<std::uint32_t>(value * value) +
                                static_cast<std::uint32_t>(random.between(-1, 1)));
    }
  }
}

void generate(const unit::Operation& operation, Checker& checker, Random& random,
              std::uint64_t count) {
  if (operation.operands.size() == 2) {
    divide(checker, random, count);
  } else {
    root(checker, random, count);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Vfp_div model;
  const auto run = [&model](bool root_not_quotient) {
    return [&model, root_not_quotient](const std::array<unit::Lanes, unit::kMaxOperands>& in) {
      model.root_i = root_not_quotient;
      unit::write_lanes(model.a_i, in[0]);
      unit::write_lanes(model.b_i, in[1]);
      model.eval();
      return unit::read_lanes(model.result_o);
    };
  };
  constexpr std::uint64_t kCount = 12'000'000;
  const unit::Bench bench{"fp_div",
                          {{"f32_div", {unit::kF32, unit::kF32}, unit::kF32, run(false)},
                           {"f32_sqrt", {unit::kF32}, unit::kF32, run(true)}},
                          kCount,
                          generate};
  return unit::bench_main(bench, argc, argv);
}
