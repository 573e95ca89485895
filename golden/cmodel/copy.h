// SPDX-License-Identifier: Apache-2.0
/// COPY and FILL on views that passed every check. Single-threaded: they run at memory speed.
#pragma once

#include "memory.h"
#include "tensor_view.h"

namespace npu {

/// Copies every element of `src` to the same index of `dst`; the shapes are equal.
void copy(Memory& memory, const TensorView& src, const TensorView& dst);

/// Writes the low bits of `value` to every element of `dst`.
void fill(Memory& memory, const TensorView& dst, std::uint32_t value);

}  // namespace npu
