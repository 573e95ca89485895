// SPDX-License-Identifier: Apache-2.0
/// Operands: from an address in a packet to a checked, strided view of memory (check 5).
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "memory.h"
#include "packet.h"

namespace npu {

/// Dimensions of a view: those of a tensor, or a window's.
inline constexpr std::size_t kViewRank = std::max(isa::kMaxRank, isa::kWindowRank);

/// Sizes, outermost first. Entries at and beyond `rank` are zero.
struct Shape {
  unsigned rank = 0;
  std::array<std::uint64_t, kViewRank> size{};

  friend bool operator==(const Shape&, const Shape&) = default;
};

/// Element [i0, ...] lies at base + (i0·stride[0] + ...)·element bytes.
struct TensorView {
  Address base = 0;
  isa::DType dtype{};
  Shape shape;
  std::array<std::uint64_t, kViewRank> stride{};  // in elements

  [[nodiscard]] unsigned element_bytes() const { return dtype_bytes(dtype); }
  /// A matrix operand whose rows and columns have three dimensions each.
  [[nodiscard]] bool is_window() const { return shape.rank == isa::kWindowRank; }
};

/// What a packet demands of an operand's shape.
struct ShapeRule {
  std::optional<Shape> shape;           // none: any
  std::optional<std::size_t> free_dim;  // must exist, and may be of another size

  ShapeRule() = default;
  ShapeRule(const Shape& demanded) : shape(demanded) {}  // NOLINT: a shape is a rule
  ShapeRule(std::optional<Shape> demanded, std::size_t dim) : shape(demanded), free_dim(dim) {}

  [[nodiscard]] bool admits(const Shape& given) const;
  /// Whether a window has this batch, and this many rows and columns; the shape has rank 3.
  [[nodiscard]] bool admits_window(const Shape& given) const;
};

/// One of a packet's addresses with what the packet says of it.
struct OperandRef {
  std::string_view name;  // src1, src2, …, dst or a result
  Address address = 0;
  bool is_descriptor = false;
  bool is_destination = false;
  std::optional<isa::DType> dtype;  // none: the descriptor's
  bool may_be_window = false;       // of MATMUL
  bool is_transposed = false;
};

/// The whole of check 5 for one operand. A direct one is dense, of the rule's shape.
[[nodiscard]] TensorView resolve(const Memory& memory, const OperandRef& ref,
                                 const ShapeRule& rule);

/// Calls visit(address, bytes) for runs of adjacent elements that cover each element of the view;
/// broadcast dimensions are visited once.
template <class Visit>
void for_each_run(const TensorView& view, Visit&& visit) {
  const std::uint64_t bytes = view.element_bytes();
  std::array<std::uint64_t, kViewRank> size{};
  std::array<std::uint64_t, kViewRank> step{};
  std::size_t rank = 0;
  std::uint64_t run = bytes;
  bool adjacent = true;
  for (std::size_t d = view.shape.rank; d-- > 0;) {
    const std::uint64_t count = view.stride[d] == 0 ? 1 : view.shape.size[d];
    if (count == 1) continue;
    adjacent = adjacent && view.stride[d] * bytes == run;
    if (adjacent) {
      run *= count;
    } else {
      size[rank] = count;
      step[rank++] = view.stride[d] * bytes;
    }
  }
  std::array<std::uint64_t, kViewRank> index{};
  for (Address address = view.base;;) {
    visit(address, run);
    std::size_t d = 0;
    for (; d < rank; ++d) {
      address += step[d];
      if (++index[d] < size[d]) break;
      address -= step[d] * size[d];
      index[d] = 0;
    }
    if (d == rank) return;
  }
}

/// BUS_READ when a byte of an element is poisoned for reading.
void check_readable(const Memory& memory, std::string_view name, const TensorView& view);
/// BUS_WRITE when a byte of an element is poisoned for writing.
void check_writable(const Memory& memory, std::string_view name, const TensorView& view);
/// Records the view's bytes as written.
void mark_written(Memory& memory, const TensorView& view);

}  // namespace npu
