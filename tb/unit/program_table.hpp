// SPDX-License-Identifier: Apache-2.0
// The boot programs of driver/isa. The build of a bench writes the image and links it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "programs.h"

struct NamedProgram {
  std::string_view name;
  std::uint32_t line;
};

extern const unsigned char kBootImage[];
extern const std::size_t kBootImageBytes;
extern const NamedProgram kPrograms[];
extern const std::size_t kProgramCount;

inline std::span<const NamedProgram> named_programs() { return {kPrograms, kProgramCount}; }

// program_info_t as a word; 0 where no program begins.
inline std::uint32_t program_info_bits(const npu::VectorProgram* program) {
  if (program == nullptr) return 0;
  return 1u << 23 | std::uint32_t(program->code.size()) << 15 |
         std::uint32_t(program->constants.size()) << 8 | program->sources << 5 |
         program->results << 3 | std::uint32_t(program->reduce);
}

inline npu::ProgramMemory& programs() {
  static npu::ProgramMemory all(std::as_bytes(std::span(kBootImage, kBootImageBytes)));
  return all;
}
