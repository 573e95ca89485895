// SPDX-License-Identifier: Apache-2.0
/// Scratch memory: uninitialised words on a cache line boundary.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

namespace npu {

class WordBuffer {
 public:
  explicit WordBuffer(std::size_t words)
      : words_(static_cast<std::uint32_t*>(::operator new(words * sizeof(std::uint32_t), kLine))) {}

  [[nodiscard]] std::uint32_t* data() { return words_.get(); }

 private:
  static constexpr std::align_val_t kLine{64};
  struct Free {
    void operator()(std::uint32_t* words) const { ::operator delete(words, kLine); }
  };
  std::unique_ptr<std::uint32_t, Free> words_;
};

}  // namespace npu
