// SPDX-License-Identifier: Apache-2.0
#include "vector_block.h"

#include <algorithm>
#include <numeric>

#include "elements.h"
#include "micro.h"

namespace npu {

namespace {

using isa::Reduce;

/// Buffers of a block: destination codes, sources, positions, rows of a table, one of its columns.
constexpr std::size_t kSourceBuffer = isa::kDstResult + isa::kMaxResults;
constexpr std::size_t kIndexBuffer = kSourceBuffer + isa::kMaxSources;
constexpr std::size_t kPlaceBuffer = kIndexBuffer + 1;
constexpr std::size_t kColumnBuffer = kPlaceBuffer + 1;
constexpr std::size_t kBuffers = kColumnBuffer + 1;

std::uint32_t load_one(const Run& run) {
  return scalar::with_dtype(run.dtype,
                            [&](auto dtype) { return scalar::load_element<dtype>(run.first); });
}

/// The tree over the lanes: 8, 4, 2, 1 apart.
template <Reduce kReduce>
std::uint32_t join(std::array<std::uint32_t, isa::kReductionLanes> lanes) {
  for (std::size_t apart = lanes.size() / 2; apart > 0; apart /= 2) {
    for (std::size_t i = 0; i < apart; ++i) {
      lanes[i] = scalar::combine<kReduce>(lanes[i], lanes[i + apart]);
    }
  }
  return lanes[0];
}

using Join = std::uint32_t (*)(std::array<std::uint32_t, isa::kReductionLanes>);

constexpr std::array<Join, isa::kIdentity.size()> kJoin = [] {
  return []<std::size_t... kReductions>(std::index_sequence<kReductions...>) {
    return std::array<Join, sizeof...(kReductions)>{join<static_cast<Reduce>(kReductions)>...};
  }(std::make_index_sequence<isa::kIdentity.size()>{});
}();

}  // namespace

VectorBlock::VectorBlock(const VectorProgram& program,
                         const std::array<std::uint32_t, isa::kImmediates>& imm,
                         const VectorKernels& kernels)
    : program_(program),
      imm_(imm),
      kernels_(kernels),
      numbered_(program.numbers_elements()),
      storage_(kBuffers * kBlockWords) {}

void VectorBlock::begin(std::size_t count) {
  count_ = (count + kVectorWords - 1) / kVectorWords * kVectorWords;
  repeated_ = {};
}

void VectorBlock::load(std::size_t source, std::size_t at, const Run& run) {
  std::uint32_t* const dst = words(kSourceBuffer + source) + at;
  const auto type = static_cast<std::size_t>(run.dtype);
  if (run.step == isa::kDTypeBytes[type]) return kernels_.load[type](run.first, run.count, dst);
  if (run.step == 0) {
    std::fill_n(dst, run.count, load_one(run));
    return;
  }
  scalar::with_dtype(run.dtype, [&](auto dtype) {
    for (std::size_t i = 0; i < run.count; ++i) {
      dst[i] = scalar::load_element<dtype>(run.first + i * run.step);
    }
  });
}

void VectorBlock::repeat(std::size_t source, const Run& run) {
  *words(kSourceBuffer + source) = load_one(run);
  repeated_[source] = true;
}

void VectorBlock::number(std::size_t at, std::size_t count, std::uint64_t first) {
  if (!numbered_) return;
  std::uint32_t* const dst = words(kIndexBuffer) + at;
  std::iota(dst, dst + count, static_cast<std::uint32_t>(first));
}

MicroOperand VectorBlock::operand(std::uint8_t code) const {
  if (code >= isa::kOperandConst) return {&program_.constants[code - isa::kOperandConst], true};
  if (code >= isa::kOperandTable) {
    const unsigned column = code - isa::kOperandTable;
    const bool odd = (isa::kTableOdd[table_] >> column & 1U) != 0;
    std::uint32_t* const dst = words(kColumnBuffer);  // an instruction has one column at most
    kernels_.column({words(kPlaceBuffer), column, odd, dst, count_});
    return {dst, false};
  }
  if (code >= isa::kOperandImm) return {&imm_[code - isa::kOperandImm], true};
  if (code == isa::kOperandIndex) return {words(kIndexBuffer), false};
  if (code >= isa::kOperandSrc) {
    const std::size_t source = code - isa::kOperandSrc;
    return {words(kSourceBuffer + source), repeated_[source]};
  }
  return {words(code), false};
}

void VectorBlock::execute() {
  for (const isa::Instruction& line : program_.code) {
    if (line.op == isa::MicroOp::kSegment) {
      segment(line, operand(line.a));
      continue;
    }
    kernels_.micro[static_cast<std::size_t>(line.op)](
        {{operand(line.a), operand(line.b), operand(line.c)}, words(line.dst), count_});
  }
}

void VectorBlock::segment(const isa::Instruction& line, const MicroOperand& a) {
  const MicroOperand limit{&isa::kTableLimit[line.b], true};
  kernels_.segment({a, line.b, words(kPlaceBuffer), count_});
  table_ = line.b;
  kernels_.micro[static_cast<std::size_t>(line.op)]({{a, limit, limit}, words(line.dst), count_});
}

void VectorBlock::store(std::size_t result, std::size_t at, const Run& run) const {
  const std::uint32_t* const src = words(isa::kDstResult + result) + at;
  const auto type = static_cast<std::size_t>(run.dtype);
  if (run.step == isa::kDTypeBytes[type]) return kernels_.store[type](src, run.count, run.first);
  scalar::with_dtype(run.dtype, [&](auto dtype) {
    for (std::size_t i = 0; i < run.count; ++i) {
      scalar::store_element<dtype>(src[i], run.first + i * run.step);
    }
  });
}

void VectorBlock::fold_begin() {
  lanes_.fill(isa::kIdentity[static_cast<std::size_t>(program_.reduce)]);
}

void VectorBlock::fold(std::size_t at, std::size_t count) {
  kernels_.fold[static_cast<std::size_t>(program_.reduce)](words(isa::kDstResult) + at, count,
                                                           lanes_.data());
}

void VectorBlock::fold_end(const Run& run) {
  const std::uint32_t word = kJoin[static_cast<std::size_t>(program_.reduce)](lanes_);
  scalar::with_dtype(run.dtype, [&](auto dtype) { scalar::store_element<dtype>(word, run.first); });
}

}  // namespace npu
