// SPDX-License-Identifier: Apache-2.0
/// Check 5 of a command: its addresses become checked views of memory.
#pragma once

#include <array>
#include <span>

#include "memory.h"
#include "packet.h"
#include "tensor_view.h"

namespace npu {

/// The operands of a packet. One that its opcode does not have is left empty.
struct Operands {
  TensorView src1;
  TensorView src2;
  TensorView src3;  // of MATMUL: where its sums start, or the scales of its weights
  TensorView dst;
};

/// The operands of a VECTOR packet, as many as its program has.
struct VectorOperands {
  std::array<TensorView, isa::kMaxSources> source;
  std::array<TensorView, isa::kMaxResults> result;
  std::size_t source_count = 0;
  std::size_t result_count = 0;

  [[nodiscard]] std::span<const TensorView> sources() const {
    return std::span(source).first(source_count);
  }
  [[nodiscard]] std::span<const TensorView> results() const {
    return std::span(result).first(result_count);
  }
};

/// The operands of a packet that check_packet accepts, not a VECTOR. Throws the first Fault, in the
/// order of docs/isa.md. Reads descriptors; touches no element.
[[nodiscard]] Operands resolve_operands(const Memory& memory, const isa::Packet& packet);

/// The same for a VECTOR packet that names `program`.
[[nodiscard]] VectorOperands resolve_vector_operands(const Memory& memory,
                                                     const isa::Packet& packet,
                                                     const VectorProgram& program);

}  // namespace npu
