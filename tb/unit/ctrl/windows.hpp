// SPDX-License-Identifier: Apache-2.0
// MATMUL's operands as the matrix engine is handed them: npu_window_t, and what it must be.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "tensor_view.h"

// Rows or columns: the two fastest digits, and the steps to the next place when none, the fastest,
// or both start again.
struct AxisView {
  uint32_t inner = 1, middle = 1;
  std::array<uint64_t, 3> step{};
  std::array<bool, 3> used{};  // a step that the sizes never need may be anything

  bool matches(const AxisView& got) const {
    bool equal = got.inner == inner && got.middle == middle;
    for (unsigned i = 0; i < step.size(); ++i) equal &= !used[i] || got.step[i] == step[i];
    return equal;
  }
};

struct WindowView {
  uint64_t base = 0;
  uint32_t batch = 0;
  bool batched = false;
  AxisView row, col;

  bool matches(const WindowView& got) const {
    return got.base == base && (!batched || got.batch == batch) && row.matches(got.row) &&
           col.matches(got.col);
  }
};

// The dimensions of the view from `first` on, outermost first: `count` of them.
inline AxisView axis_of(const npu::TensorView& view, unsigned first, unsigned count) {
  AxisView axis;
  const auto size = [&](unsigned digit) {  // 0 is the fastest
    return digit < count ? view.shape.size[first + count - 1 - digit] : 1;
  };
  axis.inner = uint32_t(size(0)), axis.middle = uint32_t(size(1));
  uint64_t back = 0;  // over the faster digits
  for (unsigned digit = 0; digit < count; ++digit) {
    const uint64_t stride = view.stride[first + count - 1 - digit];
    axis.step[digit] = stride - back;
    axis.used[digit] = size(digit) != 1;
    back += (size(digit) - 1) * stride;
  }
  return axis;
}

// Of a window, or of a tensor [batch, rows, columns]; `transposed` exchanges the last two.
inline WindowView engine_window(const npu::TensorView& view, bool transposed) {
  const unsigned digits = view.is_window() ? npu::isa::kWindowGroup : 1;
  WindowView window{.base = view.base,
                    .batch = uint32_t(view.stride[0]),
                    .batched = view.shape.size[0] != 1,
                    .row = axis_of(view, 1, digits),
                    .col = axis_of(view, 1 + digits, digits)};
  if (transposed) std::swap(window.row, window.col);
  return window;
}
