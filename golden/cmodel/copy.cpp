// SPDX-License-Identifier: Apache-2.0
#include "copy.h"

#include <cstring>

namespace npu {

namespace {

using Index = std::array<std::uint64_t, isa::kMaxRank>;

/// Byte offset of the element at `index`.
std::uint64_t offset(const TensorView& view, const Index& index) {
  std::uint64_t elements = 0;
  for (std::size_t d = 0; d < view.shape.rank; ++d) elements += index[d] * view.stride[d];
  return elements * view.element_bytes();
}

/// Calls visit(index) for every index whose last component is zero, in row-major order.
template <class Visit>
void for_each_row(const Shape& shape, Visit&& visit) {
  Index index{};
  for (;;) {
    visit(index);
    std::size_t d = shape.rank - 1;
    do {
      if (d == 0) return;
      --d;
      index[d] = index[d] + 1 == shape.size[d] ? 0 : index[d] + 1;
    } while (index[d] == 0);
  }
}

template <class Element>
void copy_row(std::byte* dst, std::uint64_t dst_stride, const std::byte* src,
              std::uint64_t src_stride, std::uint64_t count) {
  if (dst_stride == 1 && src_stride == 1) {
    std::memmove(dst, src, count * sizeof(Element));
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(dst + i * dst_stride * sizeof(Element), src + i * src_stride * sizeof(Element),
                sizeof(Element));
  }
}

template <class Element>
void fill_row(std::byte* dst, std::uint64_t stride, std::uint32_t value, std::uint64_t count) {
  const auto element = static_cast<Element>(value);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(dst + i * stride * sizeof(Element), &element, sizeof(Element));
  }
}

/// Calls body with a value of the unsigned type as wide as an element.
template <class Body>
void with_element(unsigned bytes, Body&& body) {
  switch (bytes) {
    case 1:
      return body(std::uint8_t{});
    case 2:
      return body(std::uint16_t{});
    case 4:
      return body(std::uint32_t{});
    default:
      return body(std::uint64_t{});
  }
}

}  // namespace

void copy(Memory& memory, const TensorView& src, const TensorView& dst) {
  const std::size_t inner = dst.shape.rank - 1;
  with_element(dst.element_bytes(), [&](auto element) {
    for_each_row(dst.shape, [&](const Index& row) {
      copy_row<decltype(element)>(memory.at(dst.base + offset(dst, row)), dst.stride[inner],
                                  memory.at(src.base + offset(src, row)), src.stride[inner],
                                  dst.shape.size[inner]);
    });
  });
  mark_written(memory, dst);
}

void fill(Memory& memory, const TensorView& dst, std::uint32_t value) {
  const std::size_t inner = dst.shape.rank - 1;
  with_element(dst.element_bytes(), [&](auto element) {
    for_each_row(dst.shape, [&](const Index& row) {
      fill_row<decltype(element)>(memory.at(dst.base + offset(dst, row)), dst.stride[inner], value,
                                  dst.shape.size[inner]);
    });
  });
  mark_written(memory, dst);
}

}  // namespace npu
