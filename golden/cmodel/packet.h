// SPDX-License-Identifier: Apache-2.0
/// Checks 1 to 4 of a command: everything that the 64 bytes of the packet alone decide.
#pragma once

#include "npu_isa.h"

namespace npu {

[[nodiscard]] inline isa::DType src_dtype(const isa::Packet& packet) {
  return static_cast<isa::DType>((packet.flags & isa::kSrcDtypeMask) >> isa::kSrcDtypeShift);
}

[[nodiscard]] inline isa::DType dst_dtype(const isa::Packet& packet) {
  return static_cast<isa::DType>((packet.flags & isa::kDstDtypeMask) >> isa::kDstDtypeShift);
}

[[nodiscard]] inline bool has_flag(const isa::Packet& packet, std::uint32_t mask) {
  return (packet.flags & mask) != 0;
}

/// Bytes per element of a type that exists.
[[nodiscard]] inline unsigned dtype_bytes(isa::DType dtype) {
  return isa::kDTypeBytes[static_cast<std::size_t>(dtype)];
}

/// Throws the first Fault of: opcode, reserved bits, types, parameters.
void check_packet(const isa::Packet& packet);

}  // namespace npu
