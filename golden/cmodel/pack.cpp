// SPDX-License-Identifier: Apache-2.0
#include "pack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "scalar.h"

namespace npu {

namespace {

using isa::DType;

/// Side of the square that a transposition keeps in the first-level cache.
constexpr std::size_t kSquare = 32;
/// Mean length from which runs are faster than single elements.
constexpr std::size_t kWorthwhileRun = 4;

std::uint32_t widen(DType dtype, const std::byte* element) {
  switch (dtype) {
    case DType::kFp16:
      return scalar::widen_fp16(scalar::load16(element));
    case DType::kBf16:
      return scalar::widen_bf16(scalar::load16(element));
    default:
      return scalar::load32(element);
  }
}

void widen_adjacent(const Kernels& kernels, DType dtype, const std::byte* src, std::size_t count,
                    std::uint32_t* dst) {
  switch (dtype) {
    case DType::kFp16:
      return kernels.widen_fp16(src, count, dst);
    case DType::kBf16:
      return kernels.widen_bf16(src, count, dst);
    default:
      std::memcpy(dst, src, count * sizeof(std::uint32_t));
  }
}

/// Neighbours that are adjacent in memory.
struct AdjacentRun {
  std::size_t first;
  std::size_t count;
};

/// The rows or columns 0 … count − 1 as runs of adjacent ones.
std::vector<AdjacentRun> runs_of(const std::ptrdiff_t* offsets, std::size_t count) {
  std::vector<AdjacentRun> runs;
  for (std::size_t i = 0; i < count; ++i) {
    const bool adjacent = i > 0 && offsets[i] == offsets[i - 1] + 1;
    if (!adjacent) runs.push_back({i, 0});
    ++runs.back().count;
  }
  return runs;
}

/// For a source whose columns are contiguous: widen them, then turn squares round.
void pack_transposed(const Kernels& kernels, const MatrixBlock& src, std::uint32_t* dst,
                     std::ptrdiff_t dst_stride) {
  std::array<std::array<std::uint32_t, kSquare>, kSquare> square;
  for (std::size_t c0 = 0; c0 < src.columns; c0 += kSquare) {
    const std::size_t columns = std::min(kSquare, src.columns - c0);
    for (std::size_t r0 = 0; r0 < src.rows; r0 += kSquare) {
      const std::size_t rows = std::min(kSquare, src.rows - r0);
      for (std::size_t c = 0; c < columns; ++c) {
        widen_adjacent(kernels, src.plane.dtype, src.plane.at(r0, c0 + c), rows, square[c].data());
      }
      for (std::size_t r = 0; r < rows; ++r) {
        std::uint32_t* out = dst + static_cast<std::ptrdiff_t>(r0 + r) * dst_stride + c0;
        for (std::size_t c = 0; c < columns; ++c) out[c] = square[c][r];
      }
    }
  }
}

/// For a window: by runs of adjacent columns, or of adjacent rows, or element by element.
void pack_window(const Kernels& kernels, const MatrixBlock& src, std::uint32_t* dst,
                 std::ptrdiff_t dst_stride) {
  const Plane& plane = src.plane;
  const auto columns = runs_of(plane.offsets.column, src.columns);
  if (src.columns >= kWorthwhileRun * columns.size()) {
    for (std::size_t r = 0; r < src.rows; ++r, dst += dst_stride) {
      for (const AdjacentRun& run : columns) {
        widen_adjacent(kernels, plane.dtype, plane.at(r, run.first), run.count, dst + run.first);
      }
    }
    return;
  }
  const auto rows = runs_of(plane.offsets.row, src.rows);
  if (src.rows >= kWorthwhileRun * rows.size()) {
    for (const AdjacentRun& run : rows) {
      pack_transposed(kernels, {plane.from(run.first, 0), run.count, src.columns},
                      dst + static_cast<std::ptrdiff_t>(run.first) * dst_stride, dst_stride);
    }
    return;
  }
  for (std::size_t r = 0; r < src.rows; ++r, dst += dst_stride) {
    for (std::size_t c = 0; c < src.columns; ++c) dst[c] = widen(plane.dtype, plane.at(r, c));
  }
}

/// An int8 element as the 16 bits of half a pair.
std::uint32_t half(const Plane& plane, std::size_t row, std::size_t column) {
  const auto value = static_cast<std::int8_t>(*plane.at(row, column));
  return static_cast<std::uint16_t>(std::int16_t{value});
}

/// Row by row: dst element = convert(word).
template <class Element, class Convert>
void unpack_rows(const std::uint32_t* src, std::ptrdiff_t src_stride, const MatrixBlock& dst,
                 Convert&& convert) {
  const std::ptrdiff_t step =
      dst.plane.column_stride * static_cast<std::ptrdiff_t>(sizeof(Element));
  for (std::size_t r = 0; r < dst.rows; ++r, src += src_stride) {
    if (dst.plane.offsets) {
      for (std::size_t c = 0; c < dst.columns; ++c) {
        const Element value = convert(src[c]);
        std::memcpy(dst.plane.at(r, c), &value, sizeof(Element));
      }
      continue;
    }
    std::byte* out = dst.plane.at(r, 0);
    if (dst.plane.column_stride == 1) {  // the constant step lets this loop vectorise
      for (std::size_t c = 0; c < dst.columns; ++c) {
        const Element value = convert(src[c]);
        std::memcpy(out + c * sizeof(Element), &value, sizeof(Element));
      }
      continue;
    }
    for (std::size_t c = 0; c < dst.columns; ++c, out += step) {
      const Element value = convert(src[c]);
      std::memcpy(out, &value, sizeof(Element));
    }
  }
}

}  // namespace

Plane plane_of(const MatrixRef& ref, std::size_t batch) {
  const auto offset = static_cast<std::ptrdiff_t>(batch) * ref.batch_stride;
  return {ref.data + offset * static_cast<std::ptrdiff_t>(dtype_bytes(ref.dtype)), ref.dtype,
          ref.row_stride, ref.column_stride, ref.offsets};
}

void pack_words(const Kernels& kernels, const MatrixBlock& src, std::uint32_t* dst,
                std::ptrdiff_t dst_stride) {
  const Plane& plane = src.plane;
  if (plane.offsets) return pack_window(kernels, src, dst, dst_stride);
  if (plane.column_stride != 1 && plane.row_stride == 1) {
    return pack_transposed(kernels, src, dst, dst_stride);
  }
  for (std::size_t r = 0; r < src.rows; ++r, dst += dst_stride) {
    if (plane.column_stride == 1) {
      widen_adjacent(kernels, plane.dtype, plane.at(r, 0), src.columns, dst);
      continue;
    }
    for (std::size_t c = 0; c < src.columns; ++c) dst[c] = widen(plane.dtype, plane.at(r, c));
  }
}

void pack_row_pairs(const MatrixBlock& src, std::uint32_t* dst, std::ptrdiff_t dst_stride) {
  for (std::size_t r = 0; r < src.rows; ++r, dst += dst_stride) {
    for (std::size_t c = 0; c < src.columns; c += 2) {
      const std::uint32_t high = c + 1 < src.columns ? half(src.plane, r, c + 1) : 0;
      dst[c / 2] = half(src.plane, r, c) | high << 16;
    }
  }
}

void pack_column_pairs(const MatrixBlock& src, std::uint32_t* dst, std::ptrdiff_t dst_stride) {
  for (std::size_t r = 0; r < src.rows; r += 2, dst += dst_stride) {
    for (std::size_t c = 0; c < src.columns; ++c) {
      const std::uint32_t high = r + 1 < src.rows ? half(src.plane, r + 1, c) : 0;
      dst[c] = half(src.plane, r, c) | high << 16;
    }
  }
}

void pack_steps(const Kernels& kernels, const MatrixBlock& src, std::uint32_t* dst,
                std::ptrdiff_t dst_stride) {
  if (src.plane.dtype == DType::kInt8) {
    pack_row_pairs(src, dst, dst_stride);
  } else {
    pack_words(kernels, src, dst, dst_stride);
  }
}

void unpack_words(const std::uint32_t* src, std::ptrdiff_t src_stride, const MatrixBlock& dst) {
  switch (dst.plane.dtype) {
    case DType::kFp32:
      return unpack_rows<std::uint32_t>(src, src_stride, dst, scalar::canonical);
    case DType::kFp16:
      return unpack_rows<std::uint16_t>(src, src_stride, dst, scalar::narrow_fp16);
    case DType::kBf16:
      return unpack_rows<std::uint16_t>(src, src_stride, dst, scalar::narrow_bf16);
    default:
      return unpack_rows<std::uint32_t>(src, src_stride, dst, [](std::uint32_t w) { return w; });
  }
}

}  // namespace npu
