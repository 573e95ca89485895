// SPDX-License-Identifier: Apache-2.0
/// A vector program on one block of elements: operands as words, registers, result, lanes.
/// Knows nothing of rows, shapes or packets.
#pragma once

#include <array>

#include "buffer.h"
#include "programs.h"
#include "vector_kernels.h"

namespace npu {

/// Elements that an instruction handles at once: its operands stay in the first-level cache.
inline constexpr std::size_t kBlockWords = 512;
static_assert(kBlockWords % kVectorWords == 0);

/// `count` elements in memory, `step` bytes apart; 0 repeats one.
struct Run {
  std::byte* first;
  isa::DType dtype;
  std::uint64_t step;
  std::size_t count;
};

class VectorBlock {
 public:
  VectorBlock(const VectorProgram& program, const std::array<std::uint32_t, isa::kImmediates>& imm,
              const VectorKernels& kernels);

  /// A new block of `count` elements; its operands are still to be loaded.
  void begin(std::size_t count);
  /// Elements `at`, … of source `source`.
  void load(std::size_t source, std::size_t at, const Run& run);
  /// One element for the whole block.
  void repeat(std::size_t source, const Run& run);
  [[nodiscard]] bool repeats(std::size_t source) const { return repeated_[source]; }
  /// Positions of elements `at`, …: first, first + 1, … (nothing if the program does not ask).
  void number(std::size_t at, std::size_t count, std::uint64_t first);

  void execute();

  /// Puts elements `at`, … of a result away, by its number.
  void store(std::size_t result, std::size_t at, const Run& run) const;
  /// Begins a reduction, takes results into it, stores its one element.
  void fold_begin();
  void fold(std::size_t at, std::size_t count);
  void fold_end(const Run& run);

 private:
  [[nodiscard]] std::uint32_t* words(std::size_t buffer) const {
    return storage_.data() + buffer * kBlockWords;
  }
  [[nodiscard]] MicroOperand operand(std::uint8_t code) const;
  /// Finds the elements' rows of the table that the instruction names.
  void segment(const isa::Instruction& line, const MicroOperand& a);

  const VectorProgram& program_;
  std::array<std::uint32_t, isa::kImmediates> imm_;
  const VectorKernels& kernels_;
  bool numbered_;
  std::size_t count_ = 0;
  unsigned table_ = 0;  // of the last SEGMENT
  std::array<bool, isa::kMaxSources> repeated_{};
  std::array<std::uint32_t, isa::kReductionLanes> lanes_{};
  mutable WordBuffer storage_;  // registers and results, sources, positions, rows, a column
};

}  // namespace npu
