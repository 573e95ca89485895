// SPDX-License-Identifier: Apache-2.0
#include "pack.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "scalar.h"

namespace npu {

namespace {

using isa::DType;

/// Side of the square that a transposition keeps in the first-level cache.
constexpr std::size_t kSquare = 32;

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

/// For a source whose columns are contiguous: widen them, then turn squares round.
void pack_transposed(const Kernels& kernels, const Block& src, std::uint32_t* dst,
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

/// An int8 element as the 16 bits of half a pair.
std::uint32_t half(const Plane& plane, std::size_t row, std::size_t column) {
  const auto value = static_cast<std::int8_t>(*plane.at(row, column));
  return static_cast<std::uint16_t>(std::int16_t{value});
}

/// Row by row: dst element = convert(word).
template <class Element, class Convert>
void unpack_rows(const std::uint32_t* src, std::ptrdiff_t src_stride, const Block& dst,
                 Convert&& convert) {
  const std::ptrdiff_t step =
      dst.plane.column_stride * static_cast<std::ptrdiff_t>(sizeof(Element));
  for (std::size_t r = 0; r < dst.rows; ++r, src += src_stride) {
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

void pack_words(const Kernels& kernels, const Block& src, std::uint32_t* dst,
                std::ptrdiff_t dst_stride) {
  const Plane& plane = src.plane;
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

void pack_row_pairs(const Block& src, std::uint32_t* dst, std::ptrdiff_t dst_stride) {
  for (std::size_t r = 0; r < src.rows; ++r, dst += dst_stride) {
    for (std::size_t c = 0; c < src.columns; c += 2) {
      const std::uint32_t high = c + 1 < src.columns ? half(src.plane, r, c + 1) : 0;
      dst[c / 2] = half(src.plane, r, c) | high << 16;
    }
  }
}

void pack_column_pairs(const Block& src, std::uint32_t* dst, std::ptrdiff_t dst_stride) {
  for (std::size_t r = 0; r < src.rows; r += 2, dst += dst_stride) {
    for (std::size_t c = 0; c < src.columns; ++c) {
      const std::uint32_t high = r + 1 < src.rows ? half(src.plane, r + 1, c) : 0;
      dst[c] = half(src.plane, r, c) | high << 16;
    }
  }
}

void pack_steps(const Kernels& kernels, const Block& src, std::uint32_t* dst,
                std::ptrdiff_t dst_stride) {
  if (src.plane.dtype == DType::kInt8) {
    pack_row_pairs(src, dst, dst_stride);
  } else {
    pack_words(kernels, src, dst, dst_stride);
  }
}

void unpack_words(const std::uint32_t* src, std::ptrdiff_t src_stride, const Block& dst) {
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
