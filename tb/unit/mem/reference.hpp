// SPDX-License-Identifier: Apache-2.0
// The cmodel as the reference of a block: it runs a command on what memory should be. Every view
// has five dimensions.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "tensor_view.h"
#include "world.hpp"

using npu::TensorView;
using npu::isa::DType;
using npu::isa::Opcode;

// Five dimensions; the model's views have room for more.
struct Dims : std::array<uint64_t, npu::isa::kMaxRank> {
  using Wide = std::array<uint64_t, npu::kViewRank>;
  constexpr Dims() : array{} {}
  constexpr Dims(std::initializer_list<uint64_t> dims) : array{} {
    std::copy(dims.begin(), dims.end(), begin());
  }
  constexpr Dims(const Wide& wide) : array{} { std::copy_n(wide.begin(), size(), begin()); }
  constexpr operator Wide() const {
    Wide wide{};
    std::copy(begin(), end(), wide.begin());
    return wide;
  }
};

constexpr Dims kOnes{1, 1, 1, 1, 1};

inline TensorView view_of(DType dtype, const Dims& size, const Dims& stride, uint64_t base = 0) {
  return {base, dtype, {npu::isa::kMaxRank, size}, stride};
}

inline uint64_t count_of(const Dims& size) {
  return std::accumulate(size.begin(), size.end(), uint64_t(1), std::multiplies<>());
}

inline uint64_t address_of(const TensorView& view, const Dims& place) {
  const uint64_t steps =
      std::inner_product(place.begin(), place.end(), view.stride.begin(), uint64_t(0));
  return view.base + steps * view.element_bytes();
}

// Bytes from the first element to the end of the last.
inline uint64_t span_of(const TensorView& view) {
  Dims last = view.shape.size;
  for (auto& index : last) --index;
  return address_of(view, last) + view.element_bytes() - view.base;
}

// The `number`th place of `size` in row-major order.
inline Dims place_of(uint64_t number, const Dims& size) {
  Dims place{};
  for (unsigned d = size.size(); d-- > 0; number /= size[d]) place[d] = number % size[d];
  return place;
}

// Calls visit(place) for every place of `size` in row-major order.
template <typename Visit>
void each_place(const Dims& size, Visit visit) {
  for (uint64_t i = 0; i < count_of(size); ++i) visit(place_of(i, size));
}

// Gives the view a random place in [first, end); false when it is too large.
inline bool put(Random& random, TensorView& view, uint64_t first, uint64_t end) {
  const uint64_t bytes = span_of(view), grain = view.element_bytes();
  if (bytes > end - first) return false;
  view.base = first + random.below((end - first - bytes) / grain + 1) * grain;
  return true;
}

// What memory should be, for the cmodel to change.
inline npu::Memory expected_of(Memory& memory) {
  return {std::as_writable_bytes(std::span(memory.expected)), kMemBase, kMemLimit};
}

inline bool touches_bad(const Memory& memory, const TensorView& view) {
  bool bad = false;
  npu::for_each_run(
      view, [&](uint64_t at, uint64_t bytes) { bad |= memory.bad_within(at, at + bytes - 1); });
  return bad;
}

// A destination is unspecified after an error: takes what is there for what should be.
inline void accept(Memory& memory, const TensorView& view) {
  npu::for_each_run(view, [&](uint64_t at, uint64_t bytes) {
    std::memcpy(&memory.want(at), &memory.at(at), bytes);
  });
}
