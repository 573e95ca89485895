// SPDX-License-Identifier: Apache-2.0
// What the arithmetic benches share: operations, comparing in batches, the command line, the
// result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "format.hpp"

namespace unit {

inline constexpr std::size_t kLanes = 16;  // of every bench top
inline constexpr std::size_t kMaxOperands = 3;

using Operands = std::array<std::uint32_t, kMaxOperands>;
using Lanes = std::array<std::uint32_t, kLanes>;

/// One function under test. `run` evaluates all lanes of the model: lane l of operand i is
/// in[i][l].
struct Operation {
  std::string name;
  std::vector<Format> operands;
  Format result;
  std::function<Lanes(const std::array<Lanes, kMaxOperands>& in)> run;
};

/// Feeds vectors to an operation, counts and prints the differences.
class Checker {
 public:
  explicit Checker(const Operation& operation) : operation_(operation) {}
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  /// The result must have exactly the bits `expected`, a NaN those of the canonical one.
  void add(const Operands& operands, std::uint32_t expected);
  /// Evaluate what is left of the last batch. Call before reading the counts.
  void finish();

  [[nodiscard]] std::uint64_t compared() const { return compared_; }
  [[nodiscard]] std::uint64_t differing() const { return differing_; }

 private:
  void run_batch();
  void print(std::size_t lane, std::uint32_t actual) const;

  const Operation& operation_;
  std::array<Lanes, kMaxOperands> in_{};
  Lanes expected_{};
  std::size_t filled_ = 0;
  std::uint64_t compared_ = 0;
  std::uint64_t differing_ = 0;
};

/// Small fast generator (xoshiro256**), the same sequence on every host.
class Random {
 public:
  explicit Random(std::uint64_t seed);
  std::uint64_t next();
  std::uint32_t word() { return static_cast<std::uint32_t>(next() >> 32); }
  /// Uniform in [low, high].
  int between(int low, int high) {
    const auto range = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<int>((static_cast<std::uint64_t>(word()) * range) >> 32);
  }

 private:
  std::array<std::uint64_t, 4> state_{};
};

/// One bench: its operations, and the vectors it makes by itself.
struct Bench {
  std::string test;
  std::vector<Operation> operations;
  std::uint64_t default_count;  // random vectors per operation
  std::function<void(const Operation&, Checker&, Random&, std::uint64_t count)> generate;
};

/// The whole program. Exit status: 0 no difference, 1 differences, 2 bad input.
int bench_main(const Bench& bench, int argc, char** argv);

/// Calls the model once for a batch; ports of all bench tops are wide words of 32-bit lanes.
template <typename Port>
void write_lanes(Port& port, const Lanes& lanes) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) port[lane] = lanes[lane];
}

template <typename Port>
Lanes read_lanes(const Port& port) {
  Lanes lanes;
  for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = port[lane];
  return lanes;
}

}  // namespace unit
