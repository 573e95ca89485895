// SPDX-License-Identifier: Apache-2.0
// COPY and FILL commands: random views, and what they must do to the memory.
#pragma once

#include "bench.hpp"
#include "copy.h"
#include "reference.hpp"

struct CopyCommand {
  bool fill = false;
  uint32_t value = 0;
  TensorView src = view_of(DType::kFp32, kOnes, {}, kConstBase);
  TensorView dst = view_of(DType::kFp32, kOnes, {}, kEngineBase);

  void resize(const Dims& size) { src.shape.size = dst.shape.size = size; }
  uint64_t count() const { return count_of(dst.shape.size); }
  void apply(Memory& memory) const {
    npu::Memory expected = expected_of(memory);
    fill ? npu::fill(expected, dst, value) : npu::copy(expected, src, dst);
  }
};

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
    if (size[d] == 1 && random.chance(30)) stride[d] = static_cast<uint32_t>(random.engine());
  }
  return stride;
}

inline Dims random_size(Random& random) {
  const uint64_t rank = random.between(1, 5);
  uint64_t room = random.chance(85) ? 2048 : 70000;
  Dims size{};
  for (unsigned d = 0; d < 5; ++d) {
    const uint64_t limit = std::max<uint64_t>(room, 1);
    size[d] = d < 5 - rank ? 1 : random.size(limit);
    if (d >= 5 - rank && random.chance(25)) size[d] = random.between(1, 3);
    size[d] = std::min(size[d], limit);
    room /= size[d];
  }
  std::shuffle(size.begin() + long(5 - rank), size.end(), random.engine);
  return size;
}

inline CopyCommand random_copy(Random& random) {
  CopyCommand command;
  command.fill = random.chance(25);
  command.src.dtype = command.dst.dtype =
      DType(random.below(command.fill ? 6 : 7));  // no FILL of INT64
  command.value = static_cast<uint32_t>(random.engine());
  do {
    const Dims size = random_size(random);
    command.resize(size);
    command.src.stride = random_strides(random, size, random.chance(60));
    command.dst.stride = random_strides(random, size, random.chance(70));
    for (auto& stride : command.src.stride)
      if (random.chance(15)) stride = 0;
    // Strides of dimensions of size 1 are ignored, whatever they are.
  } while (span_of(command.src) > kConstEnd - kConstBase ||
           span_of(command.dst) > kEngineEnd - kEngineBase);
  put(random, command.src, kConstBase, kConstEnd);
  put(random, command.dst, kEngineBase, kEngineEnd);
  return command;
}

inline CopyCommand copy_1d(uint64_t bytes, uint64_t src_offset, uint64_t dst_offset) {
  const Dims size{1, 1, 1, 1, bytes}, stride{0, 0, 0, 0, 1};
  return {.src = view_of(DType::kInt8, size, stride, kConstBase + src_offset),
          .dst = view_of(DType::kInt8, size, stride, kEngineBase + dst_offset)};
}

class CopyEngine : public EngineModel<CopyCommand> {
 public:
  static constexpr unsigned kReaders = 1, kWriters = 1;

  void drive_command(Vbench& top) const override {
    top.cmd_opcode = uint32_t(command_.fill ? Opcode::kFill : Opcode::kCopy);
    top.cmd_fill_value = command_.value;
    drive_operand(top, 0, command_.src, command_.src.shape.size);
    drive_operand(top, kDestination, command_.dst, command_.dst.shape.size);
  }
};

using Bench = BenchOf<CopyEngine>;
