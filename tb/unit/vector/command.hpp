// SPDX-License-Identifier: Apache-2.0
// VECTOR commands: random programs, views and types, and what they must do to the memory.
#pragma once

#include "bench.hpp"
#include "elements.h"
#include "program_table.hpp"
#include "reference.hpp"
#include "vector.h"

// In-place commands and destinations share the region of the engine's writes.
constexpr uint64_t kDstBase = kMoveBase, kDstEnd = kMoveEnd;

struct VectorCommand {
  unsigned program = 0;
  std::array<uint32_t, 4> imm{};
  Dims size = kOnes;
  std::array<TensorView, 3> sources;
  TensorView dst;

  const npu::Program& info() const { return *programs().find(program); }
  const char* name() const { return kProgramNames[program]; }
  bool reduces() const { return info().reduce != npu::isa::Reduce::kNone; }
  std::span<const TensorView> used_sources() const {
    return std::span(sources).first(info().sources);
  }
  Dims dst_size() const {
    Dims dims = size;
    if (reduces()) dims[4] = 1;
    return dims;
  }
  void apply(Memory& memory) const {
    const npu::Shape shape{npu::isa::kMaxRank, size};
    npu::run_vector(expected_of(memory), {info(), imm, used_sources(), dst, shape}, 1);
  }
  bool reads_bad(const Memory& memory) const {
    return std::ranges::any_of(used_sources(),
                               [&](auto& view) { return touches_bad(memory, view); });
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

inline uint64_t random_bits(Random& random, DType dtype) {
  uint64_t bits = 0;
  if (dtype <= DType::kBf16) {
    const uint32_t word = random_float(random);
    npu::scalar::with_dtype(dtype, [&](auto type) {
      npu::scalar::store_element<type>(word, reinterpret_cast<std::byte*>(&bits));
    });
    return bits;
  }
  bits = random.engine();
  return random.chance(50) ? bits : bits % 5;  // truth values and equal elements
}

// Strides in which the dimensions follow each other in a random order, dense or with gaps.
inline Dims random_strides(Random& random, const Dims& size, bool in_order) {
  std::array<unsigned, 5> order{4, 3, 2, 1, 0};
  if (!in_order) std::shuffle(order.begin(), order.end(), random.engine);
  Dims stride{};
  uint64_t next = random.chance(80) ? 1 : random.between(1, 3);
  for (const unsigned d : order) {
    stride[d] = next;
    next *= size[d];
    if (random.chance(30)) next += random.below(9);
  }
  return stride;
}

inline Dims random_size(Random& random, uint64_t room) {
  const uint64_t rank = random.between(1, 5);
  Dims size = kOnes;
  for (uint64_t d = 5 - rank; d < 5; ++d) {
    const uint64_t limit = std::max<uint64_t>(room, 1);
    size[d] =
        random.chance(25) ? random.between(1, std::min<uint64_t>(limit, 3)) : random.size(limit);
    room /= size[d];
  }
  std::shuffle(size.begin() + long(5 - rank), size.end(), random.engine);
  return size;
}

class CommandMaker {
 public:
  CommandMaker(Memory& memory, Random& random) : memory_(memory), random_(random) {}

  VectorCommand make() {
    while (true) {
      VectorCommand command;
      command.program = unsigned(random_.below(programs().size()));
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
    for (const TensorView& view : command.used_sources()) {
      each_place(command.size, [&](const Dims& place) {
        const uint64_t bits = random_bits(random_, view.dtype), at = address_of(view, place);
        std::memcpy(&memory_.at(at), &bits, view.element_bytes());
        std::memcpy(&memory_.want(at), &bits, view.element_bytes());
      });
    }
  }

 private:
  bool place(VectorCommand& command) {
    const Dims dst_size = command.dst_size();
    const DType dst_dtype = DType(random_.below(7));
    command.dst =
        view_of(dst_dtype, dst_size, random_strides(random_, dst_size, random_.chance(70)));
    if (!put(random_, command.dst, kDstBase, kDstEnd)) return false;
    // Two elements of a vector that is stored in place must not be one element of the source.
    const unsigned sources = command.info().sources;
    const uint64_t in_place =
        !command.reduces() && sources != 0 && random_.chance(20) ? random_.below(sources) : 3;
    for (unsigned i = 0; i < sources; ++i) {
      TensorView& view = command.sources[i];
      if (i == in_place) {
        view = command.dst;
        continue;
      }
      const DType dtype = DType(random_.below(7));
      view =
          view_of(dtype, command.size, random_strides(random_, command.size, random_.chance(60)));
      for (auto& stride : view.stride)
        if (random_.chance(15)) stride = 0;
      if (!put(random_, view, kConstBase, kConstEnd)) return false;
    }
    return true;
  }

  Memory& memory_;
  Random& random_;
};

class Vectorer : public EngineModel<VectorCommand> {
 public:
  static constexpr unsigned kReaders = 3, kWriters = 1;

  void drive(Vbench& top) override {
    top.cmd_valid = offered_;
    top.cmd_opcode = uint32_t(Opcode::kVector);
    top.cmd_program = static_cast<uint16_t>(command_.program);
    for (unsigned i = 0; i < command_.imm.size(); ++i) top.cmd_imm[i] = command_.imm[i];
    for (unsigned i = 0; i < kReaders; ++i)
      drive_operand(top, i, command_.sources[i], command_.size);
    drive_operand(top, kDestination, command_.dst, command_.dst_size());
  }
};
