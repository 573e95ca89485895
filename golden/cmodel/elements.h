// SPDX-License-Identifier: Apache-2.0
/// Elements in memory to the 32-bit words of the vector engine and back: load and store of
/// docs/numerics.md. Always inlined, as scalar.h.
#pragma once

#include <type_traits>

#include "npu_isa.h"
#include "scalar.h"

namespace npu::scalar {

template <isa::DType kDType>
struct ElementOf;
template <>
struct ElementOf<isa::DType::kFp32> : std::type_identity<std::uint32_t> {};
template <>
struct ElementOf<isa::DType::kFp16> : std::type_identity<std::uint16_t> {};
template <>
struct ElementOf<isa::DType::kBf16> : std::type_identity<std::uint16_t> {};
template <>
struct ElementOf<isa::DType::kInt8> : std::type_identity<std::int8_t> {};
template <>
struct ElementOf<isa::DType::kInt32> : std::type_identity<std::uint32_t> {};
template <>
struct ElementOf<isa::DType::kUint8> : std::type_identity<std::uint8_t> {};
template <>
struct ElementOf<isa::DType::kInt64> : std::type_identity<std::int64_t> {};

/// The host's integer that holds an element.
template <isa::DType kDType>
using Element = typename ElementOf<kDType>::type;

template <isa::DType kDType>
[[gnu::always_inline]] inline std::uint32_t load_element(const std::byte* src) {
  Element<kDType> element;
  __builtin_memcpy(&element, src, sizeof element);
  if constexpr (kDType == isa::DType::kFp16) {
    return canonical(widen_fp16(element));
  } else if constexpr (kDType == isa::DType::kBf16) {
    return canonical(widen_bf16(element));
  } else {
    return static_cast<std::uint32_t>(element);
  }
}

template <isa::DType kDType>
[[gnu::always_inline]] inline void store_element(std::uint32_t word, std::byte* dst) {
  Element<kDType> element;
  if constexpr (kDType == isa::DType::kFp16) {
    element = narrow_fp16(word);
  } else if constexpr (kDType == isa::DType::kBf16) {
    element = narrow_bf16(word);
  } else if constexpr (kDType == isa::DType::kInt64) {
    element = static_cast<std::int32_t>(word);
  } else {
    element = static_cast<Element<kDType>>(word);
  }
  __builtin_memcpy(dst, &element, sizeof element);
}

/// Calls body with the type's number as a compile-time constant.
template <class Body>
[[gnu::always_inline]] inline decltype(auto) with_dtype(isa::DType dtype, Body&& body) {
  using enum isa::DType;
  switch (dtype) {
    case kFp32:
      return body(std::integral_constant<isa::DType, kFp32>{});
    case kFp16:
      return body(std::integral_constant<isa::DType, kFp16>{});
    case kBf16:
      return body(std::integral_constant<isa::DType, kBf16>{});
    case kInt8:
      return body(std::integral_constant<isa::DType, kInt8>{});
    case kInt32:
      return body(std::integral_constant<isa::DType, kInt32>{});
    case kUint8:
      return body(std::integral_constant<isa::DType, kUint8>{});
    case kInt64:
      return body(std::integral_constant<isa::DType, kInt64>{});
  }
  __builtin_unreachable();  // packets with other types were refused
}

}  // namespace npu::scalar
