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

[[nodiscard]] bool contains(const auto& dtypes, DType dtype) {
  return std::ranges::find(dtypes, dtype) != dtypes.end();
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
  const unsigned bits = std::min(32U, 8 * dtype_bytes(dtype));
  const std::uint64_t value = packet.param[isa::kFillValue];
  return static_cast<std::uint32_t>(value >> bits);
}

/// What a VECTOR packet says of a source.
struct SourceUse {
  std::uint64_t address;
  std::uint32_t flags;  // type and DESC
};

[[nodiscard]] std::array<SourceUse, isa::kPlainSources> sources_of(const Packet& packet) {
  const auto part = [&](std::uint32_t mask) { return packet.flags & mask; };
  return {{{packet.src1, part(isa::kSrcDtypeMask | isa::kSrc1DescMask)},
           {packet.src2, part(isa::kSrc2DtypeMask | isa::kSrc2DescMask)},
           {src3_of(packet), part(isa::kSrc3DtypeMask | isa::kSrc3DescMask)}}};
}

void must_be_zero(const char* name, std::uint64_t value) {
  fail_if(value != 0, ErrorCode::kReservedBits,
          [&] { return std::string(name) + " must be zero: " + hex(value); });
}

/// A third source is where the sums of a MATMUL start, or the scales of its weights.
void check_start(const Packet& packet) {
  if (int4_group(packet) != 0) return;
  const bool has_start = has_flag(packet, isa::kSrc3DescMask);
  must_be_zero("address of a third source that the packet does not have",
               has_start ? 0 : src3_of(packet));
  must_be_zero("SRC3_DESC without ACCUMULATE",
               has_flag(packet, isa::kAccumulateMask) ? 0 : packet.flags & isa::kSrc3DescMask);
}

void check_vector_reserved(const Packet& packet, const ProgramMemory& programs) {
  if (has_flag(packet, isa::kOperandListMask)) {
    constexpr std::uint32_t kUsed = isa::kOperandListMask | isa::kIrqMask;
    must_be_zero("flags not used with an operand list", packet.flags & ~kUsed);
    must_be_zero("src2, not used with an operand list,", packet.src2);
    must_be_zero("dst, not used with an operand list,", packet.dst);
    return;
  }
  const VectorProgram* program = program_of(packet, programs);
  const auto sources = sources_of(packet);
  for (std::size_t i = program == nullptr ? sources.size() : program->sources; i < sources.size();
       ++i) {
    must_be_zero("address of a source that the program does not have", sources[i].address);
    must_be_zero("flags of a source that the program does not have", sources[i].flags);
  }
}

void check_reserved(const Packet& packet, const isa::Usage& usage, const ProgramMemory& programs) {
  must_be_zero("flags not used by the opcode", packet.flags & ~usage.flags);
  must_be_zero("src1, not used by the opcode,", usage.src1 ? 0 : packet.src1);
  must_be_zero("src2, not used by the opcode,", usage.src2 ? 0 : packet.src2);
  must_be_zero("dst, not used by the opcode,", usage.dst ? 0 : packet.dst);
  for (unsigned i = 0; i < isa::kParamCount; ++i) {
    const bool used = (usage.params >> i & 1U) != 0;
    must_be_zero("a parameter not used by the opcode", used ? 0 : packet.param[i]);
  }
  if (static_cast<Opcode>(packet.opcode) == Opcode::kMatmul) check_start(packet);
  must_be_zero("bits of FILL's value above the element", excess_fill_bits(packet));
  if (static_cast<Opcode>(packet.opcode) == Opcode::kVector) {
    check_vector_reserved(packet, programs);
  }
}

[[nodiscard]] bool dtypes_accepted(const Packet& packet) {
  const DType src = src_dtype(packet);
  const DType dst = dst_dtype(packet);
  switch (static_cast<Opcode>(packet.opcode)) {
    case Opcode::kMatmul:
      return std::ranges::find(isa::kMatmulDTypes, std::array{src, dst}) !=
                 isa::kMatmulDTypes.end() &&
             (int4_group(packet) == 0 || src != DType::kInt8);
    case Opcode::kCopy:
      return exists(src) && src == dst;
    case Opcode::kFill:
      return exists(dst) && dst != DType::kInt64;
    case Opcode::kVector:
      return exists(src) && exists(src2_dtype(packet)) && exists(src3_dtype(packet)) && exists(dst);
    case Opcode::kGather:
    case Opcode::kScatter:
      return exists(src) && src == dst && contains(isa::kIndexDTypes, src2_dtype(packet)) &&
             (!has_flag(packet, isa::kAccumulateMask) || contains(isa::kScatterAddDTypes, dst));
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

void check_vector_params(const Packet& packet, const ProgramMemory& programs) {
  const VectorProgram* program = program_of(packet, programs);
  fail_if(program == nullptr, ErrorCode::kNotLoaded, [&] {
    return "no program begins at line " + std::to_string(packet.param[isa::kVectorProgram]);
  });
  const std::uint32_t count = packet.param[isa::kVectorCount];
  if (has_flag(packet, isa::kOperandListMask)) {
    fail_if(count != 0, ErrorCode::kBadParam, [] { return "count with an operand list"; });
    return;
  }
  fail_if(program->sources > isa::kPlainSources || program->results > 1, ErrorCode::kBadParam,
          [] { return "a program of four sources or several results needs an operand list"; });
  constexpr std::array kDesc{isa::kSrc1DescMask, isa::kSrc2DescMask, isa::kSrc3DescMask};
  std::uint32_t used = isa::kDstDescMask;
  for (std::size_t i = 0; i < program->sources; ++i) used |= kDesc[i];
  const std::uint32_t set = packet.flags & used;
  fail_if(set != (count == 0 ? used : 0), ErrorCode::kBadParam, [&] {
    return count == 0 ? "count is zero, and not every operand is a descriptor"
                      : std::string("count is not zero, and an operand is a descriptor");
  });
  fail_if(count != 0 && program->reduce != isa::Reduce::kNone, ErrorCode::kBadParam,
          [] { return "a program that reduces takes descriptors, not a count"; });
}

void check_load_params(const Packet& packet) {
  const std::uint32_t line = packet.param[isa::kLoadLine];
  const std::uint32_t lines = packet.param[isa::kLoadLines];
  fail_if(lines == 0 || lines > isa::kProgramMaxLines, ErrorCode::kBadParam,
          [&] { return "no image has " + std::to_string(lines) + " lines"; });
  fail_if(!ProgramMemory::is_loadable(line, lines), ErrorCode::kBadParam, [&] {
    return std::to_string(lines) + " lines from " + std::to_string(line) + " are not loadable";
  });
}

void check_index_params(const Packet& packet) {
  constexpr std::uint32_t kAll = isa::kSrc1DescMask | isa::kSrc2DescMask | isa::kDstDescMask;
  fail_if((packet.flags & kAll) != kAll, ErrorCode::kBadParam,
          [] { return "an operand is no descriptor"; });
  const std::uint32_t dim = packet.param[isa::kGatherDim];
  fail_if(dim >= isa::kMaxRank, ErrorCode::kBadParam,
          [&] { return "dimension " + std::to_string(dim) + " does not exist"; });
}

void check_matmul_params(const Packet& packet) {
  for (const unsigned i : {isa::kMatmulM, isa::kMatmulK, isa::kMatmulN, isa::kMatmulBatch}) {
    fail_if(packet.param[i] == 0, ErrorCode::kBadParam,
            [&] { return "param[" + std::to_string(i) + "], a dimension, is zero"; });
  }
  const unsigned group = int4_group(packet);
  fail_if(group != 0 && group < isa::kInt4FirstGroup, ErrorCode::kBadParam,
          [&] { return "INT4_GROUP is " + std::to_string(group) + ", not 0 or 3 to 15"; });
}

void check_params(const Packet& packet, const ProgramMemory& programs) {
  switch (static_cast<Opcode>(packet.opcode)) {
    case Opcode::kMatmul:
      return check_matmul_params(packet);
    case Opcode::kCopy:
      return check_count(packet.param[isa::kCopyCount],
                         has_flag(packet, isa::kSrc1DescMask | isa::kDstDescMask));
    case Opcode::kFill:
      return check_count(packet.param[isa::kFillCount], has_flag(packet, isa::kDstDescMask));
    case Opcode::kVector:
      return check_vector_params(packet, programs);
    case Opcode::kLoad:
      return check_load_params(packet);
    case Opcode::kGather:
    case Opcode::kScatter:
      return check_index_params(packet);
    default:
      return;
  }
}

}  // namespace

void check_packet(const Packet& packet, const ProgramMemory& programs) {
  const isa::Usage& usage = check_opcode(packet);
  check_reserved(packet, usage, programs);
  fail_if(!dtypes_accepted(packet), ErrorCode::kBadDtype,
          [&] { return "types not accepted: flags " + hex(packet.flags); });
  check_params(packet, programs);
}

}  // namespace npu
