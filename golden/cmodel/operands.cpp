// SPDX-License-Identifier: Apache-2.0
#include "operands.h"

#include <array>
#include <optional>
#include <string>

#include "fault.h"

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

/// `count` elements in a row; any shape when the operand is a descriptor.
ShapeRule counted(const OperandRef& ref, std::uint32_t count) {
  return ref.is_descriptor ? ShapeRule{} : ShapeRule{Shape{1, {count}}};
}

/// Rows of 2^shift each that hold `rows` rows.
std::uint64_t groups_of(std::uint64_t rows, unsigned shift) {
  return (rows + (std::uint64_t{1} << shift) - 1) >> shift;
}

Operands matmul_operands(const Memory& memory, const Packet& packet) {
  const std::uint64_t m = packet.param[isa::kMatmulM];
  const std::uint64_t k = packet.param[isa::kMatmulK];
  const std::uint64_t n = packet.param[isa::kMatmulN];
  const std::uint64_t batch = packet.param[isa::kMatmulBatch];
  const Shape a = matrix_shape(batch, m, k, has_flag(packet, isa::kTransAMask));
  const unsigned group = int4_group(packet);
  const std::uint64_t b_rows = group == 0 ? k : (k + isa::kInt4Rows - 1) / isa::kInt4Rows;
  const Shape b = matrix_shape(batch, b_rows, n, has_flag(packet, isa::kTransBMask));
  Operands operands;
  const auto matrix = [&](OperandRef ref, const Shape& shape, std::uint32_t transposed) {
    ref.may_be_window = true;
    ref.is_transposed = has_flag(packet, transposed);
    return resolve(memory, ref, shape);
  };
  operands.src1 = matrix(src1_of(packet), a, isa::kTransAMask);
  const isa::DType b_dtype = group == 0 ? src_dtype(packet) : isa::DType::kInt32;
  operands.src2 = matrix(src2_of(packet, b_dtype), b, isa::kTransBMask);
  const Shape c = matrix_shape(batch, m, n, false);
  if (group != 0) {
    OperandRef scales = third_source_of(packet);
    scales.dtype = src_dtype(packet);
    operands.src3 = matrix(scales, matrix_shape(batch, groups_of(k, group), n, false), 0);
  } else if (has_flag(packet, isa::kSrc3DescMask)) {
    OperandRef start = third_source_of(packet);
    start.dtype = dst_dtype(packet);
    operands.src3 = matrix(start, c, 0);
  }
  operands.dst = matrix(dst_of(packet), c, 0);
  return operands;
}

/// What a VECTOR packet says of operand `at` of its program: sources, then results.
OperandRef vector_ref(const Packet& packet, const VectorProgram& program, std::size_t at) {
  const bool is_destination = at >= program.sources;
  if (!has_flag(packet, isa::kOperandListMask)) {
    if (is_destination) return dst_of(packet);
    return at == 0 ? src1_of(packet)
                   : (at == 1 ? src2_of(packet, src2_dtype(packet)) : third_source_of(packet));
  }
  constexpr std::array kSources{"src1", "src2", "src3", "src4"};
  constexpr std::array kResults{"result 1", "result 2", "result 3"};
  static_assert(kSources.size() == isa::kMaxSources && kResults.size() == isa::kMaxResults);
  const char* name = is_destination ? kResults[at - program.sources] : kSources[at];
  const Address address = packet.src1 + at * sizeof(isa::Descriptor);
  return {name, address, true, is_destination, std::nullopt};
}

Operands gather_operands(const Memory& memory, const Packet& packet) {
  const std::size_t dim = packet.param[isa::kGatherDim];
  Operands operands;
  operands.src1 = resolve(memory, src1_of(packet), {std::nullopt, dim});
  operands.src2 = resolve(memory, src2_of(packet, src2_dtype(packet)), {operands.src1.shape, dim});
  operands.dst = resolve(memory, dst_of(packet), operands.src2.shape);
  return operands;
}

Operands scatter_operands(const Memory& memory, const Packet& packet) {
  const std::size_t dim = packet.param[isa::kScatterDim];
  Operands operands;
  operands.src1 = resolve(memory, src1_of(packet), {std::nullopt, dim});
  operands.src2 = resolve(memory, src2_of(packet, src2_dtype(packet)), operands.src1.shape);
  operands.dst = resolve(memory, dst_of(packet), {operands.src1.shape, dim});
  return operands;
}

Operands copy_operands(const Memory& memory, const Packet& packet) {
  const OperandRef src = src1_of(packet);
  const OperandRef dst = dst_of(packet);
  Operands operands;
  if (!src.is_descriptor && dst.is_descriptor) {
    // Only dst's descriptor knows the shape of src1.
    operands.dst = resolve(memory, dst, {});
    operands.src1 = resolve(memory, src, operands.dst.shape);
  } else {
    operands.src1 = resolve(memory, src, counted(src, packet.param[isa::kCopyCount]));
    operands.dst = resolve(memory, dst, operands.src1.shape);
  }
  return operands;
}

TensorView fill_operand(const Memory& memory, const Packet& packet) {
  const OperandRef dst = dst_of(packet);
  return resolve(memory, dst, counted(dst, packet.param[isa::kFillCount]));
}

/// SYNC's type fields are zero; it writes a 32-bit word.
TensorView sync_operand(const Memory& memory, const Packet& packet) {
  OperandRef dst = dst_of(packet);
  dst.dtype = isa::DType::kInt32;
  return resolve(memory, dst, Shape{1, {1}});
}

}  // namespace

VectorOperands resolve_vector_operands(const Memory& memory, const Packet& packet,
                                       const VectorProgram& program) {
  fail_if(has_flag(packet, isa::kOperandListMask) && packet.src1 % sizeof(isa::Descriptor) != 0,
          isa::ErrorCode::kMisaligned,
          [&] { return "operand list " + hex(packet.src1) + " is not 64-aligned"; });
  VectorOperands operands;
  const std::uint32_t count = packet.param[isa::kVectorCount];
  ShapeRule rule;
  if (count != 0) rule = Shape{1, {count}};
  for (std::size_t i = 0; i < program.sources; ++i) {
    operands.source[i] = resolve(memory, vector_ref(packet, program, i), rule);
    rule = operands.source[operands.source_count++].shape;
  }
  if (program.reduce != isa::Reduce::kNone) rule.shape->size[rule.shape->rank - 1] = 1;
  for (std::size_t i = 0; i < program.results; ++i) {
    operands.result[i] = resolve(memory, vector_ref(packet, program, program.sources + i), rule);
    rule = operands.result[operands.result_count++].shape;
  }
  return operands;
}

Operands resolve_operands(const Memory& memory, const Packet& packet) {
  switch (static_cast<isa::Opcode>(packet.opcode)) {
    case isa::Opcode::kMatmul:
      return matmul_operands(memory, packet);
    case isa::Opcode::kGather:
      return gather_operands(memory, packet);
    case isa::Opcode::kScatter:
      return scatter_operands(memory, packet);
    case isa::Opcode::kCopy:
      return copy_operands(memory, packet);
    case isa::Opcode::kFill:
      return {.src1 = {}, .src2 = {}, .src3 = {}, .dst = fill_operand(memory, packet)};
    case isa::Opcode::kSync:
      return {.src1 = {}, .src2 = {}, .src3 = {}, .dst = sync_operand(memory, packet)};
    default:
      return {};  // NOP, FENCE
  }
}

}  // namespace npu
