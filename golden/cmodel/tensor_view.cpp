// SPDX-License-Identifier: Apache-2.0
#include "tensor_view.h"

#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "fault.h"

namespace npu {

namespace {

using isa::ErrorCode;

constexpr std::uint64_t kSaturated = std::numeric_limits<std::uint64_t>::max();

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kSaturated : sum;
}

std::uint64_t saturating_mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kSaturated : product;
}

/// Address of the view's last byte; saturates.
Address last_byte(const TensorView& view) {
  std::uint64_t elements = 0;
  for (std::size_t d = 0; d < view.shape.rank; ++d) {
    elements = saturating_add(elements, saturating_mul(view.shape.size[d] - 1, view.stride[d]));
  }
  const std::uint64_t offset = saturating_mul(elements, view.element_bytes());
  return saturating_add(view.base, saturating_add(offset, view.element_bytes() - 1));
}

std::string words(std::string_view name, const std::string& text) {
  return std::string(name) + ": " + text;
}

/// The first thing wrong with the descriptor's own words, or null.
const char* malformation(const isa::Descriptor& raw, const OperandRef& ref) {
  if (raw.reserved != 0) return "reserved word not zero";
  if (raw.rank < 1 || raw.rank > isa::kMaxRank) return "rank outside 1 to 5";
  for (std::size_t d = 0; d < isa::kMaxRank; ++d) {
    if (d >= raw.rank) {
      if (raw.size[d] != 0 || raw.stride[d] != 0) return "entry beyond the rank not zero";
    } else if (raw.size[d] == 0) {
      return "a size is zero";
    } else if (ref.is_destination && raw.stride[d] == 0 && raw.size[d] > 1) {
      return "destination is broadcast";
    }
  }
  if (!ref.dtype) return raw.dtype < isa::kDTypeBytes.size() ? nullptr : "type does not exist";
  return raw.dtype == static_cast<std::uint32_t>(*ref.dtype) ? nullptr : "type is not the packet's";
}

/// The first thing wrong with a window, or null.
const char* malformation(const isa::Window& raw, const OperandRef& ref) {
  const auto zero = [](std::uint32_t word) { return word == 0; };
  if (!std::ranges::all_of(raw.reserved, zero) || !std::ranges::all_of(raw.reserved_end, zero)) {
    return "reserved word not zero";
  }
  for (std::size_t d = 0; d < isa::kWindowRank; ++d) {
    if (raw.size[d] == 0) return "a size is zero";
    if (ref.is_destination && raw.stride[d] == 0 && raw.size[d] > 1) {
      return "destination is broadcast";
    }
  }
  if (ref.is_transposed) return "a window is not transposed";
  return raw.dtype == static_cast<std::uint32_t>(*ref.dtype) ? nullptr : "type is not the packet's";
}

constexpr std::uint64_t kDescriptorBytes = sizeof(isa::Descriptor);

/// Copies the 64 bytes at `address`, a descriptor or half of a window, to `to`.
void fetch_line(const Memory& memory, const OperandRef& ref, Address address, std::byte* to) {
  constexpr std::uint64_t kBytes = kDescriptorBytes;
  fail_if(!memory.contains(address, address + (kBytes - 1)), ErrorCode::kOutOfRange,
          [&] { return words(ref.name, "descriptor at " + hex(address) + " is not in memory"); });
  fail_if(memory.read_fails(address, kBytes), ErrorCode::kBusRead,
          [&] { return words(ref.name, "bus error on the descriptor at " + hex(address)); });
  std::memcpy(to, memory.at(address), kBytes);
}

/// Dense row-major view. A stride beyond 32 bits saturates, so that no memory holds the view.
TensorView dense_view(Address base, isa::DType dtype, const Shape& shape) {
  TensorView view{base, dtype, shape, {}};
  std::uint64_t stride = 1;
  for (std::size_t d = shape.rank; d-- > 0;) {
    view.stride[d] = stride;
    stride = saturating_mul(stride, shape.size[d]);
    if (stride >> 32 != 0) stride = kSaturated;
  }
  return view;
}

/// The window whose first half, at the operand's address, has been fetched.
TensorView load_window(const Memory& memory, const OperandRef& ref, const ShapeRule& rule) {
  std::array<std::byte, sizeof(isa::Window)> bytes{};
  for (std::size_t at = 0; at < bytes.size(); at += kDescriptorBytes) {
    fetch_line(memory, ref, ref.address + at, bytes.data() + at);
  }
  const auto raw = std::bit_cast<isa::Window>(bytes);
  const char* wrong = malformation(raw, ref);
  fail_if(wrong != nullptr, ErrorCode::kBadDescriptor,
          [&] { return words(ref.name, "window at " + hex(ref.address) + ": " + wrong); });
  TensorView view{raw.base, *ref.dtype, {isa::kWindowRank, {}}, {}};
  std::ranges::copy(raw.size, view.shape.size.begin());
  std::ranges::copy(raw.stride, view.stride.begin());
  fail_if(!rule.admits_window(view.shape), ErrorCode::kBadDescriptor,
          [&] { return words(ref.name, "window at " + hex(ref.address) + ": sizes at odds"); });
  return view;
}

TensorView load_descriptor(const Memory& memory, const OperandRef& ref, const ShapeRule& rule) {
  fail_if(ref.address % kDescriptorBytes != 0, ErrorCode::kMisaligned, [&] {
    return words(ref.name, "descriptor address " + hex(ref.address) + " is not 64-aligned");
  });
  std::array<std::byte, kDescriptorBytes> bytes{};
  fetch_line(memory, ref, ref.address, bytes.data());
  const auto raw = std::bit_cast<isa::Descriptor>(bytes);
  if (raw.rank == isa::kWindowRank && ref.may_be_window) return load_window(memory, ref, rule);
  const char* wrong = malformation(raw, ref);
  fail_if(wrong != nullptr, ErrorCode::kBadDescriptor,
          [&] { return words(ref.name, "descriptor at " + hex(ref.address) + ": " + wrong); });
  TensorView view{raw.base, static_cast<isa::DType>(raw.dtype), {raw.rank, {}}, {}};
  std::ranges::copy(raw.size, view.shape.size.begin());
  std::ranges::copy(raw.stride, view.stride.begin());
  fail_if(!rule.admits(view.shape), ErrorCode::kBadDescriptor,
          [&] { return words(ref.name, "descriptor at " + hex(ref.address) + ": shape at odds"); });
  return view;
}

void check_alignment(const OperandRef& ref, const TensorView& view) {
  fail_if(view.base % view.element_bytes() != 0, ErrorCode::kMisaligned, [&] {
    return words(ref.name, "base " + hex(view.base) + " is no multiple of the element size");
  });
}

void check_extent(const Memory& memory, const OperandRef& ref, const TensorView& view) {
  const Address last = last_byte(view);
  fail_if(!memory.contains(view.base, last), ErrorCode::kOutOfRange, [&] {
    return words(ref.name,
                 "bytes " + hex(view.base) + " to " + hex(last) + " are not all in memory");
  });
}

}  // namespace

bool ShapeRule::admits(const Shape& given) const {
  if (free_dim && *free_dim >= given.rank) return false;
  if (!shape) return true;
  Shape demanded = *shape;
  if (free_dim) demanded.size[*free_dim] = given.size[*free_dim];
  return demanded == given;
}

bool ShapeRule::admits_window(const Shape& given) const {
  const auto product = [&](std::size_t first) {
    std::uint64_t result = 1;
    for (std::size_t d = first; d < first + isa::kWindowGroup; ++d) {
      result = saturating_mul(result, given.size[d]);
    }
    return result;
  };
  const Shape found{3, {given.size[0], product(1), product(1 + isa::kWindowGroup)}};
  return shape.has_value() && found == *shape;
}

TensorView resolve(const Memory& memory, const OperandRef& ref, const ShapeRule& rule) {
  const TensorView view = ref.is_descriptor
                              ? load_descriptor(memory, ref, rule)
                              : dense_view(ref.address, ref.dtype.value(), rule.shape.value());
  check_alignment(ref, view);
  check_extent(memory, ref, view);
  return view;
}

void check_readable(const Memory& memory, std::string_view name, const TensorView& view) {
  if (!memory.has_poison()) return;
  for_each_run(view, [&](Address address, std::uint64_t bytes) {
    fail_if(memory.read_fails(address, bytes), ErrorCode::kBusRead,
            [&] { return words(name, "bus error reading near " + hex(address)); });
  });
}

void check_writable(const Memory& memory, std::string_view name, const TensorView& view) {
  if (!memory.has_poison()) return;
  for_each_run(view, [&](Address address, std::uint64_t bytes) {
    fail_if(memory.write_fails(address, bytes), ErrorCode::kBusWrite,
            [&] { return words(name, "bus error writing near " + hex(address)); });
  });
}

void mark_written(Memory& memory, const TensorView& view) {
  for_each_run(view,
               [&](Address address, std::uint64_t bytes) { memory.mark_written(address, bytes); });
}

}  // namespace npu
