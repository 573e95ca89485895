// SPDX-License-Identifier: Apache-2.0
#include "panel.h"

#include <algorithm>
#include <optional>

#include "buffer.h"

namespace npu {

namespace {

/// Steps whose panel of B (64 words wide) stays in the second-level cache.
constexpr std::size_t kStepBlock = 1024;
/// Rows that reuse a block of B before the next is fetched; divisible by every tile height.
constexpr std::size_t kRowBlock = 96;
/// Rows of A that are packed at a time where each is needed once; divisible likewise.
constexpr std::size_t kPackedRows = 24;
/// Up to this many rows, B is read where it lies: too few uses would pay for a copy.
constexpr std::size_t kFewRows = 12;

struct Columns {
  std::size_t first;
  std::size_t count;
  std::size_t vectors;
  std::size_t width;  // count, rounded up to whole vectors
};

/// B's columns as words, step by step: in place when they lie so, else packed into `storage`.
WordRows columns_of_b(const Product& product, const Range& rows, const Columns& columns,
                      std::optional<WordBuffer>& storage) {
  const Plane b = product.b.from(0, columns.first);
  const auto in_place = words_in_place(b);
  if (in_place && rows.count <= kFewRows && columns.count == columns.width) return *in_place;
  const std::size_t steps = steps_of(b.dtype, product.k);
  const auto stride = static_cast<std::ptrdiff_t>(columns.width);
  storage.emplace(steps * columns.width);
  if (columns.count < columns.width) std::fill_n(storage->data(), steps * columns.width, 0);
  const MatrixBlock block{b, product.k, columns.count};
  if (b.dtype == isa::DType::kInt8) {
    pack_column_pairs(block, storage->data(), stride);
  } else {
    pack_words(product.kernels, block, storage->data(), stride);
  }
  return {storage->data(), stride};
}

/// A's rows as words along k.
class RowsOfA {
 public:
  explicit RowsOfA(const Product& product)
      : product_(product),
        steps_(steps_of(product.a.dtype, product.k)),
        storage_(product.a_words ? 0 : kPackedRows * steps_) {}

  /// Those of `part`, at most kPackedRows where they are packed for it.
  [[nodiscard]] WordRows words(const Range& part) {
    if (product_.a_words) {
      const WordRows& all = *product_.a_words;
      return {all.data + static_cast<std::ptrdiff_t>(part.first) * all.stride, all.stride};
    }
    const auto stride = static_cast<std::ptrdiff_t>(steps_);
    const MatrixBlock block{product_.a.from(part.first, 0), part.count, product_.k};
    pack_steps(product_.kernels, block, storage_.data(), stride);
    return {storage_.data(), stride};
  }

 private:
  const Product& product_;
  std::size_t steps_;
  WordBuffer storage_;
};

/// All steps for `rows` rows of A, whose partial sums are in `c`.
void multiply_rows(const Product& product, std::size_t rows, const WordRows& a, const WordRows& b,
                   const Columns& columns, std::uint32_t* c) {
  const bool integer = product.b.dtype == isa::DType::kInt8;
  const Kernels& kernels = product.kernels;
  const TileFunction tile = (integer ? kernels.mac8 : kernels.fma)[columns.vectors - 1];
  const std::size_t height = kernels.accumulators / columns.vectors;
  const std::size_t steps = steps_of(product.b.dtype, product.k);
  const auto width = static_cast<std::ptrdiff_t>(columns.width);
  for (std::size_t s = 0; s < steps; s += kStepBlock) {
    for (std::size_t r = 0; r < rows; r += height) {
      const auto row = static_cast<std::ptrdiff_t>(r);
      const auto step = static_cast<std::ptrdiff_t>(s);
      tile({.steps = std::min(kStepBlock, steps - s),
            .rows = std::min(height, rows - r),
            .a = a.data + row * a.stride + step,
            .a_stride = a.stride,
            .b = b.data + step * b.stride,
            .b_stride = b.stride,
            .c = c + static_cast<std::ptrdiff_t>(r) * width,
            .c_stride = width});
    }
  }
}

}  // namespace

std::optional<WordRows> words_in_place(const Plane& plane) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(plane.data) % alignof(std::uint32_t) == 0;
  if (plane.dtype != isa::DType::kFp32 || !plane.is_line(1) || !aligned) return std::nullopt;
  return WordRows{reinterpret_cast<const std::uint32_t*>(plane.data), plane.row_stride};
}

void multiply_panel(const Product& product, const Range& rows, const Range& range) {
  const std::size_t lanes = product.kernels.lanes;
  const std::size_t vectors = (range.count + lanes - 1) / lanes;
  const Columns columns{range.first, range.count, vectors, vectors * lanes};
  const auto stride = static_cast<std::ptrdiff_t>(columns.width);
  std::optional<WordBuffer> storage;
  const WordRows b = columns_of_b(product, rows, columns, storage);
  const std::size_t height = product.a_words ? kRowBlock : kPackedRows;
  RowsOfA a(product);
  WordBuffer sums(std::min(height, rows.count) * columns.width);
  for (std::size_t r = 0; r < rows.count; r += height) {
    const Range part{rows.first + r, std::min(height, rows.count - r)};
    const MatrixBlock c{product.c.from(part.first, columns.first), part.count, columns.count};
    std::fill_n(sums.data(), part.count * columns.width, 0);
    if (product.accumulate) {
      const Plane start = product.start.from(part.first, columns.first);
      pack_words(product.kernels, {start, part.count, columns.count}, sums.data(), stride);
    }
    multiply_rows(product, part.count, a.words(part), b, columns, sums.data());
    unpack_words(sums.data(), stride, c);
  }
}

}  // namespace npu
