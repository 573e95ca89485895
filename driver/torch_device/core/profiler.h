// SPDX-License-Identifier: Apache-2.0
// The device's ops in torch.profiler: kineto asks for them, Python measures them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace npu {

// An op that has run. Times are those of the host's clock, in ns since 1970.
struct ProfiledOp {
  std::string name;
  int device;
  int64_t begin_ns;
  int64_t end_ns;
  int64_t cycles;  // -1: the backend has no clock
};

// `watch` is called with true when a profile of the NPU begins, and with false when it ends.
void register_profiler(std::function<void(bool)> watch);
// Adds an op to the profile that is being taken, as what the running CPU op started.
void profile_op(const ProfiledOp& op);

}  // namespace npu
