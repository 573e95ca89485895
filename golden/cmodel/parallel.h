// SPDX-License-Identifier: Apache-2.0
/// Threads with the arithmetic that the contract wants.
#pragma once

#include <cfenv>
#include <cstddef>
#include <functional>

namespace npu {

/// While it lives, this thread rounds to nearest even and keeps subnormals, whatever the caller
/// (torch.set_flush_denormal, for one) had set; its destructor puts that back.
class FloatEnvironment {
 public:
  FloatEnvironment();
  ~FloatEnvironment();
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  std::fenv_t saved_{};
};

/// `wanted` threads, 0 meaning one per host processor, but no more than have `least` of the `work`
/// each. Any unit of work.
[[nodiscard]] unsigned useful_threads(unsigned wanted, double work, double least);

/// Calls body(0) … body(count - 1), each once, in any order, on up to `threads` threads; each
/// call runs within a FloatEnvironment. Rethrows the first exception when all threads are done.
void parallel_for(std::size_t count, unsigned threads,
                  const std::function<void(std::size_t)>& body);

}  // namespace npu
