// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

namespace npu {

const std::vector<const Kernels*>& usable_kernels() {
  static const std::vector<const Kernels*> sets{&kPortableKernels};
  return sets;
}

}  // namespace npu
