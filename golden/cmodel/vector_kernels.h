// SPDX-License-Identifier: Apache-2.0
/// The loops of VECTOR, one set per instruction set of the host, as kernels.h for MATMUL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "npu_isa.h"
#include "npu_micro.h"

namespace npu {

/// Words that a row of one of the loops below covers; counts are rounded up to it.
inline constexpr std::size_t kVectorWords = isa::kReductionLanes;

struct MicroOperand {
  const std::uint32_t* words;
  bool repeated;  // one word for all elements
};

/// dst[i] = instruction(a[i], b[i], c[i]) for i < count, a multiple of kVectorWords. dst may be an
/// operand.
struct MicroStep {
  MicroOperand operands[3];
  std::uint32_t* dst;
  std::size_t count;
};

/// places[i] = row of a[i] in the table, as an index of kTableWords, with the sign of a[i] in
/// bit 31.
struct SegmentStep {
  MicroOperand a;
  unsigned table;
  std::uint32_t* places;
  std::size_t count;
};

/// dst[i] = that column's word in the row of places[i], of an odd one with its sign.
struct ColumnStep {
  const std::uint32_t* places;
  unsigned column;
  bool odd;
  std::uint32_t* dst;
  std::size_t count;
};

using SegmentFunction = void (*)(const SegmentStep& step);
using ColumnFunction = void (*)(const ColumnStep& step);
using MicroFunction = void (*)(const MicroStep& step);
/// lanes[i mod 16] = combine(lanes[i mod 16], words[i]), ascending.
using ReduceFunction = void (*)(const std::uint32_t* words, std::size_t count,
                                std::uint32_t* lanes);
/// Adjacent elements to words and back, by the load and the store of their type.
using LoadFunction = void (*)(const std::byte* src, std::size_t count, std::uint32_t* dst);
using StoreFunction = void (*)(const std::uint32_t* src, std::size_t count, std::byte* dst);

inline constexpr std::size_t kMicroOps = isa::kMicroOperands.size();

struct VectorKernels {
  std::array<MicroFunction, kMicroOps> micro;              // by MicroOp
  std::array<ReduceFunction, isa::kIdentity.size()> fold;  // by Reduce
  std::array<LoadFunction, isa::kDTypeBytes.size()> load;  // by DType
  std::array<StoreFunction, isa::kDTypeBytes.size()> store;
  SegmentFunction segment;
  ColumnFunction column;
};

}  // namespace npu
