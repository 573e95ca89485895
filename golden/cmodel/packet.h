// SPDX-License-Identifier: Apache-2.0
/// Checks 1 to 4 of a command: everything that the 64 bytes of the packet alone decide.
#pragma once

#include "npu_isa.h"
#include "programs.h"

namespace npu {

[[nodiscard]] inline isa::DType src_dtype(const isa::Packet& packet) {
  return static_cast<isa::DType>((packet.flags & isa::kSrcDtypeMask) >> isa::kSrcDtypeShift);
}

[[nodiscard]] inline isa::DType dst_dtype(const isa::Packet& packet) {
  return static_cast<isa::DType>((packet.flags & isa::kDstDtypeMask) >> isa::kDstDtypeShift);
}

/// VECTOR: type of src2; GATHER, SCATTER: of the indices.
[[nodiscard]] inline isa::DType src2_dtype(const isa::Packet& packet) {
  return static_cast<isa::DType>((packet.flags & isa::kSrc2DtypeMask) >> isa::kSrc2DtypeShift);
}

[[nodiscard]] inline isa::DType src3_dtype(const isa::Packet& packet) {
  return static_cast<isa::DType>((packet.flags & isa::kSrc3DtypeMask) >> isa::kSrc3DtypeShift);
}

/// The third source of VECTOR and MATMUL, which is split over two parameters.
[[nodiscard]] inline std::uint64_t src3_of(const isa::Packet& packet) {
  return packet.param[isa::kVectorSrc3Low] |
         static_cast<std::uint64_t>(packet.param[isa::kVectorSrc3High]) << 32;
}

static_assert(isa::kMatmulSrc3Low == isa::kVectorSrc3Low &&
              isa::kMatmulSrc3High == isa::kVectorSrc3High);

/// The program that a VECTOR packet names, or null if none begins at that line.
[[nodiscard]] inline const VectorProgram* program_of(const isa::Packet& packet,
                                                     const ProgramMemory& programs) {
  return programs.find(packet.param[isa::kVectorProgram]);
}

[[nodiscard]] inline bool has_flag(const isa::Packet& packet, std::uint32_t mask) {
  return (packet.flags & mask) != 0;
}

/// log2 of the rows that share a scale of weights of four bits; 0 where a MATMUL has none.
[[nodiscard]] inline unsigned int4_group(const isa::Packet& packet) {
  return (packet.flags & isa::kInt4GroupMask) >> isa::kInt4GroupShift;
}

/// Bytes per element of a type that exists.
[[nodiscard]] inline unsigned dtype_bytes(isa::DType dtype) {
  return isa::kDTypeBytes[static_cast<std::size_t>(dtype)];
}

/// Throws the first Fault of: opcode, reserved bits, types, parameters.
void check_packet(const isa::Packet& packet, const ProgramMemory& programs);

}  // namespace npu
