// SPDX-License-Identifier: Apache-2.0
#include "cmodel.h"

#include <algorithm>
#include <span>

#include "gather.h"
#include "matmul.h"
#include "move.h"
#include "packet.h"
#include "tensor_view.h"
#include "vector.h"

namespace npu {

namespace {

using isa::Packet;

OperandRef src1_of(const Packet& packet) {
  return {"src1", packet.src1, has_flag(packet, isa::kSrc1DescMask), false, src_dtype(packet)};
}

OperandRef src2_of(const Packet& packet, isa::DType dtype) {
  return {"src2", packet.src2, has_flag(packet, isa::kSrc2DescMask), false, dtype};
}

OperandRef third_source_of(const Packet& packet) {
  return {"src3", src3_of(packet), has_flag(packet, isa::kSrc3DescMask), false, src3_dtype(packet)};
}

OperandRef dst_of(const Packet& packet) {
  return {"dst", packet.dst, has_flag(packet, isa::kDstDescMask), true, dst_dtype(packet)};
}

Shape matrix_shape(std::uint64_t batch, std::uint64_t rows, std::uint64_t columns, bool swapped) {
  return swapped ? Shape{3, {batch, columns, rows}} : Shape{3, {batch, rows, columns}};
}

/// The view as the product sees it: a transposed operand has its last two dimensions exchanged.
MatrixRef matrix_ref(const Memory& memory, const TensorView& view, bool swapped) {
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
      return run_fill(packet);
    case isa::Opcode::kSync:
      return run_sync(packet);
    default:
      return;  // NOP, FENCE: each command is finished before the next begins
  }
}

void CModel::run_matmul(const Packet& packet) {
  const std::uint64_t m = packet.param[isa::kMatmulM];
  const std::uint64_t k = packet.param[isa::kMatmulK];
  const std::uint64_t n = packet.param[isa::kMatmulN];
  const std::uint64_t batch = packet.param[isa::kMatmulBatch];
  const bool trans_a = has_flag(packet, isa::kTransAMask);
  const bool trans_b = has_flag(packet, isa::kTransBMask);
  const bool accumulate = has_flag(packet, isa::kAccumulateMask);
  const OperandRef a_ref = src1_of(packet);
  const OperandRef b_ref = src2_of(packet, src_dtype(packet));
  const OperandRef c_ref = dst_of(packet);

  const TensorView a = resolve(memory_, a_ref, matrix_shape(batch, m, k, trans_a));
  const TensorView b = resolve(memory_, b_ref, matrix_shape(batch, k, n, trans_b));
  const TensorView c = resolve(memory_, c_ref, matrix_shape(batch, m, n, false));
  check_readable(memory_, a_ref, a);
  check_readable(memory_, b_ref, b);
  if (accumulate) check_readable(memory_, c_ref, c);
  check_writable(memory_, c_ref, c);

  matmul({.batch = batch,
          .m = m,
          .k = k,
          .n = n,
          .a = matrix_ref(memory_, a, trans_a),
          .b = matrix_ref(memory_, b, trans_b),
          .c = matrix_ref(memory_, c, false),
          .accumulate = accumulate},
         threads_);
  mark_written(memory_, c);
}

void CModel::run_vector_program(const Packet& packet) {
  const Program& program = *program_of(packet, programs_);
  const std::array refs{src1_of(packet), src2_of(packet, src2_dtype(packet)),
                        third_source_of(packet)};
  std::array<TensorView, isa::kMaxSources> views;
  const std::uint32_t count = packet.param[isa::kVectorCount];
  ShapeRule rule;
  if (count != 0) rule = Shape{1, {count}};
  for (std::size_t i = 0; i < program.sources; ++i) {
    views[i] = resolve(memory_, refs[i], rule);
    rule = views[i].shape;
  }
  ShapeRule dst_rule = rule;
  const bool reduces = program.reduce != isa::Reduce::kNone;
  if (reduces) dst_rule.shape->size[dst_rule.shape->rank - 1] = 1;
  const OperandRef dst_ref = dst_of(packet);
  const TensorView dst = resolve(memory_, dst_ref, dst_rule);
  const std::span sources = std::span(views).first(program.sources);
  for (std::size_t i = 0; i < sources.size(); ++i) check_readable(memory_, refs[i], sources[i]);
  check_writable(memory_, dst_ref, dst);

  VectorJob job{.program = program,
                .imm = {},
                .sources = sources,
                .dst = dst,
                .shape = reduces ? *rule.shape : dst.shape};
  std::copy_n(packet.param.begin() + isa::kVectorImm0, job.imm.size(), job.imm.begin());
  run_vector(memory_, job, threads_);
  mark_written(memory_, dst);
}

void CModel::run_gather(const Packet& packet) {
  const std::size_t dim = packet.param[isa::kGatherDim];
  const OperandRef table_ref = src1_of(packet);
  const OperandRef index_ref = src2_of(packet, src2_dtype(packet));
  const OperandRef dst_ref = dst_of(packet);
  const TensorView table = resolve(memory_, table_ref, {std::nullopt, dim});
  const TensorView index = resolve(memory_, index_ref, {table.shape, dim});
  const TensorView dst = resolve(memory_, dst_ref, index.shape);
  const IndexedMove move{dst, index, table, dim};
  check_readable(memory_, index_ref, index);
  check_indices(memory_, move, true, false);
  check_writable(memory_, dst_ref, dst);
  gather(memory_, move);
}

void CModel::run_scatter(const Packet& packet) {
  const std::size_t dim = packet.param[isa::kScatterDim];
  const bool accumulate = has_flag(packet, isa::kAccumulateMask);
  const OperandRef src_ref = src1_of(packet);
  const OperandRef index_ref = src2_of(packet, src2_dtype(packet));
  const TensorView src = resolve(memory_, src_ref, {std::nullopt, dim});
  const TensorView index = resolve(memory_, index_ref, src.shape);
  const TensorView table = resolve(memory_, dst_of(packet), {src.shape, dim});
  const IndexedMove move{src, index, table, dim};
  check_readable(memory_, src_ref, src);
  check_readable(memory_, index_ref, index);
  check_indices(memory_, move, accumulate, true);
  scatter(memory_, move, accumulate);
}

void CModel::run_copy(const Packet& packet) {
  const OperandRef src_ref = src1_of(packet);
  const OperandRef dst_ref = dst_of(packet);
  TensorView src;
  TensorView dst;
  if (!src_ref.is_descriptor && dst_ref.is_descriptor) {
    // The shape of src1 is known only from dst's descriptor, so that is read in between.
    check_alignment(src_ref, dense_view(src_ref.address, src_ref.dtype, {}));
    dst = load_descriptor(memory_, dst_ref, {});
    src = resolve(memory_, src_ref, dst.shape);
    check_alignment(dst_ref, dst);
    check_extent(memory_, dst_ref, dst);
  } else {
    src = src_ref.is_descriptor
              ? load_descriptor(memory_, src_ref, {})
              : dense_view(src_ref.address, src_ref.dtype, {1, {packet.param[isa::kCopyCount]}});
    check_alignment(src_ref, src);
    check_extent(memory_, src_ref, src);
    dst = resolve(memory_, dst_ref, src.shape);
  }
  check_readable(memory_, src_ref, src);
  check_writable(memory_, dst_ref, dst);
  copy(memory_, src, dst);
}

void CModel::run_fill(const Packet& packet) {
  const OperandRef ref = dst_of(packet);
  const TensorView dst =
      ref.is_descriptor ? load_descriptor(memory_, ref, {})
                        : dense_view(ref.address, ref.dtype, {1, {packet.param[isa::kFillCount]}});
  check_alignment(ref, dst);
  check_extent(memory_, ref, dst);
  check_writable(memory_, ref, dst);
  fill(memory_, dst, packet.param[isa::kFillValue]);
}

void CModel::run_sync(const Packet& packet) {
  OperandRef ref = dst_of(packet);
  ref.dtype = isa::DType::kInt32;  // a 32-bit word; SYNC's type fields are zero
  const TensorView dst = resolve(memory_, ref, Shape{1, {1}});
  check_writable(memory_, ref, dst);
  fill(memory_, dst, packet.param[isa::kSyncValue]);
}

}  // namespace npu
