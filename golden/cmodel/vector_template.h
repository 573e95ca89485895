// SPDX-License-Identifier: Apache-2.0
/// The loops of VECTOR, to be included once by each kernels_*.cpp: see kernel_template.h.
///
/// "ivdep": a loop's destination may be one of its operands, but then at the same index.
#pragma once

#include <utility>

#include "elements.h"
#include "micro.h"
#include "vector_kernels.h"

namespace npu {
namespace {

template <isa::MicroOp kOp, unsigned kRepeated>
void run_micro(const MicroStep& step) {
  const std::uint32_t* const a = step.operands[0].words;
  const std::uint32_t* const b = step.operands[1].words;
  const std::uint32_t* const c = step.operands[2].words;
  const std::uint32_t a0 = *a;
  const std::uint32_t b0 = *b;
  const std::uint32_t c0 = *c;
  std::uint32_t* const dst = step.dst;
  const std::size_t count = step.count / kVectorWords * kVectorWords;
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    dst[i] = scalar::micro<kOp>(kRepeated & 1 ? a0 : a[i], kRepeated & 2 ? b0 : b[i],
                                kRepeated & 4 ? c0 : c[i]);
  }
}

/// Picks the loop that knows which operands are one word.
template <isa::MicroOp kOp, unsigned... kMasks>
void pick_micro(const MicroStep& step, std::integer_sequence<unsigned, kMasks...>) {
  unsigned mask = 0;
  for (unsigned i = 0; i < 3; ++i) mask |= step.operands[i].repeated ? 1U << i : 0U;
  ((mask == kMasks ? run_micro<kOp, kMasks>(step) : void()), ...);
}

template <isa::MicroOp kOp>
void micro_step(const MicroStep& step) {
  pick_micro<kOp>(step, std::make_integer_sequence<unsigned, 8>{});
}

void find_segments(const SegmentStep& step) {
  const std::uint32_t first = isa::kTableFirst[step.table];
  const std::uint32_t shift = isa::kTableShift[step.table];
  const std::uint32_t last = isa::kTableLast[step.table];
  const std::uint32_t row = isa::kTableRow[step.table];
  const std::size_t count = step.count / kVectorWords * kVectorWords;
  const std::uint32_t* const a = step.a.words;
  const bool repeated = step.a.repeated;
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    step.places[i] = scalar::segment_place(repeated ? *a : a[i], first, shift, last, row);
  }
}

void read_column(const ColumnStep& step) {
  const std::uint32_t* const words = isa::kTableWords.data() + step.column;
  const std::uint32_t sign = step.odd ? scalar::kFp32Sign : 0;
  const std::size_t count = step.count / kVectorWords * kVectorWords;
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t place = step.places[i];
    step.dst[i] = words[place & ~scalar::kFp32Sign] ^ (place & sign);
  }
}

template <isa::Reduce kReduce>
void fold_words(const std::uint32_t* words, std::size_t count, std::uint32_t* lanes) {
  constexpr std::size_t kLanes = isa::kReductionLanes;
  std::uint32_t sums[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] = lanes[lane];
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] = scalar::combine<kReduce>(sums[lane], words[i + lane]);
    }
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) {
    sums[lane] = scalar::combine<kReduce>(sums[lane], words[i]);
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = sums[lane];
}

template <isa::DType kDType>
void load_adjacent(const std::byte* src, std::size_t count, std::uint32_t* dst) {
  for (std::size_t i = 0; i < count; ++i) {
    dst[i] = scalar::load_element<kDType>(src + i * sizeof(scalar::Element<kDType>));
  }
}

template <isa::DType kDType>
void store_adjacent(const std::uint32_t* src, std::size_t count, std::byte* dst) {
  for (std::size_t i = 0; i < count; ++i) {
    scalar::store_element<kDType>(src[i], dst + i * sizeof(scalar::Element<kDType>));
  }
}

template <std::size_t... kOps, std::size_t... kReductions, std::size_t... kDTypes>
constexpr VectorKernels make_vector_kernels(std::index_sequence<kOps...>,
                                            std::index_sequence<kReductions...>,
                                            std::index_sequence<kDTypes...>) {
  return {{micro_step<static_cast<isa::MicroOp>(kOps)>...},
          {fold_words<static_cast<isa::Reduce>(kReductions)>...},
          {load_adjacent<static_cast<isa::DType>(kDTypes)>...},
          {store_adjacent<static_cast<isa::DType>(kDTypes)>...},
          find_segments,
          read_column};
}

constexpr VectorKernels kVectorKernels = make_vector_kernels(
    std::make_index_sequence<kMicroOps>{}, std::make_index_sequence<isa::kIdentity.size()>{},
    std::make_index_sequence<isa::kDTypeBytes.size()>{});

}  // namespace
}  // namespace npu
