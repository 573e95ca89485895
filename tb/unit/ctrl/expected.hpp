// SPDX-License-Identifier: Apache-2.0
// What must come of one packet, by the checks of the cmodel: its error code, or the tensors that an
// engine is handed.
#pragma once

#include <algorithm>

#include "device.hpp"
#include "fault.h"
#include "operands.h"
#include "program_table.hpp"

struct Expected {
  ErrorCode error = ErrorCode::kNone;
  // What an engine needs of them, in order.
  std::vector<View> sources, results;
  std::vector<uint32_t> src_dtypes, dst_dtypes;
  std::array<WindowView, 5> windows{};  // MATMUL: a, b, init, scales, c
  unsigned dim = 0;                     // GATHER, SCATTER: where the dimension lies in the views
  bool dispatched = false;  // an engine sees it; set by the function that runs the packet
};

// The program of a VECTOR packet; nullptr when it does not exist.
inline const npu::VectorProgram* program_of(const Packet& packet) {
  return npu::program_of(packet, programs());
}

// The view in five dimensions, the innermost one last.
inline View engine_view(const npu::TensorView& operand) {
  View view{operand.base, {1, 1, 1, 1, 1}, {}};
  const unsigned rank = operand.shape.rank;
  for (unsigned d = 0; d < rank; ++d) {
    view.size[kMaxRank - rank + d] = uint32_t(operand.shape.size[d]);
    view.stride[kMaxRank - rank + d] = uint32_t(operand.stride[d]);
  }
  return view;
}

// A VECTOR's operands, in the packet or in its list.
inline void expect_vector(Expected& expected, Memory& memory, const Packet& packet) {
  const auto operands = npu::resolve_vector_operands(memory.model(), packet, *program_of(packet));
  for (const npu::TensorView& source : operands.sources()) {
    expected.sources.push_back(engine_view(source));
    expected.src_dtypes.push_back(uint32_t(source.dtype));
  }
  for (const npu::TensorView& result : operands.results()) {
    expected.results.push_back(engine_view(result));
    expected.dst_dtypes.push_back(uint32_t(result.dtype));
  }
}

// A LOAD's image; the engine reads it.
inline void expect_image(Expected& expected, Memory& memory, const Packet& packet) {
  const uint32_t bytes = kLineBytes * packet.param[kLoadLines];
  const uint64_t last = packet.src1 + bytes - 1;
  if (packet.src1 % kLineBytes != 0)
    expected.error = ErrorCode::kMisaligned;
  else if (!memory.model().contains(packet.src1, last))
    expected.error = ErrorCode::kOutOfRange;
  expected.sources = {{packet.src1, {1, 1, 1, 1, bytes}, {0, 0, 0, 0, 1}}};
  expected.src_dtypes = {0};
}

inline void expect_operands(Expected& expected, Memory& memory, const Packet& packet) {
  const npu::Operands operands = npu::resolve_operands(memory.model(), packet);
  const Opcode opcode = Opcode(packet.opcode);
  if (opcode == Opcode::kMatmul) {
    const bool int4 = npu::int4_group(packet) != 0;
    const npu::TensorView& init =
        npu::has_flag(packet, kSrc3DescMask) && !int4 ? operands.src3 : operands.dst;
    expected.windows = {engine_window(operands.src1, npu::has_flag(packet, kTransAMask)),
                        engine_window(operands.src2, npu::has_flag(packet, kTransBMask)),
                        engine_window(init, false),
                        int4 ? engine_window(operands.src3, false) : WindowView{},
                        engine_window(operands.dst, false)};
    return;
  }
  const bool fills = opcode == Opcode::kFill, copies = opcode == Opcode::kCopy;
  if (!fills) {
    expected.sources = {engine_view(operands.src1)};
    expected.src_dtypes = {packet.flags >> kSrcDtypeShift & 15};
  }
  if (!fills && !copies) {
    expected.sources.push_back(engine_view(operands.src2));
    expected.src_dtypes.push_back(packet.flags >> kSrc2DtypeShift & 15);
  }
  expected.results = {engine_view(operands.dst)};
  expected.dst_dtypes = {packet.flags >> kDstDtypeShift & 15};
  expected.dim = kMaxRank - operands.src1.shape.rank + packet.param[kGatherDim];
}

inline Expected expected_of(Memory& memory, const Packet& packet) {
  Expected expected;
  try {
    npu::check_packet(packet, programs());
    const Opcode opcode = Opcode(packet.opcode);
    if (opcode == Opcode::kVector)
      expect_vector(expected, memory, packet);
    else if (opcode == Opcode::kLoad)
      expect_image(expected, memory, packet);
    else
      expect_operands(expected, memory, packet);
  } catch (const npu::Fault& fault) {
    expected.error = fault.code;
  }
  return expected;
}
