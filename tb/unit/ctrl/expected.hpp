// SPDX-License-Identifier: Apache-2.0
// What must come of one packet, by the checks of the cmodel: its error code, or the tensors that an
// engine is handed.
#pragma once

#include <algorithm>

#include "device.hpp"
#include "fault.h"
#include "operands.h"
#include "program_table.hpp"

using namespace npu::isa;

struct Expected {
  ErrorCode error = ErrorCode::kNone;
  View src1{}, src2{}, src3{}, dst{};
  std::array<WindowView, 4> windows{};  // MATMUL: a, b, init, c
  unsigned dim = 0;                     // GATHER, SCATTER: where the dimension lies in the views
  bool dispatched = false;  // an engine sees it; set by the function that runs the packet
};

// The program of a VECTOR packet; nullptr when it does not exist.
inline const npu::Program* program_of(const Packet& packet) {
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

inline Expected expected_of(Memory& memory, const Packet& packet) {
  Expected expected;
  try {
    npu::check_packet(packet, programs());
    const npu::Operands operands = npu::resolve_operands(memory.model(), packet, programs());
    if (packet.opcode == uint32_t(Opcode::kMatmul)) {
      const npu::TensorView& init =
          npu::has_flag(packet, kSrc3DescMask) ? operands.src3 : operands.dst;
      expected.windows = {engine_window(operands.src1, npu::has_flag(packet, kTransAMask)),
                          engine_window(operands.src2, npu::has_flag(packet, kTransBMask)),
                          engine_window(init, false), engine_window(operands.dst, false)};
      return expected;
    }
    expected.src1 = engine_view(operands.src1);
    expected.src2 = engine_view(operands.src2);
    expected.src3 = engine_view(operands.src3);
    expected.dst = engine_view(operands.dst);
    expected.dim = kMaxRank - operands.src1.shape.rank + packet.param[kGatherDim];
  } catch (const npu::Fault& fault) {
    expected.error = fault.code;
  }
  return expected;
}
