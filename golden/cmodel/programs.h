// SPDX-License-Identifier: Apache-2.0
/// The vector programs that a model runs, handed over as bytes when it is made: a program added in
/// driver/isa/programs needs no new build of the model. What an instruction computes is micro.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "npu_micro.h"

namespace npu {

/// One program. The spans belong to its Programs.
struct Program {
  std::span<const isa::Instruction> code;
  std::span<const std::uint32_t> constants;  // by operand code, less kOperandConst
  unsigned sources;
  isa::Reduce reduce;

  /// Whether it reads an element's position in its row.
  [[nodiscard]] bool numbers_elements() const;
};

class Programs {
 public:
  /// No program at all.
  Programs() = default;
  /// Little endian: three u32 counts; instructions of 5 bytes (op, dst, a, b, c), constants of 4,
  /// programs of 4 (u16 instructions, u8 sources, u8 reduction), whose code follows each other.
  /// Throws std::invalid_argument on anything that a model could not run.
  explicit Programs(std::span<const std::byte> tables);
  Programs(Programs&&) = default;
  Programs& operator=(Programs&&) = default;

  [[nodiscard]] std::size_t size() const { return programs_.size(); }
  /// The program of that number, or null.
  [[nodiscard]] const Program* find(std::uint32_t number) const {
    return number < programs_.size() ? &programs_[number] : nullptr;
  }

 private:
  std::vector<isa::Instruction> code_;
  std::vector<std::uint32_t> constants_;
  std::vector<Program> programs_;
};

}  // namespace npu
