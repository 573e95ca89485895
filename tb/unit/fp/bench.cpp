// SPDX-License-Identifier: Apache-2.0
#include "bench.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string_view>

#include "testfloat.hpp"
#include "verilated.h"

namespace unit {
namespace {

constexpr std::uint64_t kPrintedDifferences = 10;
constexpr int kExitDifferences = 1;
constexpr int kExitInput = 2;

struct Options {
  std::uint64_t seed = 0;
  std::uint64_t count = 0;
  std::string operation;  // empty: all
  std::string vectors;    // empty: the bench's own
  std::string result;
};

std::uint64_t number(const std::string& option, const std::string& text) {
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isdigit(c) != 0;
  });
  constexpr std::size_t kMaxDigits = 19;
  if (!digits || text.size() > kMaxDigits) {
    throw InputError("command line", option, "'" + text + "'", "a number");
  }
  return std::stoull(text);
}

Options parse(const Bench& bench, int argc, char** argv) {
  std::map<std::string, std::string> given{{"--seed", "1"},
                                           {"--count", std::to_string(bench.default_count)},
                                           {"--operation", ""},
                                           {"--vectors", ""},
                                           {"--result", ""}};
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (option[0] == '+') break;  // the RTL's own; they come last
    if (given.count(option) == 0 || i + 1 == argc) {
      throw InputError("command line", "option", option,
                       "--seed, --count, --operation, --vectors or --result, and a value");
    }
    given[option] = argv[i + 1];
  }
  return {number("--seed", given["--seed"]), number("--count", given["--count"]),
          given["--operation"], given["--vectors"], given["--result"]};
}

std::vector<const Operation*> selected(const Bench& bench, const std::string& name) {
  std::vector<const Operation*> operations;
  std::string names;
  for (const Operation& operation : bench.operations) {
    if (name.empty() || name == operation.name) operations.push_back(&operation);
    names.append(names.empty() ? "" : ", ").append(operation.name);
  }
  if (operations.empty()) throw InputError("command line", "--operation", name, "one of " + names);
  return operations;
}

int run(const Bench& bench, const Options& options) {
  std::uint64_t compared = 0;
  std::uint64_t differing = 0;
  Random random(options.seed);
  const std::vector<const Operation*> operations = selected(bench, options.operation);
  if (!options.vectors.empty() && operations.size() != 1) {
    throw InputError("command line", "--operation", "none", "the operation of the vector file");
  }
  for (const Operation* operation : operations) {
    Checker checker(*operation);
    if (options.vectors.empty()) {
      bench.generate(*operation, checker, random, options.count);
    } else {
      check_file(options.vectors, *operation, checker);
    }
    checker.finish();
    compared += checker.compared();
    differing += checker.differing();
  }
  if (!options.result.empty()) {
    std::ofstream result(options.result);
    result << "{\"test\": \"" << bench.test << "\", \"compared\": " << compared
           << ", \"differing\": " << differing << ", \"seed\": " << options.seed << "}\n";
    result.close();
    if (!result) throw InputError(options.result, "file", "no success", "a file to write");
  }
  return differing == 0 ? 0 : kExitDifferences;
}

}  // namespace

std::string describe(const Format& format, std::uint32_t bits_of) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "0x%0*x (%.9g)", format.hex_digits(), bits_of,
                value_of(format, bits_of));
  return text.data();
}

void Checker::add(const Operands& operands, std::uint32_t expected) {
  for (std::size_t i = 0; i < kMaxOperands; ++i) in_[i][filled_] = operands[i];
  expected_[filled_] = operation_.result.canonical(expected);
  if (++filled_ == kLanes) run_batch();
}

void Checker::finish() {
  if (filled_ != 0) run_batch();
}

void Checker::run_batch() {
  const Lanes actual = operation_.run(in_);
  for (std::size_t lane = 0; lane < filled_; ++lane) {
    if (actual[lane] == expected_[lane]) continue;
    if (differing_ < kPrintedDifferences) print(lane, actual[lane]);
    ++differing_;
  }
  compared_ += filled_;
  filled_ = 0;
}

void Checker::print(std::size_t lane, std::uint32_t actual) const {
  std::string text = operation_.name;
  for (std::size_t i = 0; i < operation_.operands.size(); ++i) {
    text.append(" ").append(describe(operation_.operands[i], in_[i][lane]));
  }
  text.append(": expected ").append(describe(operation_.result, expected_[lane]));
  text.append(", actual ").append(describe(operation_.result, actual));
  std::puts(text.c_str());
}

Random::Random(std::uint64_t seed) {
  // splitmix64, so that seeds that differ in one bit give unrelated sequences.
  for (std::uint64_t& word : state_) {
    std::uint64_t z = (seed += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    word = z ^ (z >> 31);
  }
}

std::uint64_t Random::next() {
  const auto rotate = [](std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); };
  const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotate(state_[3], 45);
  return result;
}

int bench_main(const Bench& bench, int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  try {
    return run(bench, parse(bench, argc, argv));
  } catch (const InputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return kExitInput;
  }
}

}  // namespace unit
