// SPDX-License-Identifier: Apache-2.0
// The memory of the command processor's bench, and what its engines are handed.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <ranges>
#include <set>
#include <span>
#include <vector>

#include "common.hpp"
#include "image.h"
#include "memory.h"
#include "program_table.hpp"
#include "windows.hpp"

using namespace npu::isa;

// Beyond 4 GiB, so that an address whose upper word is lost points outside.
constexpr uint64_t kMemBase = 0x5'0010'0000;
constexpr uint64_t kMemLimit = 0x5'0020'0000;
// Packets, descriptors and records are lines.
constexpr unsigned kLineBytes = unsigned(npu::kLineBytes);
constexpr unsigned kLineBeats = kLineBytes / kBusBytes;

// Bytes of [kMemBase, kMemLimit); outside it, and on lines marked bad, every access is an error.
class Memory {
 public:
  Memory() : bytes_(kMemLimit - kMemBase) {}
  std::set<uint64_t> bad_lines;

  bool error_at(uint64_t addr) const {
    return addr < kMemBase || addr >= kMemLimit || bad_lines.count(addr / kLineBytes) != 0;
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
    for (const uint64_t line : bad_lines) memory.poison(line * kLineBytes, kLineBytes, true, true);
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
enum Engine { kCopy, kMatrix, kVector, kGather, kEngines, kNoEngine = kEngines };

// One channel per engine, then the second one of kCopy.
constexpr unsigned kChannels = kEngines + 1;
constexpr Engine engine_of_channel(unsigned channel) {
  return channel == kEngines ? kCopy : Engine(channel);
}

// What the counters of the device count.
struct Events {
  uint64_t active = 0, operand_stall = 0, result_stall = 0, read_beats = 0, write_beats = 0;
  bool operator==(const Events&) const = default;
  void operator+=(const Events& more) {
    active += more.active;
    operand_stall += more.operand_stall;
    result_stall += more.result_stall;
    read_beats += more.read_beats;
    write_beats += more.write_beats;
  }
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

// Reads a Dispatch from the bits of npu_engine_cmd_t.
class DispatchReader {
 public:
  // Five windows of 608 bits, four sizes, seven tensors of 384 bits and 333 more.
  static constexpr unsigned kWords = (5 * 608 + 4 * 32 + 7 * 384 + 333 + 31) / 32;

  explicit DispatchReader(const std::vector<uint32_t>& words) : words_(words) {}

  Dispatch read() {
    Dispatch d{};
    for (WindowView& window : std::views::reverse(d.windows)) window = next_window();
    for (uint32_t& size : d.product) size = next(32);
    for (View& view : std::views::reverse(d.results)) view = next_view();
    for (View& view : std::views::reverse(d.sources)) view = next_view();
    d.dim = next(3);
    for (uint32_t& word : d.imm) word = next(32);
    d.lines = next(6);
    d.info = next(24);
    d.program = next(11);
    d.value = next(32);
    d.int4_group = next(4);
    d.accumulate = next(1);
    for (uint32_t& dtype : std::views::reverse(d.dst_dtypes)) dtype = next(4);
    for (uint32_t& dtype : std::views::reverse(d.src_dtypes)) dtype = next(4);
    d.opcode = next(32);
    return d;
  }

 private:
  // The next bits of the command, from its least significant one.
  uint32_t next(unsigned bits) {
    uint64_t window = words_.at(next_bit_ / 32);
    if (next_bit_ % 32 + bits > 32) window |= uint64_t(words_.at(next_bit_ / 32 + 1)) << 32;
    window >>= next_bit_ % 32;
    next_bit_ += bits;
    return uint32_t(window & ((uint64_t(1) << bits) - 1));
  }
  uint64_t next_word64() {
    const uint64_t low = next(32);
    return low | uint64_t(next(32)) << 32;
  }
  // npu_tensor_t: strides, sizes, base; index 4 is the innermost dimension.
  View next_view() {
    View view{};
    for (uint32_t& stride : view.stride) stride = next(32);
    for (uint32_t& size : view.size) size = next(32);
    view.base = next_word64();
    return view;
  }
  // npu_window_t: base, batch, columns, rows.
  WindowView next_window() {
    WindowView window;
    window.base = next_word64();
    window.batch = next(32);
    for (AxisView* axis : {&window.col, &window.row}) {
      axis->inner = next(32);
      axis->middle = next(32);
      for (uint64_t& step : axis->step) step = next_word64();
    }
    return window;
  }

  const std::vector<uint32_t>& words_;
  unsigned next_bit_ = 0;
};
