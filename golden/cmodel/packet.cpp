// SPDX-License-Identifier: Apache-2.0
#include "packet.h"

#include <algorithm>
#include <string>

#include "fault.h"

namespace npu {

namespace {

using isa::DType;
using isa::ErrorCode;
using isa::Opcode;
using isa::Packet;

[[nodiscard]] bool exists(DType dtype) {
  return static_cast<std::size_t>(dtype) < isa::kDTypeBytes.size();
}

[[nodiscard]] const isa::Usage& check_opcode(const Packet& packet) {
  const auto* usage =
      std::ranges::find(isa::kOperations, static_cast<Opcode>(packet.opcode), &isa::Usage::opcode);
  fail_if(usage == isa::kOperations.end(), ErrorCode::kBadOpcode,
          [&] { return "opcode " + std::to_string(packet.opcode) + " does not exist"; });
  return *usage;
}

/// Bits of FILL's value above the element; none for a type that does not exist (BAD_DTYPE follows).
[[nodiscard]] std::uint32_t excess_fill_bits(const Packet& packet) {
  const DType dtype = dst_dtype(packet);
  if (static_cast<Opcode>(packet.opcode) != Opcode::kFill || !exists(dtype)) return 0;
  const std::uint64_t value = packet.param[isa::kFillValue];
  return static_cast<std::uint32_t>(value >> (8 * dtype_bytes(dtype)));
}

void check_reserved(const Packet& packet, const isa::Usage& usage) {
  const auto must_be_zero = [](const char* name, std::uint64_t value) {
    fail_if(value != 0, ErrorCode::kReservedBits,
            [&] { return std::string(name) + " must be zero: " + hex(value); });
  };
  must_be_zero("flags not used by the opcode", packet.flags & ~usage.flags);
  must_be_zero("src1, not used by the opcode,", usage.src1 ? 0 : packet.src1);
  must_be_zero("src2, not used by the opcode,", usage.src2 ? 0 : packet.src2);
  must_be_zero("dst, not used by the opcode,", usage.dst ? 0 : packet.dst);
  for (unsigned i = usage.params; i < isa::kParamCount; ++i) {
    must_be_zero("a parameter not used by the opcode", packet.param[i]);
  }
  must_be_zero("bits of FILL's value above the element", excess_fill_bits(packet));
}

[[nodiscard]] bool dtypes_accepted(const Packet& packet) {
  const DType src = src_dtype(packet);
  const DType dst = dst_dtype(packet);
  switch (static_cast<Opcode>(packet.opcode)) {
    case Opcode::kMatmul:
      return std::ranges::find(isa::kMatmulDTypes, std::array{src, dst}) !=
             isa::kMatmulDTypes.end();
    case Opcode::kCopy:
      return exists(src) && src == dst;
    case Opcode::kFill:
      return exists(dst);
    default:
      return true;
  }
}

void check_count(std::uint32_t count, bool any_descriptor) {
  fail_if((count == 0) != any_descriptor, ErrorCode::kBadParam, [&] {
    return any_descriptor
               ? "count is " + std::to_string(count) + ", but a descriptor gives the shape"
               : std::string("count is zero, and no descriptor gives the shape");
  });
}

void check_params(const Packet& packet) {
  switch (static_cast<Opcode>(packet.opcode)) {
    case Opcode::kMatmul:
      for (const unsigned i : {isa::kMatmulM, isa::kMatmulK, isa::kMatmulN, isa::kMatmulBatch}) {
        fail_if(packet.param[i] == 0, ErrorCode::kBadParam,
                [&] { return "param[" + std::to_string(i) + "], a dimension, is zero"; });
      }
      return;
    case Opcode::kCopy:
      return check_count(packet.param[isa::kCopyCount],
                         has_flag(packet, isa::kSrc1DescMask | isa::kDstDescMask));
    case Opcode::kFill:
      return check_count(packet.param[isa::kFillCount], has_flag(packet, isa::kDstDescMask));
    default:
      return;
  }
}

}  // namespace

void check_packet(const Packet& packet) {
  const isa::Usage& usage = check_opcode(packet);
  check_reserved(packet, usage);
  fail_if(!dtypes_accepted(packet), ErrorCode::kBadDtype, [&] {
    return "types " + std::to_string(static_cast<unsigned>(src_dtype(packet))) + " -> " +
           std::to_string(static_cast<unsigned>(dst_dtype(packet))) + " not accepted";
  });
  check_params(packet);
}

}  // namespace npu
