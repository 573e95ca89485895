// SPDX-License-Identifier: Apache-2.0
/// Inner loops, one set per instruction set of the host, chosen at run time.
///
/// A tile is rows × (vectors · lanes) elements of C, held in registers over all its steps. Data are
/// 32-bit words: floats, or pairs of int16 (low half: even k) whose products are added modulo 2^32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vector_kernels.h"

namespace npu {

struct Tile {
  std::size_t steps;
  std::size_t rows;
  const std::uint32_t* a;  // word of row r, step s: a[r·a_stride + s]
  std::ptrdiff_t a_stride;
  const std::uint32_t* b;  // word of step s, column j: b[s·b_stride + j]
  std::ptrdiff_t b_stride;
  std::uint32_t* c;  // read and written: the chain continues from what is there
  std::ptrdiff_t c_stride;
};

using TileFunction = void (*)(const Tile&);

/// Widens `count` adjacent elements to floats, exactly (a NaN stays one, whatever its payload).
using WidenFunction = void (*)(const std::byte* src, std::size_t count, std::uint32_t* dst);

struct Kernels {
  static constexpr std::size_t kMaxVectors = 4;

  const char* name;
  std::size_t lanes;               // words per vector
  std::size_t vectors;             // per row of the widest tile, at most kMaxVectors
  std::size_t accumulators;        // a tile of v vectors has at most accumulators / v rows
  TileFunction fma[kMaxVectors];   // [v - 1]: acc = fma(a, b, acc)
  TileFunction mac8[kMaxVectors];  // [v - 1]: acc += a.lo·b.lo + a.hi·b.hi
  WidenFunction widen_fp16;
  WidenFunction widen_bf16;
  const VectorKernels& vector;  // the loops of VECTOR
};

extern const Kernels kPortableKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

/// The sets that this host can execute, fastest first; the last is the portable one.
[[nodiscard]] const std::vector<const Kernels*>& usable_kernels();

}  // namespace npu
