// SPDX-License-Identifier: Apache-2.0
/// Rows of several operands, walked together: the same indices, each operand's own strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "npu_micro.h"
#include "tensor_view.h"

namespace npu {

/// Sources and results of one command.
inline constexpr std::size_t kMaxOperands = isa::kMaxSources + isa::kMaxResults;

/// The index space of a command in as few dimensions as walk it in the same order.
class Walk {
 public:
  using Offsets = std::array<std::uint64_t, kMaxOperands>;

  /// Operands with their strides over `shape`. `keep_rows`: the innermost dimension stays as it is,
  /// because its elements are numbered or reduced.
  Walk(const Shape& shape, std::span<const TensorView> operands, bool keep_rows);

  /// Elements of a row: the innermost dimension.
  [[nodiscard]] std::uint64_t row_elements() const { return size_[0]; }
  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  /// Bytes between neighbours of a row of an operand.
  [[nodiscard]] std::uint64_t step(std::size_t operand) const { return stride_[0][operand]; }
  /// True when the operand is the same row for all rows.
  [[nodiscard]] bool same_rows(std::size_t operand) const;

  /// A position among the rows, moving forward.
  class Cursor {
   public:
    Cursor(const Walk& walk, std::uint64_t row);
    void advance();
    /// Byte offset of the row's first element of an operand.
    [[nodiscard]] std::uint64_t offset(std::size_t operand) const { return offsets_[operand]; }

   private:
    const Walk* walk_;
    std::array<std::uint64_t, isa::kMaxRank> index_{};
    Offsets offsets_{};
  };

 private:
  void add_dimension(std::uint64_t size, const Offsets& stride, bool may_merge);

  std::size_t operands_;
  std::size_t rank_ = 0;  // dimension 0 is the innermost
  std::array<std::uint64_t, isa::kMaxRank + 1> size_{};
  std::array<Offsets, isa::kMaxRank + 1> stride_{};  // in bytes
  std::uint64_t rows_ = 1;
};

}  // namespace npu
