// SPDX-License-Identifier: Apache-2.0
/// The vector programs that a model runs, by their lines of program memory. The boot programs are
/// handed over as bytes when a model is made: a program added in driver/isa/programs needs no new
/// build of the model. What an instruction computes is micro.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "npu_micro.h"

namespace npu {

struct VectorProgram {
  std::vector<isa::Instruction> code;
  std::vector<std::uint32_t> constants;  // by operand code, less kOperandConst
  unsigned sources = 0;
  unsigned results = 1;
  isa::Reduce reduce{};

  /// Whether it reads an element's position in its row.
  [[nodiscard]] bool numbers_elements() const;
};

class ProgramMemory {
 public:
  /// No program at all.
  ProgramMemory() : ProgramMemory(std::span<const std::byte>{}) {}
  /// `boot`: images one behind the other, from line 0 on; these stay for ever. Throws
  /// std::invalid_argument when they are none, or reach into the loadable lines.
  explicit ProgramMemory(std::span<const std::byte> boot);
  ProgramMemory(ProgramMemory&&) = default;
  ProgramMemory& operator=(ProgramMemory&&) = default;

  /// The program that begins at a line, or null.
  [[nodiscard]] const VectorProgram* find(std::uint32_t line) const {
    return line < slots_.size() ? slots_[line].program.get() : nullptr;
  }
  /// Whether LOAD may write these lines.
  [[nodiscard]] static bool is_loadable(std::uint32_t line, std::uint32_t lines);
  /// Puts a program of so many loadable lines at `line`, in place of all that it overlaps.
  void load(std::uint32_t line, std::uint32_t lines, VectorProgram program);
  /// Forgets all but the boot programs.
  void forget_loaded();

 private:
  struct Slot {
    std::unique_ptr<const VectorProgram> program;
    std::uint32_t lines = 0;
  };
  std::vector<Slot> slots_;  // by first line
};

}  // namespace npu
