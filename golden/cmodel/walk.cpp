// SPDX-License-Identifier: Apache-2.0
#include "walk.h"

namespace npu {

Walk::Walk(const Shape& shape, std::span<const TensorView> operands, bool keep_rows)
    : operands_(operands.size()) {
  for (std::size_t d = shape.rank; d-- > 0;) {
    Offsets stride{};
    for (std::size_t i = 0; i < operands.size(); ++i) {
      stride[i] = operands[i].stride[d] * operands[i].element_bytes();
    }
    const bool innermost = d + 1 == shape.rank;
    if (shape.size[d] > 1 || innermost) {
      add_dimension(shape.size[d], stride, !keep_rows || rank_ > 1);
    }
  }
  for (std::size_t d = 1; d < rank_; ++d) rows_ *= size_[d];
}

void Walk::add_dimension(std::uint64_t size, const Offsets& stride, bool may_merge) {
  if (rank_ > 0 && may_merge) {
    const std::size_t inner = rank_ - 1;
    bool adjacent = true;
    for (std::size_t i = 0; i < operands_; ++i) {
      adjacent = adjacent && stride[i] == size_[inner] * stride_[inner][i];
    }
    if (adjacent) {
      size_[inner] *= size;
      return;
    }
    if (size_[inner] == 1) --rank_;  // an innermost dimension of one element is no dimension
  }
  size_[rank_] = size;
  stride_[rank_++] = stride;
}

bool Walk::same_rows(std::size_t operand) const {
  for (std::size_t d = 1; d < rank_; ++d) {
    if (stride_[d][operand] != 0) return false;
  }
  return true;
}

Walk::Cursor::Cursor(const Walk& walk, std::uint64_t row) : walk_(&walk) {
  for (std::size_t d = 1; d < walk.rank_; ++d) {
    index_[d - 1] = row % walk.size_[d];
    row /= walk.size_[d];
    for (std::size_t i = 0; i < walk.operands_; ++i) {
      offsets_[i] += index_[d - 1] * walk.stride_[d][i];
    }
  }
}

void Walk::Cursor::advance() {
  for (std::size_t d = 1; d < walk_->rank_; ++d) {
    const bool wraps = ++index_[d - 1] == walk_->size_[d];
    const std::uint64_t steps = wraps ? walk_->size_[d] - 1 : 1;
    if (wraps) index_[d - 1] = 0;
    for (std::size_t i = 0; i < walk_->operands_; ++i) {
      const std::uint64_t bytes = steps * walk_->stride_[d][i];
      offsets_[i] = wraps ? offsets_[i] - bytes : offsets_[i] + bytes;
    }
    if (!wraps) return;
  }
}

}  // namespace npu
