// SPDX-License-Identifier: Apache-2.0
/// Tables that say where a matrix lies, where two strides cannot.
#pragma once

#include <cstddef>

namespace npu {

/// Where the rows and columns of a window begin, in elements from its base. Both tables, or none.
struct Offsets {
  const std::ptrdiff_t* row = nullptr;
  const std::ptrdiff_t* column = nullptr;

  explicit operator bool() const { return row != nullptr; }
};

}  // namespace npu
