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

inline npu::ProgramMemory& programs() {
  static npu::ProgramMemory all(std::as_bytes(std::span(kBootImage, kBootImageBytes)));
  return all;
}
