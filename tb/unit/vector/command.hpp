// SPDX-License-Identifier: Apache-2.0
// VECTOR commands: random programs, views and types, and what they must do to the memory.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>

#include "interpret.hpp"
#include "world.hpp"

using Dims = std::array<uint32_t, 5>;

// In-place commands and destinations share the region of the engine's writes.
constexpr uint64_t kDstBase = kMoveBase, kDstEnd = kMoveEnd;

struct View {
  unsigned dtype = 0;
  uint64_t base = 0;
  Dims stride{};

  unsigned elem() const { return interpret::kBytes[dtype]; }
  uint64_t at(const Dims& place) const {
    uint64_t sum = 0;
    for (unsigned d = 0; d < 5; ++d) sum += uint64_t(place[d]) * stride[d];
    return base + sum * elem();
  }
  uint64_t span(const Dims& size) const {
    uint64_t last = 0;
    for (unsigned d = 0; d < 5; ++d) last += uint64_t(size[d] - 1) * stride[d];
    return (last + 1) * elem();
  }
};

struct VectorCommand {
  unsigned program = 0;
  std::array<uint32_t, 4> imm{};
  Dims size{1, 1, 1, 1, 1};
  std::array<View, 4> view;  // src1, src2, src3, dst

  const npu::isa::VectorProgram& info() const { return npu::isa::kPrograms[program]; }
  bool reduces() const { return info().reduce != npu::isa::Reduce::kNone; }
  const View& dst() const { return view[3]; }
  Dims dst_size() const {
    Dims dims = size;
    if (reduces()) dims[4] = 1;
    return dims;
  }
  static uint64_t count(const Dims& dims) {
    return std::accumulate(dims.begin(), dims.end(), uint64_t(1), std::multiplies<>());
  }
  // Calls visit(place) for every place of `dims` in row-major order.
  template <typename Visit>
  static void each(const Dims& dims, Visit visit) {
    for (uint64_t i = 0; i < count(dims); ++i) {
      Dims place{};
      uint64_t rest = i;
      for (int d = 4; d >= 0; --d) {
        place[d] = uint32_t(rest % dims[d]);
        rest /= dims[d];
      }
      visit(place);
    }
  }

  uint32_t element(const Memory& memory, const Dims& place) const {
    interpret::Element element;
    element.imm = imm;
    element.index = place[4];
    for (unsigned i = 0; i < info().sources; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, &memory.bytes[view[i].at(place) - kMemBase], view[i].elem());
      element.source[i] = interpret::load(view[i].dtype, bits);
    }
    return interpret::run(info(), element);
  }
  void apply(Memory& memory) const {
    each(dst_size(), [&](Dims place) {
      uint32_t word = 0;
      if (reduces()) {
        std::vector<uint32_t> row;
        for (place[4] = 0; place[4] < size[4]; ++place[4]) row.push_back(element(memory, place));
        word = interpret::reduce_row(info().reduce, row);
        place[4] = 0;
      } else {
        word = element(memory, place);
      }
      const uint64_t bits = interpret::store(dst().dtype, word);
      std::memcpy(&memory.want(dst().at(place)), &bits, dst().elem());
    });
  }
  bool reads_bad(const Memory& memory) const {
    bool bad = false;
    for (unsigned i = 0; i < info().sources; ++i)
      each(size, [&](const Dims& place) { bad |= memory.bad_at(view[i].at(place)); });
    return bad;
  }
  bool writes_bad(const Memory& memory) const {
    bool bad = false;
    each(dst_size(), [&](const Dims& place) { bad |= memory.bad_at(dst().at(place)); });
    return bad;
  }
};

// Numbers of every class, and of a size that arithmetic does something with.
inline uint32_t random_float(Random& random) {
  static constexpr uint32_t kSpecial[] = {0x00000000, 0x00000001, 0x007FFFFF, 0x00800000,
                                          0x3F800000, 0x4F000000, 0x7F7FFFFF, 0x7F800000,
                                          0x7F800001, 0x7FC00000};
  const auto word = static_cast<uint32_t>(random.engine());
  if (random.chance(10)) return kSpecial[random.below(std::size(kSpecial))] | (word & 0x80000000);
  if (random.chance(10)) return word;
  if (random.chance(20)) return std::bit_cast<uint32_t>(float(int(word % 65) - 32) / 2);
  return (word & 0x807FFFFF) | static_cast<uint32_t>(random.between(110, 140)) << 23;
}

inline uint64_t random_bits(Random& random, unsigned dtype) {
  if (dtype <= interpret::kBf16) return interpret::store(dtype, random_float(random));
  const uint64_t word = random.engine();
  return random.chance(50) ? word : word % 5;  // truth values and equal elements
}

// Strides in which the dimensions follow each other in a random order, dense or with gaps.
inline Dims random_strides(Random& random, const Dims& size, bool in_order) {
  std::array<unsigned, 5> order{4, 3, 2, 1, 0};
  if (!in_order) std::shuffle(order.begin(), order.end(), random.engine);
  Dims stride{};
  uint64_t next = random.chance(80) ? 1 : random.between(1, 3);
  for (const unsigned d : order) {
    stride[d] = static_cast<uint32_t>(next);
    next *= size[d];
    if (random.chance(30)) next += random.below(9);
  }
  return stride;
}

inline Dims random_size(Random& random, uint64_t room) {
  const unsigned rank = static_cast<unsigned>(random.between(1, 5));
  Dims size{1, 1, 1, 1, 1};
  for (unsigned d = 5 - rank; d < 5; ++d) {
    const uint64_t limit = std::max<uint64_t>(room, 1);
    size[d] = uint32_t(random.chance(25) ? random.between(1, std::min<uint64_t>(limit, 3))
                                         : random.size(limit));
    room /= size[d];
  }
  std::shuffle(size.begin() + (5 - rank), size.end(), random.engine);
  return size;
}

class CommandMaker {
 public:
  CommandMaker(Memory& memory, Random& random) : memory_(memory), random_(random) {}

  VectorCommand make() {
    while (true) {
      VectorCommand command;
      command.program = unsigned(random_.below(npu::isa::kPrograms.size()));
      for (auto& word : command.imm)
        word = random_.chance(70) ? random_float(random_) : uint32_t(random_.engine());
      command.size = random_size(random_, random_.chance(90) ? 1500 : 12000);
      if (place(command)) {
        fill(command);
        return command;
      }
    }
  }

  // Random numbers in the sources; what memory should be, too.
  void fill(const VectorCommand& command) {
    for (unsigned i = 0; i < command.info().sources; ++i) {
      const View& view = command.view[i];
      VectorCommand::each(command.size, [&](const Dims& place) {
        const uint64_t bits = random_bits(random_, view.dtype);
        std::memcpy(&memory_.at(view.at(place)), &bits, view.elem());
        std::memcpy(&memory_.want(view.at(place)), &bits, view.elem());
      });
    }
  }

 private:
  bool put(View& view, const Dims& size, uint64_t base, uint64_t end) {
    const uint64_t span = view.span(size);
    if (span > end - base) return false;
    view.base = base + random_.below((end - base - span) / view.elem() + 1) * view.elem();
    view.base -= view.base % view.elem();
    return view.base >= base;
  }

  bool place(VectorCommand& command) {
    View& dst = command.view[3];
    dst.dtype = unsigned(random_.below(7));
    dst.stride = random_strides(random_, command.dst_size(), random_.chance(70));
    if (!put(dst, command.dst_size(), kDstBase, kDstEnd)) return false;
    // Two elements of a vector that is stored in place must not be one element of the source.
    const unsigned sources = command.info().sources;
    const unsigned in_place = !command.reduces() && sources != 0 && random_.chance(20)
                                  ? unsigned(random_.below(sources))
                                  : 3;
    for (unsigned i = 0; i < sources; ++i) {
      View& view = command.view[i];
      if (i == in_place) {
        view = dst;
        continue;
      }
      view.dtype = unsigned(random_.below(7));
      view.stride = random_strides(random_, command.size, random_.chance(60));
      for (auto& stride : view.stride)
        if (random_.chance(15)) stride = 0;
      if (!put(view, command.size, kConstBase, kConstEnd)) return false;
    }
    return true;
  }

  Memory& memory_;
  Random& random_;
};

// Gives the engine one command at a time and keeps the times of the last one.
class Vectorer : public Model {
 public:
  static constexpr unsigned kReaders = 3, kWriters = 1;
  uint64_t started = 0, finished = 0;
  unsigned err = 0;
  uint64_t active = 0, operand_stall = 0, result_stall = 0;

  void start(const VectorCommand& command) {
    command_ = command;
    offered_ = busy_ = true;
    active = operand_stall = result_stall = 0;
  }
  void drive(Vbench& top) override {
    top.cmd_valid = offered_;
    top.cmd_program = static_cast<uint16_t>(command_.program);
    for (unsigned i = 0; i < 4; ++i) {
      top.cmd_imm[i] = command_.imm[i];
      top.cmd_dtype[i] = static_cast<uint8_t>(command_.view[i].dtype);
      top.cmd_base[i] = command_.view[i].base;
      for (unsigned d = 0; d < 5; ++d) top.cmd_stride[i][d] = command_.view[i].stride[d];
    }
    const Dims dst_size = command_.dst_size();
    for (unsigned d = 0; d < 5; ++d) {
      top.cmd_size[d] = command_.size[d];
      top.cmd_dst_size[d] = dst_size[d];
    }
  }
  void sample(Vbench& top, uint64_t cycle) override {
    if (top.cmd_valid && top.cmd_ready) {
      started = cycle;
      offered_ = false;
    }
    check(__builtin_popcount(top.stats) <= 1, "stats %u: more than one kind of cycle", top.stats);
    active += top.stats >> 2 & 1;
    operand_stall += top.stats >> 1 & 1;
    result_stall += top.stats & 1;
    if (!top.done) return;
    check(busy_ && !offered_, "vector: done without a command%s", "");
    finished = cycle;
    err = top.err;
    busy_ = false;
  }
  bool idle() const override { return !busy_; }

 private:
  VectorCommand command_;
  bool offered_ = false, busy_ = false;
};
