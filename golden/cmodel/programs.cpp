// SPDX-License-Identifier: Apache-2.0
#include "programs.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "fault.h"
#include "image.h"

namespace npu {

bool VectorProgram::numbers_elements() const {
  return std::ranges::any_of(code, [](const isa::Instruction& line) {
    return line.a == isa::kOperandIndex || line.b == isa::kOperandIndex ||
           line.c == isa::kOperandIndex;
  });
}

ProgramMemory::ProgramMemory(std::span<const std::byte> boot)
    : slots_(isa::kProgramRam + isa::kProgramRamLines) {
  if (boot.size() > isa::kProgramRam * kLineBytes) {
    throw std::invalid_argument("boot programs: longer than the read-only lines");
  }
  for (std::size_t at = 0; at < boot.size();) {
    const std::span rest = boot.subspan(at);
    const std::size_t bytes = image_lines(rest) * kLineBytes;
    const std::size_t line = at / kLineBytes;
    try {
      slots_[line] = {std::make_unique<const VectorProgram>(
                          parse_image(rest.first(std::min(bytes, rest.size())))),
                      static_cast<std::uint32_t>(bytes / kLineBytes)};
    } catch (const Fault& fault) {
      throw std::invalid_argument("boot programs: line " + std::to_string(line) + ": " +
                                  fault.detail);
    }
    at += bytes;
  }
}

bool ProgramMemory::is_loadable(std::uint32_t line, std::uint32_t lines) {
  constexpr std::uint32_t kEnd = isa::kProgramRam + isa::kProgramRamLines;
  return line >= isa::kProgramRam && line < kEnd && lines <= kEnd - line;
}

void ProgramMemory::load(std::uint32_t line, std::uint32_t lines, VectorProgram program) {
  const std::uint32_t reach = line - std::min(line - isa::kProgramRam, isa::kProgramMaxLines);
  for (std::uint32_t first = reach; first < line + lines; ++first) {
    if (first + slots_[first].lines > line) slots_[first] = {};
  }
  slots_[line] = {std::make_unique<const VectorProgram>(std::move(program)), lines};
}

void ProgramMemory::forget_loaded() {
  std::ranges::for_each(slots_.begin() + isa::kProgramRam, slots_.end(),
                        [](Slot& slot) { slot = {}; });
}

}  // namespace npu
