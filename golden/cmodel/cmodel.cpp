// SPDX-License-Identifier: Apache-2.0
#include "cmodel.h"

#include <algorithm>
#include <optional>
#include <span>

#include "copy.h"
#include "gather.h"
#include "image.h"
#include "int4.h"
#include "matmul.h"
#include "operands.h"
#include "vector.h"
#include "window.h"

namespace npu {

namespace {

using isa::Packet;

/// The view as the product sees it: a transposed operand has its last two dimensions exchanged.
MatrixRef matrix_ref(const Memory& memory, const TensorView& view, bool swapped,
                     WindowOffsets& offsets) {
  if (view.is_window()) return offsets.matrix(memory, view);
  const auto stride = [&](std::size_t d) { return static_cast<std::ptrdiff_t>(view.stride[d]); };
  return {memory.at(view.base), view.dtype, stride(0), stride(swapped ? 2 : 1),
          stride(swapped ? 1 : 2)};
}

}  // namespace

isa::ErrorCode CModel::execute(const Packet& packet, std::uint32_t seq) {
  last_fault_.clear();
  try {
    check_packet(packet, programs_);
    run(packet);
  } catch (const Fault& fault) {
    last_fault_ = "command " + std::to_string(seq) + ": " + fault.detail;
    return fault.code;
  }
  return isa::ErrorCode::kNone;
}

void CModel::run(const Packet& packet) {
  switch (static_cast<isa::Opcode>(packet.opcode)) {
    case isa::Opcode::kMatmul:
      return run_matmul(packet);
    case isa::Opcode::kVector:
      return run_vector_program(packet);
    case isa::Opcode::kGather:
      return run_gather(packet);
    case isa::Opcode::kScatter:
      return run_scatter(packet);
    case isa::Opcode::kCopy:
      return run_copy(packet);
    case isa::Opcode::kFill:
      return run_fill(packet, packet.param[isa::kFillValue]);
    case isa::Opcode::kLoad:
      return run_load(packet);
    case isa::Opcode::kSync:
      return run_fill(packet, packet.param[isa::kSyncValue]);
    default:
      return;  // NOP, FENCE: each command is finished before the next begins
  }
}

void CModel::run_matmul(const Packet& packet) {
  const auto [a, b, src3, c] = resolve_operands(memory_, packet);
  const bool accumulate = has_flag(packet, isa::kAccumulateMask);
  const unsigned group = int4_group(packet);
  const bool has_start = group == 0 && has_flag(packet, isa::kSrc3DescMask);
  const TensorView& start = has_start ? src3 : c;
  check_readable(memory_, "src1", a);
  check_readable(memory_, "src2", b);
  if (group != 0) check_readable(memory_, "src3", src3);
  if (accumulate) check_readable(memory_, has_start ? "src3" : "dst", start);
  check_writable(memory_, "dst", c);

  WindowOffsets a_offsets, b_offsets, c_offsets, start_offsets, scale_offsets;
  const std::size_t k = packet.param[isa::kMatmulK];
  const std::size_t n = packet.param[isa::kMatmulN];
  MatrixRef right = matrix_ref(memory_, b, has_flag(packet, isa::kTransBMask), b_offsets);
  std::optional<WordBuffer> weights;
  if (group != 0) {
    const MatrixRef scales = matrix_ref(memory_, src3, false, scale_offsets);
    weights = expand_int4({packet.param[isa::kMatmulBatch], k, n, right, scales, group}, threads_);
    right = {.data = reinterpret_cast<std::byte*>(weights->data()),
             .dtype = isa::DType::kFp32,
             .batch_stride = static_cast<std::ptrdiff_t>(k * n),
             .row_stride = static_cast<std::ptrdiff_t>(n),
             .column_stride = 1};
  }
  matmul({.batch = packet.param[isa::kMatmulBatch],
          .m = packet.param[isa::kMatmulM],
          .k = k,
          .n = n,
          .a = matrix_ref(memory_, a, has_flag(packet, isa::kTransAMask), a_offsets),
          .b = right,
          .c = matrix_ref(memory_, c, false, c_offsets),
          .start = matrix_ref(memory_, start, false, start_offsets),
          .accumulate = accumulate},
         threads_);
  mark_written(memory_, c);
}

void CModel::run_vector_program(const Packet& packet) {
  const VectorProgram& program = *program_of(packet, programs_);
  const VectorOperands operands = resolve_vector_operands(memory_, packet, program);
  const auto sources = operands.sources();
  const auto results = operands.results();
  for (const TensorView& source : sources) check_readable(memory_, "a source", source);
  for (const TensorView& result : results) check_writable(memory_, "a result", result);

  VectorJob job{.program = program,
                .imm = {},
                .sources = sources,
                .results = results,
                .shape = sources.empty() ? results.front().shape : sources.front().shape};
  const bool list = has_flag(packet, isa::kOperandListMask);
  std::copy_n(packet.param.begin() + isa::kVectorImm0,
              list ? isa::kImmediates : isa::kPlainImmediates, job.imm.begin());
  run_vector(memory_, job, threads_);
  for (const TensorView& result : results) mark_written(memory_, result);
}

void CModel::run_load(const Packet& packet) {
  const std::uint32_t lines = packet.param[isa::kLoadLines];
  const std::uint64_t bytes = lines * kLineBytes;
  const Address last = packet.src1 + (bytes - 1);
  fail_if(packet.src1 % kLineBytes != 0, isa::ErrorCode::kMisaligned,
          [&] { return "image " + hex(packet.src1) + " is not 64-aligned"; });
  fail_if(!memory_.contains(packet.src1, last), isa::ErrorCode::kOutOfRange,
          [&] { return "image at " + hex(packet.src1) + " is not all in memory"; });
  fail_if(memory_.read_fails(packet.src1, bytes), isa::ErrorCode::kBusRead,
          [&] { return "bus error on the image at " + hex(packet.src1); });
  programs_.load(packet.param[isa::kLoadLine], lines,
                 parse_image({memory_.at(packet.src1), bytes}));
}

void CModel::run_gather(const Packet& packet) {
  const auto [table, index, src3, dst] = resolve_operands(memory_, packet);
  const IndexedCopy indexed{dst, index, table, packet.param[isa::kGatherDim]};
  check_readable(memory_, "src2", index);
  check_indices(memory_, indexed, true, false);
  check_writable(memory_, "dst", dst);
  gather(memory_, indexed);
}

void CModel::run_scatter(const Packet& packet) {
  const auto [src, index, src3, table] = resolve_operands(memory_, packet);
  const IndexedCopy indexed{src, index, table, packet.param[isa::kScatterDim]};
  const bool accumulate = has_flag(packet, isa::kAccumulateMask);
  check_readable(memory_, "src1", src);
  check_readable(memory_, "src2", index);
  check_indices(memory_, indexed, accumulate, true);
  scatter(memory_, indexed, accumulate);
}

void CModel::run_copy(const Packet& packet) {
  const auto [src, src2, src3, dst] = resolve_operands(memory_, packet);
  check_readable(memory_, "src1", src);
  check_writable(memory_, "dst", dst);
  copy(memory_, src, dst);
}

void CModel::run_fill(const Packet& packet, std::uint32_t value) {
  const TensorView dst = resolve_operands(memory_, packet).dst;
  check_writable(memory_, "dst", dst);
  fill(memory_, dst, value);
}

}  // namespace npu
