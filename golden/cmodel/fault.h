// SPDX-License-Identifier: Apache-2.0
/// Why a command fails: the code that the device reports, and words for the engineer.
#pragma once

#include <charconv>
#include <string>
#include <utility>

#include "npu_isa.h"

namespace npu {

/// Thrown by every check; caught in CModel::execute and nowhere else.
struct Fault {
  isa::ErrorCode code;
  std::string detail;
};

/// Throws Fault{code, words()} when `failed`; the words cost nothing on success.
template <class Words>
void fail_if(bool failed, isa::ErrorCode code, Words&& words) {
  if (failed) throw Fault{code, std::forward<Words>(words)()};
}

[[nodiscard]] inline std::string hex(std::uint64_t value) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

}  // namespace npu
