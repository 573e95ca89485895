// SPDX-License-Identifier: Apache-2.0
/// Check 5 of a command: its addresses become checked views of memory.
#pragma once

#include "memory.h"
#include "packet.h"
#include "tensor_view.h"

namespace npu {

/// The operands of a packet. One that its opcode or program does not have is left empty.
struct Operands {
  TensorView src1;
  TensorView src2;
  TensorView src3;
  TensorView dst;
};

/// The operands of a packet that check_packet accepts. Throws the first Fault, in the order of
/// docs/isa.md. Reads descriptors; touches no element.
[[nodiscard]] Operands resolve_operands(const Memory& memory, const isa::Packet& packet,
                                        const Programs& programs);

}  // namespace npu
