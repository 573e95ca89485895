// SPDX-License-Identifier: Apache-2.0
/// From operands with any strides to the 32-bit words that a Tile reads.
#pragma once

#include "kernels.h"
#include "matmul.h"
#include "offsets.h"
#include "packet.h"

namespace npu {

/// One matrix in host memory; strides in elements, any sign, or tables in their place.
struct Plane {
  std::byte* data;
  isa::DType dtype;
  std::ptrdiff_t row_stride;
  std::ptrdiff_t column_stride;
  Offsets offsets{};

  [[nodiscard]] std::byte* at(std::size_t row, std::size_t column) const {
    const auto index = offsets ? offsets.row[row] + offsets.column[column]
                               : static_cast<std::ptrdiff_t>(row) * row_stride +
                                     static_cast<std::ptrdiff_t>(column) * column_stride;
    return data + index * static_cast<std::ptrdiff_t>(dtype_bytes(dtype));
  }
  /// The plane that begins at (row, column) of this one.
  [[nodiscard]] Plane from(std::size_t row, std::size_t column) const {
    if (offsets) {
      return {data, dtype, 0, 0, {offsets.row + row, offsets.column + column}};
    }
    return {at(row, column), dtype, row_stride, column_stride};
  }
  /// Whether neighbours in a row are `stride` elements apart throughout.
  [[nodiscard]] bool is_line(std::ptrdiff_t stride) const {
    return !offsets && column_stride == stride;
  }
};

/// One matrix of a batch.
[[nodiscard]] Plane plane_of(const MatrixRef& ref, std::size_t batch);

/// The block of `rows` × `columns` elements at the plane's origin.
struct MatrixBlock {
  Plane plane;
  std::size_t rows;
  std::size_t columns;
};

/// Words along k that hold `k` elements: floats one each, int8 two.
[[nodiscard]] inline std::size_t steps_of(isa::DType dtype, std::size_t k) {
  return dtype == isa::DType::kInt8 ? k / 2 + k % 2 : k;
}

/// dst[r·dst_stride + c] = element (r, c), floats widened to fp32. A NaN stays one; its payload is
/// anything. The element is not int8.
void pack_words(const Kernels& kernels, const MatrixBlock& src, std::uint32_t* dst,
                std::ptrdiff_t dst_stride);

/// dst[r·dst_stride + p] = int16 pair of int8 elements (r, 2p) and (r, 2p + 1); zero past the last
/// column.
void pack_row_pairs(const MatrixBlock& src, std::uint32_t* dst, std::ptrdiff_t dst_stride);

/// dst[p·dst_stride + c] = int16 pair of int8 elements (2p, c) and (2p + 1, c); zero past the last
/// row.
void pack_column_pairs(const MatrixBlock& src, std::uint32_t* dst, std::ptrdiff_t dst_stride);

/// The words of each row along k: pack_words, or pack_row_pairs for int8.
void pack_steps(const Kernels& kernels, const MatrixBlock& src, std::uint32_t* dst,
                std::ptrdiff_t dst_stride);

/// The inverse of pack_words: rounds to the plane's type once, NaNs to the canonical one.
void unpack_words(const std::uint32_t* src, std::ptrdiff_t src_stride, const MatrixBlock& dst);

}  // namespace npu
