// SPDX-License-Identifier: Apache-2.0
#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace npu {

// The default environment clears the processor's flush-to-zero bits as well.
FloatEnvironment::FloatEnvironment() {
  std::fegetenv(&saved_);
  std::fesetenv(FE_DFL_ENV);
}

FloatEnvironment::~FloatEnvironment() { std::fesetenv(&saved_); }

unsigned useful_threads(unsigned wanted, double work, double least) {
  const double there = wanted != 0 ? wanted : std::thread::hardware_concurrency();
  return static_cast<unsigned>(std::max(1.0, std::min(there, work / least)));
}

void parallel_for(std::size_t count, unsigned threads,
                  const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    const FloatEnvironment environment;
    try {
      for (std::size_t i = next++; i < count; i = next++) body(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i) {
      helpers.emplace_back(work);
    }
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace npu
