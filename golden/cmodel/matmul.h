// SPDX-License-Identifier: Apache-2.0
/// The product of the contract, C = convert(chain over k of fma(a, b, acc)), for any strides.
///
/// Order: every element of C is one ascending chain over k, whatever the blocking, the vector width
/// or the number of threads. Rows and columns are what gets blocked, vectorised and shared out.
///
/// NaNs: the host's fma propagates payloads and signs that the contract does not have. They cannot
/// reach a number: an fma with a NaN operand is a NaN, so from the first NaN on the chain is NaN in
/// the contract as on the host, and an invalid operation (inf - inf, 0·inf) makes one in both.
/// Hence "is it a NaN" agrees after every step, all other values never saw a payload, and it is
/// enough to replace NaNs by the canonical one when the result is converted to its type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels.h"
#include "npu_isa.h"
#include "offsets.h"

namespace npu {

/// A batch of matrices; strides in elements of `dtype`, any sign, zero broadcasts.
struct MatrixRef {
  std::byte* data;
  isa::DType dtype;
  std::ptrdiff_t batch_stride;
  std::ptrdiff_t row_stride;
  std::ptrdiff_t column_stride;
  Offsets offsets{};  // of a window, instead of both strides
};

/// c[batch, m, n] = a[batch, m, k] · b[batch, k, n], or start + that, of c's type.
struct MatmulJob {
  std::size_t batch, m, k, n;
  MatrixRef a, b, c, start;
  bool accumulate;
};

/// Computes the job on `threads` threads, 0 meaning one per host processor. The types are one of
/// isa::kMatmulDTypes; c overlaps neither a nor b nor
/// itself; start is c, or does not overlap it.
void matmul(const MatmulJob& job, unsigned threads,
            const Kernels& kernels = *usable_kernels().front());

}  // namespace npu
