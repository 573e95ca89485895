// SPDX-License-Identifier: Apache-2.0
/// A program's image, as LOAD reads it (docs/isa.md, Program image).
#pragma once

#include <cstddef>
#include <span>

#include "programs.h"

namespace npu {

inline constexpr std::size_t kLineBytes = isa::kLineWords * sizeof(std::uint64_t);

/// Lines that the header at the front asks for, at least one; the header may be malformed.
[[nodiscard]] std::size_t image_lines(std::span<const std::byte> image);

/// The program in an image of whole lines. Throws Fault BAD_IMAGE, with what is malformed.
[[nodiscard]] VectorProgram parse_image(std::span<const std::byte> image);

}  // namespace npu
