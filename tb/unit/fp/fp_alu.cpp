// SPDX-License-Identifier: Apache-2.0
// Comparisons and conversions of npu_fp_alu_pkg against their definitions, in double precision.
#include <bit>
#include <cmath>

#include "Vfp_alu.h"
#include "operands.hpp"

namespace {

using unit::Checker;
using unit::kBool;
using unit::kF32;
using unit::kI32;
using unit::Operands;
using unit::Random;

using Reference = std::function<std::uint32_t(const Operands&)>;

double value(std::uint32_t bits) { return unit::value_of(kF32, bits); }

bool unordered(const Operands& in) { return kF32.is_nan(in[0]) || kF32.is_nan(in[1]); }

/// -0 counts as less than +0.
bool below(std::uint32_t a, std::uint32_t b) {
  if (value(a) == value(b)) return a > b && (a | b) == unit::kF32Sign;
  return value(a) < value(b);
}

std::uint32_t largest(const Operands& in) {
  if (unordered(in)) return kF32.nan();
  return below(in[0], in[1]) ? in[1] : in[0];
}

std::uint32_t smallest(const Operands& in) {
  if (unordered(in)) return kF32.nan();
  return below(in[0], in[1]) ? in[0] : in[1];
}

std::uint32_t from_integer(const Operands& in) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(in[0])));
}

std::uint32_t to_integer(std::uint32_t bits, double rounded) {
  if (kF32.is_nan(bits)) return 0;
  if (rounded >= 2147483647.0) return 0x7FFFFFFF;
  if (rounded <= -2147483648.0) return 0x80000000;
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(rounded));
}

struct Row {
  unit::Operation operation;
  Reference reference;
};

/// A float operand: any class, or near a border of the conversions to integers.
std::uint32_t number(Random& random) {
  switch (random.between(0, 3)) {
    case 0:
      return random.word();
    case 1:
      return unit::kF32Specials[static_cast<std::size_t>(
                 random.between(0, static_cast<int>(std::size(unit::kF32Specials)) - 1))] ^
             (random.word() & unit::kF32Sign);
    case 2:  // a half integer, or close to it
      return std::bit_cast<std::uint32_t>(static_cast<float>(random.between(-5000, 5000)) / 2.0F) +
             static_cast<std::uint32_t>(random.between(-1, 1));
    default:
      return unit::f32_number(random, random.between(120, 160));
  }
}

std::uint32_t integer(Random& random) {
  // Ties of the 24-bit significand need trailing zeros.
  const std::uint32_t word = random.word() >> random.between(0, 31);
  const std::uint32_t kept = random.between(0, 1) != 0 ? word : word & ~0U << random.between(0, 8);
  return kept + static_cast<std::uint32_t>(random.between(-1, 1));
}

}  // namespace

int main(int argc, char** argv) {
  Vfp_alu model;
  const auto through = [&model](auto& output) {
    return [&model, &output](const std::array<unit::Lanes, unit::kMaxOperands>& in) {
      unit::write_lanes(model.a_i, in[0]);
      unit::write_lanes(model.b_i, in[1]);
      model.eval();
      return unit::read_lanes(output);
    };
  };
  const std::vector<unit::Format> pair{kF32, kF32};
  const auto compare = [](auto relation) {
    return [relation](const Operands& in) -> std::uint32_t {
      return !unordered(in) && relation(value(in[0]), value(in[1])) ? 1 : 0;
    };
  };
  const std::vector<Row> rows{
      {{"f32_max", pair, kF32, through(model.f32_max_o)}, largest},
      {{"f32_min", pair, kF32, through(model.f32_min_o)}, smallest},
      {{"f32_lt", pair, kBool, through(model.f32_lt_o)}, compare(std::less<>())},
      {{"f32_le", pair, kBool, through(model.f32_le_o)}, compare(std::less_equal<>())},
      {{"f32_eq", pair, kBool, through(model.f32_eq_o)}, compare(std::equal_to<>())},
      {{"i32_to_f32", {kI32}, kF32, through(model.i32_to_f32_o)}, from_integer},
      {{"f32_to_i32", {kF32}, kI32, through(model.f32_to_i32_o)},
       [](const Operands& in) { return to_integer(in[0], std::nearbyint(value(in[0]))); }},
      {{"f32_to_i32_r_minMag", {kF32}, kI32, through(model.f32_to_i32_r_minMag_o)},
       [](const Operands& in) { return to_integer(in[0], std::trunc(value(in[0]))); }},
  };
  const auto generate = [&rows](const unit::Operation& operation, Checker& checker, Random& random,
                                std::uint64_t count) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
      return row.operation.name == operation.name;
    });
    for (const std::uint32_t a : unit::kF32Specials) {
      for (const std::uint32_t b : unit::kF32Specials) {
        for (std::uint32_t signs = 0; signs < 4; ++signs) {
          const Operands in{a | (signs << 31), b | (signs >> 1 << 31)};
          checker.add(in, found->reference(in));
        }
      }
    }
    const bool of_integer = operation.operands.front().exponent_bits == 0;
    for (std::uint64_t index = 0; index < count; ++index) {
      Operands in{of_integer ? integer(random) : number(random), number(random)};
      if (index % 4 == 0) in[1] = in[0] + static_cast<std::uint32_t>(random.between(-1, 1));
      checker.add(in, found->reference(in));
    }
  };
  std::vector<unit::Operation> operations;
  for (const Row& row : rows) operations.push_back(row.operation);
  const unit::Bench bench{"fp_alu", operations, 2'000'000, generate};
  return unit::bench_main(bench, argc, argv);
}
