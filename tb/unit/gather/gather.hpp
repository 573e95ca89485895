// SPDX-License-Identifier: Apache-2.0
// GATHER and SCATTER commands: random views and indices, and what they must do to the memory.
#pragma once

#include "bench.hpp"
#include "gather.h"
#include "reference.hpp"

// Indices lie below what else is constant.
constexpr uint64_t kIndexEnd = kConstBase + 0x40000;

struct GatherCommand {
  bool scatter = false, add = false;
  unsigned dim = 4;
  TensorView table = view_of(DType::kFp32, kOnes, {});
  TensorView index = view_of(DType::kInt32, kOnes, {}, kConstBase);
  TensorView plain = view_of(DType::kFp32, kOnes, {});  // of the indices' sizes

  Dims size() const { return plain.shape.size; }
  uint64_t table_size() const { return table.shape.size[dim]; }  // in the dimension of the indices
  const TensorView& source() const { return scatter ? plain : table; }
  const TensorView& destination() const { return scatter ? table : plain; }
  void apply(Memory& memory) const {
    npu::Memory expected = expected_of(memory);
    const npu::IndexedCopy indexed{plain, index, table, dim};
    scatter ? npu::scatter(expected, indexed, add) : npu::gather(expected, indexed);
  }
};

// The number in [addr, addr + count) of what memory should be, little endian.
inline uint64_t load(const Memory& memory, uint64_t addr, unsigned count) {
  uint64_t value = 0;
  std::memcpy(&value, &memory.expected[addr - kMemBase], count);
  return value;
}
inline void store(Memory& memory, uint64_t addr, unsigned count, uint64_t value) {
  std::memcpy(&memory.at(addr), &value, count);
  std::memcpy(&memory.want(addr), &value, count);
}

// The error codes that the engine may answer with.
struct Outcome {
  unsigned error = 0;      // of the first element that has one, but for writes
  bool write_bad = false;  // a write before that fails

  bool clean() const { return error == 0 && !write_bad; }
  bool allows(unsigned code) const {
    if (write_bad) return code == kBusWrite || (error != 0 && code == error);
    return code == error;
  }
};

// Of the elements in row-major order. The cmodel looks at all indices first; the engine, as the
// contract allows, reports the first error that it meets.
inline Outcome outcome_of(const GatherCommand& c, const Memory& memory) {
  Outcome outcome;
  const auto bad = [&](uint64_t addr, unsigned bytes) {
    return memory.bad_within(addr, addr + bytes - 1);
  };
  const unsigned index_bytes = c.index.element_bytes(), bytes = c.table.element_bytes();
  for (uint64_t i = 0; i < count_of(c.size()); ++i) {
    Dims place = place_of(i, c.size());
    const uint64_t where = address_of(c.index, place), plain = address_of(c.plain, place);
    outcome.error = kBusRead;
    if (bad(where, index_bytes)) return outcome;
    const uint64_t bits = load(memory, where, index_bytes);
    const int64_t chosen = index_bytes == 8 ? int64_t(bits) : int32_t(bits);
    outcome.error = kBadIndex;
    if (chosen < 0 || chosen >= int64_t(c.table_size())) return outcome;
    place[c.dim] = uint64_t(chosen);
    const uint64_t entry = address_of(c.table, place);
    const uint64_t from = c.scatter ? plain : entry, to = c.scatter ? entry : plain;
    outcome.error = kBusRead;
    if (bad(from, bytes) || (c.add && bad(to, bytes))) return outcome;
    outcome.error = 0;
    outcome.write_bad |= bad(to, bytes);
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
    const Dims at = place_of(random_.below(count_of(c.size())), c.size());
    const uint64_t limit = c.table_size();
    const uint64_t wrong[] = {limit,
                              ~uint64_t(0),
                              uint64_t(1) << 31,
                              uint64_t(1) << 32,
                              uint64_t(1) << 63,
                              limit + random_.below(1000)};
    put_index(c, at, wrong[random_.below(c.index.dtype == DType::kInt64 ? 6 : 3)]);
  }

 private:
  GatherCommand shape() {
    GatherCommand c;
    c.scatter = random_.chance(60);
    c.add = c.scatter && random_.chance(60);
    c.table.dtype = c.add ? npu::isa::kScatterAddDTypes[random_.below(4)] : DType(random_.below(7));
    c.plain.dtype = c.table.dtype;
    c.index.dtype = random_.chance(50) ? DType::kInt64 : DType::kInt32;
    const uint64_t rank = random_.between(1, 5);
    c.dim = unsigned(5 - rank + random_.below(rank));
    const Dims size = sizes(rank);
    c.plain.shape.size = c.index.shape.size = c.table.shape.size = size;
    c.table.shape.size[c.dim] = random_.size(300);
    const bool rows = random_.chance(50);  // whole rows of the table: an embedding
    c.table.stride = strides(c.table.shape.size, rows || random_.chance(50), rows);
    c.plain.stride = strides(size, random_.chance(70), random_.chance(60));
    c.index.stride = strides(size, random_.chance(70), random_.chance(60));
    for (unsigned d = 0; d < 5; ++d) {
      if (d > c.dim ? rows || random_.chance(20) : random_.chance(10)) c.index.stride[d] = 0;
      if (c.scatter && random_.chance(10)) c.plain.stride[d] = 0;
    }
    return c;
  }

  Dims sizes(uint64_t rank) {
    Dims size = kOnes;
    uint64_t room = random_.chance(90) ? 1500 : 12000;
    for (uint64_t d = 5 - rank; d < 5; ++d) {
      const uint64_t limit = random_.chance(30) ? 3 : random_.size(std::max<uint64_t>(room, 1));
      size[d] = random_.between(1, std::max<uint64_t>(std::min(limit, room), 1));
      room /= size[d];
    }
    std::shuffle(size.begin() + long(5 - rank), size.end(), random_.engine);
    return size;
  }

  // Dimensions follow each other in a random order, dense or with gaps; those of size 1 may have
  // any stride.
  Dims strides(const Dims& size, bool in_order, bool dense) {
    std::array<unsigned, 5> order{4, 3, 2, 1, 0};
    if (!in_order) std::shuffle(order.begin(), order.end(), random_.engine);
    Dims stride{};
    uint64_t next = dense ? 1 : random_.between(1, 3);
    for (const unsigned d : order) {
      stride[d] = next;
      next *= size[d];
      if (!dense && random_.chance(30)) next += random_.below(9);
      if (size[d] == 1 && random_.chance(30)) stride[d] = random_.below(1000000);
    }
    return stride;
  }

  // Finds places for the tensors; false when they are too large.
  bool place(GatherCommand& c) {
    TensorView& source = c.scatter ? c.plain : c.table;
    TensorView& target = c.scatter ? c.table : c.plain;
    return put(random_, source, kIndexEnd, kConstEnd) &&
           put(random_, target, kEngineBase, kEngineEnd) &&
           put(random_, c.index, kConstBase, kIndexEnd);
  }

  void put_index(const GatherCommand& c, const Dims& place, uint64_t value) {
    store(memory_, address_of(c.index, place), c.index.element_bytes(), value);
  }
  void write_indices(const GatherCommand& c) {
    // Few different ones make equal places, one after the other or nearly so.
    const uint64_t limit = c.table_size();
    const uint64_t few =
        random_.chance(40) ? std::min<uint64_t>(limit, random_.between(1, 4)) : limit;
    each_place(c.size(), [&](const Dims& place) { put_index(c, place, random_.below(few)); });
  }

  // Numbers of like magnitude instead of random bits: their sums round.
  void ordinary_values(const GatherCommand& c) {
    for (const TensorView* view : {&c.plain, &c.table})
      each_place(view->shape.size, [&](const Dims& place) {
        store(memory_, address_of(*view, place), view->element_bytes(),
              ordinary(unsigned(view->dtype)));
      });
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

class GatherEngine : public EngineModel<GatherCommand> {
 public:
  static constexpr unsigned kReaders = 2, kWriters = 1;

  void drive_command(Vbench& top) const override {
    top.cmd_opcode = uint32_t(command_.scatter ? Opcode::kScatter : Opcode::kGather);
    top.cmd_accumulate = command_.add;
    top.cmd_dim = static_cast<uint8_t>(command_.dim);
    const TensorView &source = command_.source(), &destination = command_.destination();
    drive_operand(top, 0, source, source.shape.size);
    drive_operand(top, 1, command_.index, command_.size());
    drive_operand(top, kDestination, destination, destination.shape.size);
  }
};
