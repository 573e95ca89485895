// SPDX-License-Identifier: Apache-2.0
// COPY and FILL commands: random views, and what they must do to the memory.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>

#include "world.hpp"

struct MoveCommand {
  bool fill = false;
  unsigned dtype = 0;
  uint32_t value = 0;
  uint64_t src = kConstBase, dst = kMoveBase;
  std::array<uint32_t, 5> size{1, 1, 1, 1, 1}, src_stride{}, dst_stride{};

  unsigned elem() const { return std::array<unsigned, 7>{4, 2, 2, 1, 4, 1, 8}[dtype]; }
  uint64_t count() const {
    return std::accumulate(size.begin(), size.end(), uint64_t(1), std::multiplies<>());
  }
  uint64_t span(const std::array<uint32_t, 5>& stride) const {
    uint64_t last = 0;
    for (unsigned d = 0; d < 5; ++d) last += uint64_t(size[d] - 1) * stride[d];
    return (last + 1) * elem();
  }
  // Calls visit(source address, destination address) for every element in row-major order.
  template <typename Visit>
  void each(Visit visit) const {
    for (uint64_t i = 0; i < count(); ++i) {
      uint64_t rest = i, from = src, to = dst;
      for (int d = 4; d >= 0; --d) {
        from += rest % size[d] * src_stride[d] * elem();
        to += rest % size[d] * dst_stride[d] * elem();
        rest /= size[d];
      }
      visit(from, to);
    }
  }
  void apply(Memory& memory) const {
    each([&](uint64_t from, uint64_t to) {
      for (unsigned b = 0; b < elem(); ++b)
        memory.want(to + b) = fill ? uint8_t(value >> 8 * b) : memory.at(from + b);
    });
  }
  bool touches_bad(const Memory& memory, bool source) const {
    bool bad = false;
    each([&](uint64_t from, uint64_t to) { bad |= memory.bad_at(source ? from : to); });
    return bad;
  }
};

// Strides in which the dimensions follow each other in a random order, dense or with gaps.
inline std::array<uint32_t, 5> random_strides(Random& random, const std::array<uint32_t, 5>& size,
                                              bool in_order) {
  std::array<unsigned, 5> order{4, 3, 2, 1, 0};
  if (!in_order) std::shuffle(order.begin(), order.end(), random.engine);
  std::array<uint32_t, 5> stride{};
  uint64_t next = random.chance(80) ? 1 : random.between(1, 3);
  for (const unsigned d : order) {
    stride[d] = static_cast<uint32_t>(next);
    next *= size[d];
    if (random.chance(30)) next += random.below(9);
    if (size[d] == 1 && random.chance(30)) stride[d] = static_cast<uint32_t>(random.engine());
  }
  return stride;
}

inline MoveCommand random_move(Random& random) {
  MoveCommand move;
  move.fill = random.chance(25);
  move.dtype = static_cast<unsigned>(random.below(move.fill ? 6 : 7));  // no FILL of INT64
  move.value = static_cast<uint32_t>(random.engine());
  while (true) {
    const unsigned rank = static_cast<unsigned>(random.between(1, 5));
    uint64_t room = random.chance(85) ? 2048 : 70000;
    for (unsigned d = 0; d < 5; ++d) {
      move.size[d] =
          d < 5 - rank ? 1 : static_cast<uint32_t>(random.size(std::max<uint64_t>(room, 1)));
      if (d >= 5 - rank && random.chance(25))
        move.size[d] = static_cast<uint32_t>(random.between(1, 3));
      move.size[d] =
          static_cast<uint32_t>(std::min<uint64_t>(move.size[d], std::max<uint64_t>(room, 1)));
      room /= move.size[d];
    }
    std::shuffle(move.size.begin() + (5 - rank), move.size.end(), random.engine);
    move.src_stride = random_strides(random, move.size, random.chance(60));
    move.dst_stride = random_strides(random, move.size, random.chance(70));
    for (unsigned d = 0; d < 5; ++d)
      if (random.chance(15)) move.src_stride[d] = 0;
    // Strides of dimensions of size 1 are ignored, whatever they are.
    const uint64_t src_span = move.span(move.src_stride), dst_span = move.span(move.dst_stride);
    if (src_span > kConstEnd - kConstBase || dst_span > kMoveEnd - kMoveBase) continue;
    const unsigned elem = move.elem();
    move.src = kConstBase + random.below((kConstEnd - kConstBase - src_span) / elem + 1) * elem;
    move.dst = kMoveBase + random.below((kMoveEnd - kMoveBase - dst_span) / elem + 1) * elem;
    return move;
  }
}

// Gives the engine one command at a time and keeps the times of the last one.
class Mover : public Model {
 public:
  static constexpr unsigned kReaders = 1, kWriters = 1;
  uint64_t started = 0, finished = 0;
  unsigned err = 0;
  uint64_t active = 0, operand_stall = 0, result_stall = 0;

  void start(const MoveCommand& move) {
    move_ = move;
    offered_ = busy_ = true;
    active = operand_stall = result_stall = 0;
  }
  void drive(Vbench& top) override {
    top.cmd_valid = offered_;
    top.cmd_fill = move_.fill;
    top.cmd_dtype = move_.dtype;
    top.cmd_value = move_.value;
    top.cmd_src_base = move_.src;
    top.cmd_dst_base = move_.dst;
    for (unsigned d = 0; d < 5; ++d) {
      top.cmd_size[d] = move_.size[d];
      top.cmd_src_stride[d] = move_.src_stride[d];
      top.cmd_dst_stride[d] = move_.dst_stride[d];
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
    check(busy_ && !offered_, "move: done without a command%s", "");
    finished = cycle;
    err = top.err;
    busy_ = false;
  }
  bool idle() const override { return !busy_; }

 private:
  MoveCommand move_;
  bool offered_ = false, busy_ = false;
};
