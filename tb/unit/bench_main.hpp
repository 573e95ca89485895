// SPDX-License-Identifier: Apache-2.0
// The main program of a bench: `program [seed] [rounds] [result.json] [plusargs]`. Registers that
// are not reset start with random bits.
#pragma once

#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <string>

#include "common.hpp"

// What all parts of a bench together found.
struct Summary {
  uint64_t compared = 0;  // bytes, or commands
  std::string failure;
  std::map<std::string, double> figures;

  void write(const char* path) const {
    std::ofstream file(path);
    file << "{\"compared\": " << compared << ", \"failure\": " << quoted(failure)
         << ", \"figures\": {";
    const char* separator = "";
    for (const auto& [name, value] : figures) {
      file << separator << quoted(name) << ": " << value;
      separator = ", ";
    }
    file << "}}\n";
  }

 private:
  static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    return out + '"';
  }
};
inline Summary summary;

// Runs body(seed, rounds), reports its failure and writes the result. Returns the exit status.
template <typename Body>
int bench_main(int argc, char** argv, Body body) {
  Verilated::commandArgs(argc, argv);
  const uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1;
  const uint64_t rounds = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 20;
  Verilated::randReset(2);
  Verilated::randSeed(static_cast<int>(seed % 0x7fffffff) + 1);
  try {
    body(seed, rounds);
  } catch (const std::exception& failure) {
    summary.failure = failure.what();
    std::printf("FAILED   bus %d seed %llu: %s\n", BUS_BITS, (unsigned long long)seed,
                failure.what());
  }
  if (argc > 3) summary.write(argv[3]);
  return summary.failure.empty() ? 0 : 1;
}
