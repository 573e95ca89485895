// SPDX-License-Identifier: Apache-2.0
// What the benches behind the memory controller share: the memory, the bus beat, the model.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common.hpp"
#include "npu_isa.h"

// Error codes as the pins of an engine have them.
constexpr unsigned kBusRead = unsigned(npu::isa::ErrorCode::kBusRead);
constexpr unsigned kBusWrite = unsigned(npu::isa::ErrorCode::kBusWrite);
constexpr unsigned kBadIndex = unsigned(npu::isa::ErrorCode::kBadIndex);
constexpr unsigned kBadImage = unsigned(npu::isa::ErrorCode::kBadImage);

constexpr uint64_t kPage = 4096;
constexpr uint64_t kLine = 64;  // bytes that fail together; no bus beat is longer
// Not on a page, so that both ends of the range check are seen; beyond 4 GiB, so that an address
// whose upper word is lost points outside.
constexpr uint64_t kHigh = 0x3'0000'0000;
constexpr uint64_t kMemBase = kHigh + 0x100640;
constexpr uint64_t kMemLimit = kHigh + 0x2ff9c0;

// Regions by their writer, so that no two writers race.
constexpr uint64_t kConstBase = kMemBase, kConstEnd = kHigh + 0x200000;
constexpr uint64_t kClientBase = kConstEnd, kClientEnd = kHigh + 0x240000;
constexpr uint64_t kHostBase = kClientEnd, kHostEnd = kHigh + 0x280000;
constexpr uint64_t kEngineBase = kHostEnd, kEngineEnd = kMemLimit;

template <typename Wide>
Beat to_beat(const Wide& wide) {
  Beat beat(kBusBytes);
  std::memcpy(beat.data(), wide.data(), kBusBytes);
  return beat;
}

template <typename Wide>
void from_beat(Wide& wide, const Beat& beat) {
  std::memcpy(wide.data(), beat.data(), kBusBytes);
}

// The DRAM's bytes and what they should be; lines that answer with SLVERR.
struct Memory {
  std::vector<uint8_t> bytes, expected;
  std::vector<bool> bad;

  explicit Memory(Random& random)
      : bytes(kMemLimit - kMemBase), bad((kMemLimit - kMemBase) / kLine, false) {
    for (auto& byte : bytes) byte = static_cast<uint8_t>(random.engine());
    expected = bytes;
  }
  static bool inside(uint64_t addr) { return addr >= kMemBase && addr < kMemLimit; }
  uint8_t& at(uint64_t addr) { return bytes[addr - kMemBase]; }
  uint8_t& want(uint64_t addr) { return expected[addr - kMemBase]; }
  void clear_errors() { std::fill(bad.begin(), bad.end(), false); }
  bool bad_at(uint64_t addr) const { return bad[(addr - kMemBase) / kLine]; }
  // The response that its line gives: OKAY, or SLVERR or DECERR, as the line's number says.
  unsigned response_at(uint64_t addr) const { return bad_at(addr) ? 2 + addr / kLine % 2 : 0; }
  bool bad_within(uint64_t first, uint64_t last) const {
    for (uint64_t line = first / kLine; line <= last / kLine; ++line)
      if (bad_at(line * kLine)) return true;
    return false;
  }
  Beat line(uint64_t addr) const {
    const auto start = bytes.begin() + static_cast<long>(addr / kBusBytes * kBusBytes - kMemBase);
    return Beat(start, start + kBusBytes);
  }
  // Compares [first, last) and returns how many bytes that were.
  uint64_t compare(uint64_t first, uint64_t last, const char* what) {
    if (std::memcmp(&at(first), &want(first), last - first) != 0) {
      uint64_t addr = first;
      while (at(addr) == want(addr)) ++addr;
      fail("%s: byte %llx is %02x, expected %02x", what, (unsigned long long)addr, at(addr),
           want(addr));
    }
    return last - first;
  }
};

// One clock cycle of a model: drive the inputs, then look at what the edge will see.
struct Model {
  virtual ~Model() = default;
  virtual void drive(Vbench& top) = 0;
  virtual void sample(Vbench& top, uint64_t cycle) = 0;
  virtual bool idle() const = 0;
};
