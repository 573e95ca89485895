// SPDX-License-Identifier: Apache-2.0
/// VECTOR: a program run on every element of its sources, its results stored, or a single one
/// reduced along the innermost dimension.
///
/// Programs are interpreted: an instruction works on a block of elements at once, so that the loops
/// in vector_template.h do the work. Blocks are independent, hence the bits depend neither on their
/// size nor on threads; the lanes of a reduction are the contract's, not the host's.
#pragma once

#include <array>
#include <span>

#include "kernels.h"
#include "memory.h"
#include "programs.h"
#include "tensor_view.h"

namespace npu {

struct VectorJob {
  const VectorProgram& program;
  std::array<std::uint32_t, isa::kImmediates> imm;
  std::span<const TensorView> sources;
  std::span<const TensorView> results;
  Shape shape;  // of the elements that the program runs on; the results' but for a reduction
};

/// Runs the job on views that passed every check; does not mark what it wrote. `threads` as in
/// matmul().
void run_vector(const Memory& memory, const VectorJob& job, unsigned threads,
                const Kernels& kernels = *usable_kernels().front());

}  // namespace npu
