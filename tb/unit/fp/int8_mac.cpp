// SPDX-License-Identifier: Apache-2.0
// int8_mac: every pair of factors with addends at the borders of int32, then random ones.
#include "Vint8_mac.h"
#include "bench.hpp"

namespace {

using unit::Checker;
using unit::Operands;
using unit::Random;

constexpr int kBorders = 6;
constexpr int kRandomAddends = 4;

std::int64_t signed_value(const unit::Format& format, std::uint32_t bits) {
  const std::int64_t modulus = std::int64_t{1} << format.bits;
  const auto value = static_cast<std::int64_t>(bits);
  return value < modulus / 2 ? value : value - modulus;
}

/// In 64-bit integers, then modulo 2^32.
void check(Checker& checker, const Operands& in) {
  const std::int64_t sum = signed_value(unit::kI32, in[2]) +
                           signed_value(unit::kI8, in[0]) * signed_value(unit::kI8, in[1]);
  checker.add(in, static_cast<std::uint32_t>(sum & 0xFFFFFFFF));
}

/// Four lanes of 8 bits in each word of the port.
template <typename Port>
void write_bytes(Port& port, const unit::Lanes& lanes) {
  for (std::size_t lane = 0; lane < unit::kLanes; lane += 4) {
    port[lane / 4] =
        lanes[lane] | lanes[lane + 1] << 8 | lanes[lane + 2] << 16 | lanes[lane + 3] << 24;
  }
}

void generate(const unit::Operation& /*operation*/, Checker& checker, Random& random,
              std::uint64_t count) {
  constexpr std::uint32_t kAddends[kBorders] = {0,          1,          0xFFFFFFFF,
                                                0x7FFFFFFF, 0x80000000, 0x7FFFC000};
  for (std::uint32_t a = 0; a < 256; ++a) {
    for (std::uint32_t b = 0; b < 256; ++b) {
      for (const std::uint32_t c : kAddends) check(checker, {a, b, c});
      for (int i = 0; i < kRandomAddends; ++i) check(checker, {a, b, random.word()});
    }
  }
  for (std::uint64_t index = 0; index < count; ++index) {
    check(checker, {random.word() & 0xFFU, random.word() & 0xFFU, random.word()});
  }
}

}  // namespace

int main(int argc, char** argv) {
  Vint8_mac model;
  const auto run = [&model](const std::array<unit::Lanes, unit::kMaxOperands>& in) {
    write_bytes(model.a_i, in[0]);
    write_bytes(model.b_i, in[1]);
    unit::write_lanes(model.c_i, in[2]);
    model.eval();
    return unit::read_lanes(model.result_o);
  };
  constexpr std::uint64_t kCount = 1'000'000;
  const unit::Bench bench{"int8_mac",
                          {{"int8_mac", {unit::kI8, unit::kI8, unit::kI32}, unit::kI32, run}},
                          kCount,
                          generate};
  return unit::bench_main(bench, argc, argv);
}
