// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

namespace npu {

const std::vector<const Kernels*>& usable_kernels() {
  static const std::vector<const Kernels*> sets = [] {
    std::vector<const Kernels*> found;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
      found.push_back(&kAvx512Kernels);
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      found.push_back(&kAvx2Kernels);
    }
    found.push_back(&kPortableKernels);
    return found;
  }();
  return sets;
}

}  // namespace npu
