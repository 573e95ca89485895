// SPDX-License-Identifier: Apache-2.0
// The memory of the command processor's bench, and what its engines are handed.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <vector>

#include "memory.h"
#include "program_table.hpp"
#include "windows.hpp"

using namespace npu::isa;

// Beyond 4 GiB, so that an address whose upper word is lost points outside.
constexpr uint64_t kMemBase = 0x5'0010'0000;
constexpr uint64_t kMemLimit = 0x5'0020'0000;

// Bytes of [kMemBase, kMemLimit); outside it, and on lines marked bad, every access is an error.
class Memory {
 public:
  Memory() : bytes_(kMemLimit - kMemBase) {}
  std::set<uint64_t> bad_lines;

  bool error_at(uint64_t addr) const {
    return addr < kMemBase || addr >= kMemLimit || bad_lines.count(addr / 64) != 0;
  }
  template <typename T>
  void put(uint64_t addr, const T& value) {
    std::memcpy(&bytes_.at(addr - kMemBase), &value, sizeof value);
  }
  template <typename T>
  T get(uint64_t addr) const {
    T value;
    std::memcpy(&value, &bytes_.at(addr - kMemBase), sizeof value);
    return value;
  }
  // The memory as the cmodel sees it.
  npu::Memory model() {
    npu::Memory memory(std::as_writable_bytes(std::span(bytes_)), kMemBase, kMemLimit);
    for (const uint64_t line : bad_lines) memory.poison(line * 64, 64, true, true);
    return memory;
  }

 private:
  std::vector<uint8_t> bytes_;
};

struct View {
  uint64_t base;
  uint32_t size[5], stride[5];
};

// In the order of engine_e.
enum Engine { kMove, kMatrix, kVector, kGather, kEngines };

// One channel per engine, then the second one of kMove.
constexpr unsigned kChannels = kEngines + 1;
constexpr Engine engine_of_channel(unsigned channel) {
  return channel == kEngines ? kMove : Engine(channel);
}

// What the counters of the device count.
struct Events {
  uint64_t active = 0, operand_stall = 0, result_stall = 0, read_beats = 0, write_beats = 0;
  bool operator==(const Events&) const = default;
};

constexpr unsigned kScales = 3;  // of a Dispatch's windows

// What an engine was handed: npu_engine_cmd_t.
struct Dispatch {
  uint64_t offered_at;  // cycle of the device in which it came to its engine
  Engine engine;
  uint32_t opcode, accumulate, int4_group, value, program, info, lines;
  std::array<uint32_t, kImmediates> imm;
  uint32_t dim;
  std::array<uint32_t, kMaxSources> src_dtypes;
  std::array<uint32_t, kMaxResults> dst_dtypes;
  std::array<View, kMaxSources> sources;
  std::array<View, kMaxResults> results;
  std::array<uint32_t, 4> product;    // MATMUL: m, k, n, batch
  std::array<WindowView, 5> windows;  // MATMUL: a, b, init, scales, c
};
