// SPDX-License-Identifier: Apache-2.0
/// Weights of four bits, eight rows of them in a word, as the numbers that a product multiplies by.
#pragma once

#include "buffer.h"
#include "matmul.h"

namespace npu {

struct Int4Job {
  std::size_t batch, k, n;
  MatrixRef words;   // int32 [batch, ceil(k / 8), n]
  MatrixRef scales;  // of a floating-point type, [batch, ceil(k / 2^group), n]
  unsigned group;    // log2 of the rows that share a scale
};

/// fp32 words [batch, k, n]: each weight, 8 less, times its scale, rounded to the scales' type and
/// widened.
[[nodiscard]] WordBuffer expand_int4(const Int4Job& job, unsigned threads);

}  // namespace npu
