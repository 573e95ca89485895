// SPDX-License-Identifier: Apache-2.0
/// The one inner loop, to be included once by each kernels_*.cpp.
///
/// Those files are compiled for different instruction sets, so nothing here may have external
/// linkage: the linker would keep one copy of it, perhaps one that the host cannot execute. Hence
/// the anonymous namespace, and no calls into the standard library's templates.
#pragma once

#include <utility>

#include "kernels.h"
#include "scalar.h"

namespace npu {
namespace {

template <class Step, int kRows, int kVectors>
void run_rows(const Tile& tile) {
  using Vector = typename Step::Vector;
  Vector acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      acc[r][v] = Step::load(tile.c + r * tile.c_stride + v * Step::kLanes);
    }
  }
  const std::uint32_t* a = tile.a;
  const std::uint32_t* b = tile.b;
  for (std::size_t s = 0; s < tile.steps; ++s, ++a, b += tile.b_stride) {
    Vector columns[kVectors];
    for (int v = 0; v < kVectors; ++v) columns[v] = Step::load(b + v * Step::kLanes);
    for (int r = 0; r < kRows; ++r) {
      const Vector row = Step::broadcast(a + r * tile.a_stride);
      for (int v = 0; v < kVectors; ++v) acc[r][v] = Step::step(row, columns[v], acc[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      Step::store(tile.c + r * tile.c_stride + v * Step::kLanes, acc[r][v]);
    }
  }
}

template <class Step, int kVectors, int... kIndex>
void pick_rows(const Tile& tile, std::integer_sequence<int, kIndex...>) {
  const int rows = static_cast<int>(tile.rows);
  ((rows == kIndex + 1 ? run_rows<Step, kIndex + 1, kVectors>(tile) : void()), ...);
}

template <class Step, int kVectors>
void run_tile(const Tile& tile) {
  pick_rows<Step, kVectors>(tile,
                            std::make_integer_sequence<int, Step::kAccumulators / kVectors>{});
}

void widen_fp16_row(const std::byte* src, std::size_t count, std::uint32_t* dst) {
  for (std::size_t i = 0; i < count; ++i) dst[i] = scalar::widen_fp16(scalar::load16(src + 2 * i));
}

void widen_bf16_row(const std::byte* src, std::size_t count, std::uint32_t* dst) {
  for (std::size_t i = 0; i < count; ++i) dst[i] = scalar::widen_bf16(scalar::load16(src + 2 * i));
}

}  // namespace
}  // namespace npu
