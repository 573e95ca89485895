// SPDX-License-Identifier: Apache-2.0
/// One batch of a product, and the unit of work into which it is cut.
#pragma once

#include <optional>

#include "kernels.h"
#include "pack.h"

namespace npu {

/// Row r begins at data + r·stride; its words lie along k.
struct WordRows {
  const std::uint32_t* data;
  std::ptrdiff_t stride;
};

/// Rows as they lie, if they are words of 32 bits that are adjacent.
[[nodiscard]] std::optional<WordRows> words_in_place(const Plane& plane);

struct Product {
  const Kernels& kernels;
  std::size_t m, k, n;
  Plane a, b, c, start;
  std::optional<WordRows> a_words;  // A's rows as words; none: the user of rows packs them
  bool accumulate;
};

struct Range {
  std::size_t first;
  std::size_t count;
};

/// Columns of C that one tile can take.
[[nodiscard]] inline std::size_t panel_columns(const Kernels& kernels) {
  return kernels.lanes * kernels.vectors;
}

/// Computes C[rows, columns] over the whole of k. At most panel_columns() columns.
void multiply_panel(const Product& product, const Range& rows, const Range& columns);

}  // namespace npu
