// SPDX-License-Identifier: Apache-2.0
// The vector programs of driver/isa. The build of a bench writes the tables and links them.
#pragma once

#include <cstddef>
#include <span>

#include "programs.h"

extern const unsigned char kProgramTables[];
extern const std::size_t kProgramTableBytes;
extern const char* const kProgramNames[];

inline const npu::Programs& programs() {
  static const npu::Programs all(std::as_bytes(std::span(kProgramTables, kProgramTableBytes)));
  return all;
}
