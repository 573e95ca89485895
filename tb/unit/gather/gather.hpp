// SPDX-License-Identifier: Apache-2.0
// GATHER and SCATTER commands: random views and indices, and what they must do to the memory.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>

#include "sum.hpp"
#include "world.hpp"

using Dims = std::array<uint32_t, 5>;

// Indices lie below what else is constant.
constexpr uint64_t kIndexEnd = kConstBase + 0x40000;
constexpr std::array<unsigned, 7> kBytes{4, 2, 2, 1, 4, 1, 8};

struct GatherCommand {
  bool scatter = false, add = false, wide = false;  // wide: INT64 indices
  unsigned dtype = 0, dim = 4;
  Dims size{1, 1, 1, 1, 1};  // of indices and plain side
  Dims table_size{1, 1, 1, 1, 1}, table_stride{}, index_stride{}, plain_stride{};
  uint64_t table = 0, index = kConstBase, plain = 0;

  unsigned elem() const { return kBytes[dtype]; }
  unsigned index_bytes() const { return wide ? 8 : 4; }
  uint64_t count() const { return product(size); }
  static uint64_t product(const Dims& dims) {
    return std::accumulate(dims.begin(), dims.end(), uint64_t(1), std::multiplies<>());
  }
  // Elements from the first to the last of a view.
  static uint64_t extent(const Dims& size, const Dims& stride) {
    uint64_t last = 0;
    for (unsigned d = 0; d < 5; ++d) last += uint64_t(size[d] - 1) * stride[d];
    return last + 1;
  }
  static Dims place(uint64_t i, const Dims& size) {
    Dims at{};
    for (int d = 4; d >= 0; --d) {
      at[d] = uint32_t(i % size[d]);
      i /= size[d];
    }
    return at;
  }
  static uint64_t offset(const Dims& at, const Dims& stride) {
    uint64_t sum = 0;
    for (unsigned d = 0; d < 5; ++d) sum += uint64_t(at[d]) * stride[d];
    return sum;
  }
  uint64_t index_addr(const Dims& at) const {
    return index + offset(at, index_stride) * index_bytes();
  }
  uint64_t plain_addr(const Dims& at) const { return plain + offset(at, plain_stride) * elem(); }
  uint64_t table_addr(Dims at, uint32_t chosen) const {
    at[dim] = chosen;
    return table + offset(at, table_stride) * elem();
  }
};

// A little-endian number of `bytes` bytes.
inline uint64_t load(const std::vector<uint8_t>& bytes, uint64_t addr, unsigned count) {
  uint64_t value = 0;
  std::memcpy(&value, &bytes[addr - kMemBase], count);
  return value;
}
inline void store(std::vector<uint8_t>& bytes, uint64_t addr, unsigned count, uint64_t value) {
  std::memcpy(&bytes[addr - kMemBase], &value, count);
}

// Runs the command on what memory should be, as far as its first error. Tells which error codes the
// engine may answer with.
struct Outcome {
  unsigned error = 0;      // of the first element that has one, but for writes
  bool write_bad = false;  // a write before that fails

  bool allows(unsigned code) const {
    if (write_bad) return code == 9 || (error != 0 && code == error);
    return code == error;
  }
};

inline Outcome apply(const GatherCommand& c, Memory& memory) {
  Outcome outcome;
  auto bad = [&](uint64_t addr, unsigned bytes) {
    return memory.bad_within(addr, addr + bytes - 1);
  };
  for (uint64_t i = 0; i < c.count(); ++i) {
    const Dims at = GatherCommand::place(i, c.size);
    const uint64_t where = c.index_addr(at);
    outcome.error = 8;
    if (bad(where, c.index_bytes())) return outcome;
    int64_t chosen = int64_t(load(memory.expected, where, c.index_bytes()));
    if (!c.wide) chosen = int32_t(chosen);
    if (chosen < 0 || chosen >= int64_t(c.table_size[c.dim])) {
      outcome.error = 10;
      return outcome;
    }
    const uint64_t entry = c.table_addr(at, uint32_t(chosen)), plain = c.plain_addr(at);
    const uint64_t from = c.scatter ? plain : entry, to = c.scatter ? entry : plain;
    if (bad(from, c.elem()) || (c.add && bad(to, c.elem()))) return outcome;
    outcome.error = 0;
    outcome.write_bad |= bad(to, c.elem());
    uint64_t value = load(memory.expected, from, c.elem());
    if (c.add)
      value = added(c.dtype, uint32_t(load(memory.expected, to, c.elem())), uint32_t(value));
    store(memory.expected, to, c.elem(), value);
  }
  return outcome;
}

// Draws commands, and puts their indices into memory.
class GatherMaker {
 public:
  GatherMaker(Memory& memory, Random& random) : memory_(memory), random_(random) {}

  GatherCommand make() {
    while (true) {
      GatherCommand c = shape();
      if (!place(c)) continue;
      write_indices(c);
      if (c.add && random_.chance(80)) ordinary_values(c);
      return c;
    }
  }

  // Makes one index wrong.
  void spoil_index(const GatherCommand& c) {
    const Dims at = GatherCommand::place(random_.below(c.count()), c.size);
    const uint64_t limit = c.table_size[c.dim];
    const uint64_t wrong[] = {limit,
                              ~uint64_t(0),
                              uint64_t(1) << 31,
                              uint64_t(1) << 32,
                              uint64_t(1) << 63,
                              limit + random_.below(1000)};
    put_index(c, c.index_addr(at), wrong[random_.below(c.wide ? 6 : 3)]);
  }

 private:
  GatherCommand shape() {
    GatherCommand c;
    c.scatter = random_.chance(60);
    c.add = c.scatter && random_.chance(60);
    static constexpr unsigned kAdds[] = {0, 1, 2, 4};
    c.dtype = unsigned(c.add ? kAdds[random_.below(4)] : random_.below(7));
    c.wide = random_.chance(50);
    const unsigned rank = unsigned(random_.between(1, 5));
    c.dim = 5 - rank + unsigned(random_.below(rank));
    uint64_t room = random_.chance(90) ? 1500 : 12000;
    for (unsigned d = 5 - rank; d < 5; ++d) {
      const uint64_t limit = random_.chance(30) ? 3 : random_.size(std::max<uint64_t>(room, 1));
      c.size[d] = uint32_t(random_.between(1, std::max<uint64_t>(std::min(limit, room), 1)));
      room /= c.size[d];
    }
    std::shuffle(c.size.begin() + (5 - rank), c.size.end(), random_.engine);
    c.table_size = c.size;
    c.table_size[c.dim] = uint32_t(random_.size(300));
    const bool rows = random_.chance(50);  // whole rows of the table: an embedding
    c.table_stride = strides(c.table_size, rows || random_.chance(50), rows);
    c.plain_stride = strides(c.size, random_.chance(70), random_.chance(60));
    c.index_stride = strides(c.size, random_.chance(70), random_.chance(60));
    for (unsigned d = 0; d < 5; ++d) {
      if (d > c.dim ? rows || random_.chance(20) : random_.chance(10)) c.index_stride[d] = 0;
      if (c.scatter && random_.chance(10)) c.plain_stride[d] = 0;
    }
    return c;
  }

  // Dimensions follow each other in a random order, dense or with gaps; those of size 1 may have
  // any stride.
  Dims strides(const Dims& size, bool in_order, bool dense) {
    std::array<unsigned, 5> order{4, 3, 2, 1, 0};
    if (!in_order) std::shuffle(order.begin(), order.end(), random_.engine);
    Dims stride{};
    uint64_t next = dense ? 1 : random_.between(1, 3);
    for (const unsigned d : order) {
      stride[d] = uint32_t(next);
      next *= size[d];
      if (!dense && random_.chance(30)) next += random_.below(9);
      if (size[d] == 1 && random_.chance(30)) stride[d] = uint32_t(random_.below(1000000));
    }
    return stride;
  }

  // Finds places for the tensors; false when they are too large.
  bool place(GatherCommand& c) {
    uint64_t& source = c.scatter ? c.plain : c.table;
    uint64_t& target = c.scatter ? c.table : c.plain;
    const uint64_t table = GatherCommand::extent(c.table_size, c.table_stride) * c.elem();
    const uint64_t plain = GatherCommand::extent(c.size, c.plain_stride) * c.elem();
    const uint64_t index = GatherCommand::extent(c.size, c.index_stride) * c.index_bytes();
    return put(source, kIndexEnd, kConstEnd, c.scatter ? plain : table, c.elem()) &&
           put(target, kMoveBase, kMoveEnd, c.scatter ? table : plain, c.elem()) &&
           put(c.index, kConstBase, kIndexEnd, index, c.index_bytes());
  }
  bool put(uint64_t& base, uint64_t first, uint64_t end, uint64_t bytes, unsigned align) {
    if (bytes > end - first) return false;
    base = first + random_.below((end - first - bytes) / align + 1) * align;
    return true;
  }

  void put_index(const GatherCommand& c, uint64_t addr, uint64_t value) {
    store(memory_.bytes, addr, c.index_bytes(), value);
    store(memory_.expected, addr, c.index_bytes(), value);
  }
  void write_indices(const GatherCommand& c) {
    // Few different ones make equal places, one after the other or nearly so.
    const uint64_t limit = c.table_size[c.dim];
    const uint64_t few =
        random_.chance(40) ? std::min<uint64_t>(limit, random_.between(1, 4)) : limit;
    for (uint64_t i = 0; i < c.count(); ++i)
      put_index(c, c.index_addr(GatherCommand::place(i, c.size)), random_.below(few));
  }

  // Numbers of like magnitude instead of random bits: their sums round.
  void ordinary_values(const GatherCommand& c) {
    auto fill = [&](const Dims& size, const Dims& stride, uint64_t base) {
      for (uint64_t i = 0; i < GatherCommand::product(size); ++i) {
        const uint64_t addr =
            base + GatherCommand::offset(GatherCommand::place(i, size), stride) * c.elem();
        const uint64_t value = ordinary(c.dtype);
        store(memory_.bytes, addr, c.elem(), value);
        store(memory_.expected, addr, c.elem(), value);
      }
    };
    fill(c.size, c.plain_stride, c.plain);
    fill(c.table_size, c.table_stride, c.table);
  }
  uint64_t ordinary(unsigned dtype) {
    const uint64_t bits = random_.engine();
    static constexpr uint64_t kKeep[] = {0x83ffffff, 0x8fff, 0x83ff, 0, 0xffffffff};
    static constexpr uint64_t kSet[] = {0x3c000000, 0x3000, 0x3c00, 0, 0};
    return (bits & kKeep[dtype]) | kSet[dtype];
  }

  Memory& memory_;
  Random& random_;
};

// Gives the engine one command at a time and keeps the times of the last one.
class Gatherer : public Model {
 public:
  static constexpr unsigned kReaders = 2, kWriters = 1;

  uint64_t started = 0, finished = 0;
  unsigned err = 0;

  void start(const GatherCommand& command) {
    c_ = command;
    offered_ = busy_ = true;
  }
  void drive(Vbench& top) override {
    top.cmd_valid = offered_;
    top.cmd_scatter = c_.scatter;
    top.cmd_add = c_.add;
    top.cmd_dtype = c_.dtype;
    top.cmd_wide = c_.wide;
    top.cmd_dim = c_.dim;
    top.cmd_table_base = c_.table;
    top.cmd_index_base = c_.index;
    top.cmd_plain_base = c_.plain;
    for (unsigned d = 0; d < 5; ++d) {
      top.cmd_size[d] = c_.size[d];
      top.cmd_table_size[d] = c_.table_size[d];
      top.cmd_table_stride[d] = c_.table_stride[d];
      top.cmd_index_stride[d] = c_.index_stride[d];
      top.cmd_plain_stride[d] = c_.plain_stride[d];
    }
  }
  void sample(Vbench& top, uint64_t cycle) override {
    if (top.cmd_valid && top.cmd_ready) {
      started = cycle;
      offered_ = false;
    }
    check(__builtin_popcount(top.stats) <= 1, "stats %u: more than one kind of cycle", top.stats);
    if (!top.done) return;
    check(busy_ && !offered_, "gather: done without a command%s", "");
    finished = cycle;
    err = top.err;
    busy_ = false;
  }
  bool idle() const override { return !busy_; }

 private:
  GatherCommand c_;
  bool offered_ = false, busy_ = false;
};
