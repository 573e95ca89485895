// SPDX-License-Identifier: Apache-2.0
#include "window.h"

#include <optional>
#include <span>

namespace npu {

namespace {

/// The dimensions of a window's rows or columns.
struct Group {
  std::span<const std::uint64_t> size;
  std::span<const std::uint64_t> stride;
};

Group group_of(const TensorView& window, std::size_t first) {
  return {std::span(window.shape.size).subspan(first, isa::kWindowGroup),
          std::span(window.stride).subspan(first, isa::kWindowGroup)};
}

/// The one stride that walks the group, if there is one.
std::optional<std::ptrdiff_t> merged_stride(const Group& group) {
  std::uint64_t count = 1;
  std::uint64_t step = 0;
  for (std::size_t d = group.size.size(); d-- > 0;) {
    if (group.size[d] == 1) continue;
    if (count == 1) step = group.stride[d];
    if (group.stride[d] != count * step) return std::nullopt;
    count *= group.size[d];
  }
  return static_cast<std::ptrdiff_t>(step);
}

/// Offset of each index in the mixed radix of the group's sizes, the last one fastest.
std::vector<std::ptrdiff_t> offsets_of(const Group& group) {
  std::vector<std::ptrdiff_t> offsets{0};
  for (std::size_t d = 0; d < group.size.size(); ++d) {
    std::vector<std::ptrdiff_t> finer;
    finer.reserve(offsets.size() * group.size[d]);
    for (const std::ptrdiff_t start : offsets) {
      for (std::uint64_t i = 0; i < group.size[d]; ++i) {
        finer.push_back(start + static_cast<std::ptrdiff_t>(i * group.stride[d]));
      }
    }
    offsets = std::move(finer);
  }
  return offsets;
}

}  // namespace

MatrixRef WindowOffsets::matrix(const Memory& memory, const TensorView& window) {
  const Group rows = group_of(window, 1);
  const Group columns = group_of(window, 1 + isa::kWindowGroup);
  const auto batch_stride = static_cast<std::ptrdiff_t>(window.stride[0]);
  const auto row_stride = merged_stride(rows);
  const auto column_stride = merged_stride(columns);
  if (row_stride && column_stride) {
    return {memory.at(window.base), window.dtype, batch_stride, *row_stride, *column_stride};
  }
  rows_ = offsets_of(rows);
  columns_ = offsets_of(columns);
  return {.data = memory.at(window.base),
          .dtype = window.dtype,
          .batch_stride = batch_stride,
          .row_stride = 0,
          .column_stride = 0,
          .offsets = {rows_.data(), columns_.data()}};
}

}  // namespace npu
