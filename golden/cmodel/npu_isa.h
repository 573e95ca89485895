// SPDX-License-Identifier: Apache-2.0
// Generated from driver/isa by `make gen`. Do not edit.
// clang-format off
#pragma once

#include <array>
#include <cstdint>

namespace npu::isa {

inline constexpr std::uint32_t kVersion = 0x00020001;
inline constexpr unsigned kMaxRank = 5;
inline constexpr unsigned kWindowRank = 7;
inline constexpr unsigned kWindowGroup = 3;
inline constexpr unsigned kInt4Rows = 8;
inline constexpr unsigned kInt4FirstGroup = 3;
inline constexpr unsigned kParamCount = 8;

enum class Opcode : std::uint32_t {
  kNop = 0,
  kMatmul = 1,
  kVector = 2,
  kCopy = 3,
  kFill = 4,
  kGather = 5,
  kScatter = 6,
  kFence = 7,
  kSync = 8,
  kLoad = 9,
};

enum class DType : std::uint32_t {
  kFp32 = 0,
  kFp16 = 1,
  kBf16 = 2,
  kInt8 = 3,
  kInt32 = 4,
  kUint8 = 5,
  kInt64 = 6,
};

enum class ErrorCode : std::uint32_t {
  kNone = 0,
  kBadOpcode = 1,
  kReservedBits = 2,
  kBadDtype = 3,
  kBadParam = 4,
  kBadDescriptor = 5,
  kMisaligned = 6,
  kOutOfRange = 7,
  kBusRead = 8,
  kBusWrite = 9,
  kBadIndex = 10,
  kNotLoaded = 11,
  kBadImage = 12,
};

struct Packet {
  std::uint32_t opcode;  // what to do
  std::uint32_t flags;  // types and modifiers, see Flags
  std::uint64_t src1;  // first source: address of dense data, or of a descriptor
  std::uint64_t src2;  // second source, likewise
  std::uint64_t dst;  // destination, likewise
  std::array<std::uint32_t, 8> param;  // per opcode, see Operations
};
static_assert(sizeof(Packet) == 64);

struct Descriptor {
  std::uint64_t base;  // byte address of element [0, …, 0]
  std::uint32_t dtype;  // element type; equals the packet's
  std::uint32_t rank;  // number of dimensions, 1 to 5
  std::array<std::uint32_t, 5> size;  // elements per dimension, outermost first; 0 beyond the rank
  std::array<std::uint32_t, 5> stride;  // step in elements; 0 repeats (broadcast); 0 beyond the rank
  std::uint64_t reserved;  // zero
};
static_assert(sizeof(Descriptor) == 64);

struct Window {
  std::uint64_t base;  // byte address of element [0, …, 0]
  std::uint32_t dtype;  // element type; equals the packet's
  std::uint32_t rank;  // 7: marks a window descriptor
  std::array<std::uint32_t, 7> size;  // elements: batch, 3 of the row, 3 of the column, outermost first
  std::array<std::uint32_t, 5> reserved;  // zero
  std::array<std::uint32_t, 7> stride;  // step in elements, likewise; 0 repeats
  std::array<std::uint32_t, 9> reserved_end;  // zero
};
static_assert(sizeof(Window) == 128);

struct Completion {
  std::uint32_t seq;  // number of the command in its queue since reset
  std::uint32_t status;  // error code, 0 when the command finished
  std::uint64_t start_cycle;  // cycle in which it started, or in which its checks failed
  std::uint64_t end_cycle;  // cycle in which it ended, soon after its last acknowledge
  std::uint32_t active_cycles;  // cycles in which its engine did useful work
  std::uint32_t operand_stall;  // cycles its engine waited for operands
  std::uint32_t result_stall;  // cycles its engine waited to put results away
  std::uint32_t read_beats;  // beats that its engine read on m_axi
  std::uint32_t write_beats;  // beats that its engine wrote on m_axi
  std::uint32_t opcode;  // opcode word of the packet; 0 when it could not be read
  std::uint32_t engine_wait;  // cycles it was ready to start but its engine was busy
  std::uint32_t operand_wait;  // cycles it waited for memory of an earlier command, or for its end
  std::uint32_t waited_for;  // seq of that command, in the last of these cycles; 0 without any
  std::uint32_t waited_queue;  // queue of that command, 0 or 1
};
static_assert(sizeof(Completion) == 64);

// Bits of Packet::flags.
inline constexpr std::uint32_t kSrcDtypeMask = 0x0000000f;
inline constexpr unsigned kSrcDtypeShift = 0;
inline constexpr std::uint32_t kDstDtypeMask = 0x000000f0;
inline constexpr unsigned kDstDtypeShift = 4;
inline constexpr std::uint32_t kTransAMask = 0x00000100;
inline constexpr unsigned kTransAShift = 8;
inline constexpr std::uint32_t kTransBMask = 0x00000200;
inline constexpr unsigned kTransBShift = 9;
inline constexpr std::uint32_t kAccumulateMask = 0x00000400;
inline constexpr unsigned kAccumulateShift = 10;
inline constexpr std::uint32_t kSrc3DescMask = 0x00000800;
inline constexpr unsigned kSrc3DescShift = 11;
inline constexpr std::uint32_t kSrc1DescMask = 0x00001000;
inline constexpr unsigned kSrc1DescShift = 12;
inline constexpr std::uint32_t kSrc2DescMask = 0x00002000;
inline constexpr unsigned kSrc2DescShift = 13;
inline constexpr std::uint32_t kDstDescMask = 0x00004000;
inline constexpr unsigned kDstDescShift = 14;
inline constexpr std::uint32_t kIrqMask = 0x00008000;
inline constexpr unsigned kIrqShift = 15;
inline constexpr std::uint32_t kSrc2DtypeMask = 0x000f0000;
inline constexpr unsigned kSrc2DtypeShift = 16;
inline constexpr std::uint32_t kSrc3DtypeMask = 0x00f00000;
inline constexpr unsigned kSrc3DtypeShift = 20;
inline constexpr std::uint32_t kOperandListMask = 0x01000000;
inline constexpr unsigned kOperandListShift = 24;
inline constexpr std::uint32_t kInt4GroupMask = 0x1e000000;
inline constexpr unsigned kInt4GroupShift = 25;

/// What an opcode may use; everything else in its packet must be zero.
struct Usage {
  Opcode opcode;
  std::uint32_t flags;
  bool src1, src2, dst;
  unsigned params;  // bit i: parameter i
};

inline constexpr std::array<Usage, 10> kOperations{{
    {Opcode::kNop, 0x00008000, false, false, false, 0x00},
    {Opcode::kMatmul, 0x1e00ffff, true, true, true, 0xcf},
    {Opcode::kVector, 0x01fff8ff, true, true, true, 0xff},
    {Opcode::kCopy, 0x0000d0ff, true, false, true, 0x01},
    {Opcode::kFill, 0x0000c0f0, false, false, true, 0x03},
    {Opcode::kGather, 0x000ff0ff, true, true, true, 0x01},
    {Opcode::kScatter, 0x000ff4ff, true, true, true, 0x01},
    {Opcode::kFence, 0x00008000, false, false, false, 0x00},
    {Opcode::kSync, 0x00008000, false, false, true, 0x01},
    {Opcode::kLoad, 0x00008000, true, false, false, 0x03},
}};

/// (operand type, result type) that MATMUL accepts.
inline constexpr std::array<std::array<DType, 2>, 6> kMatmulDTypes{{
    {{DType::kFp32, DType::kFp32}},
    {{DType::kFp16, DType::kFp16}},
    {{DType::kFp16, DType::kFp32}},
    {{DType::kBf16, DType::kBf16}},
    {{DType::kBf16, DType::kFp32}},
    {{DType::kInt8, DType::kInt32}},
}};

inline constexpr std::array<DType, 2> kIndexDTypes{
    DType::kInt32, DType::kInt64};

inline constexpr std::array<DType, 4> kScatterAddDTypes{
    DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt32};

/// Bytes of one element, indexed by DType.
inline constexpr std::array<unsigned, 7> kDTypeBytes{4, 2, 2, 1, 4, 1, 8};

// Positions in Packet::param.
inline constexpr unsigned kMatmulM = 0;
inline constexpr unsigned kMatmulK = 1;
inline constexpr unsigned kMatmulN = 2;
inline constexpr unsigned kMatmulBatch = 3;
inline constexpr unsigned kMatmulSrc3Low = 6;
inline constexpr unsigned kMatmulSrc3High = 7;
inline constexpr unsigned kVectorProgram = 0;
inline constexpr unsigned kVectorCount = 1;
inline constexpr unsigned kVectorImm0 = 2;
inline constexpr unsigned kVectorImm1 = 3;
inline constexpr unsigned kVectorImm2 = 4;
inline constexpr unsigned kVectorImm3 = 5;
inline constexpr unsigned kVectorSrc3Low = 6;
inline constexpr unsigned kVectorSrc3High = 7;
inline constexpr unsigned kCopyCount = 0;
inline constexpr unsigned kFillCount = 0;
inline constexpr unsigned kFillValue = 1;
inline constexpr unsigned kGatherDim = 0;
inline constexpr unsigned kScatterDim = 0;
inline constexpr unsigned kSyncValue = 0;
inline constexpr unsigned kLoadLine = 0;
inline constexpr unsigned kLoadLines = 1;

}  // namespace npu::isa
