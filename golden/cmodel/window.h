// SPDX-License-Identifier: Apache-2.0
/// Windows as the product reads them: one offset per row and per column.
#pragma once

#include <cstddef>
#include <vector>

#include "matmul.h"
#include "tensor_view.h"

namespace npu {

/// Where the rows and columns of a window lie; must live as long as the matrix is used.
class WindowOffsets {
 public:
  /// The window as a matrix: by its strides where each group of dimensions merges into one
  /// dimension, else by these tables.
  [[nodiscard]] MatrixRef matrix(const Memory& memory, const TensorView& window);

 private:
  std::vector<std::ptrdiff_t> rows_;
  std::vector<std::ptrdiff_t> columns_;
};

}  // namespace npu
