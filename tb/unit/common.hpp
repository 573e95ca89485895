// SPDX-License-Identifier: Apache-2.0
// What every bench of a block shares: the width of the bus, the failure, the random source.
#pragma once

#include <cstdint>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <vector>

#include "Vbench.h"

#ifndef BUS_BITS
#define BUS_BITS 256
#endif

constexpr unsigned kBusBytes = BUS_BITS / 8;

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void fail(const char* text) { throw Failure(text); }

template <typename... Args>
[[noreturn]] void fail(const char* format, Args... args) {
  char text[256];
  std::snprintf(text, sizeof text, format, args...);
  throw Failure(text);
}

template <typename... Args>
void check(bool ok, const char* format, Args... args) {
  if (!ok) fail(format, args...);
}

using Beat = std::vector<uint8_t>;

struct Random {
  std::mt19937_64 engine;
  explicit Random(uint64_t seed) : engine(seed) {}
  uint64_t below(uint64_t n) { return engine() % n; }
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  bool chance(unsigned percent) { return below(100) < percent; }
  Beat beat() {
    Beat bytes(kBusBytes);
    for (auto& byte : bytes) byte = static_cast<uint8_t>(engine());
    return bytes;
  }
  // Small values most of the time, the whole range now and then.
  uint64_t size(uint64_t limit) {
    const uint64_t bound = chance(60) ? 64 : chance(80) ? 1024 : limit;
    return between(1, bound < limit ? bound : limit);
  }
};

// In what percentage of cycles each of N channels stalls.
template <size_t N>
struct Stalls {
  std::array<unsigned, N> percent{};
  void all(unsigned same) { percent.fill(same); }
  // All alike, or each for itself: one that is slow beside others that are fast.
  template <size_t M>
  void shuffle(Random& random, const unsigned (&choices)[M]) {
    const unsigned same = choices[random.below(M)];
    const bool apart = random.chance(50);
    for (unsigned& one : percent) one = apart ? choices[random.below(M)] : same;
  }
};
