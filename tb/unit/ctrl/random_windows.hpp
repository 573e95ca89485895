// SPDX-License-Identifier: Apache-2.0
// Random window descriptors: sound ones, and what can be wrong with one.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "common.hpp"
#include "npu_isa.h"

// A window of [batch, rows, columns]; a destination has no stride of 0. Its base is left 0.
inline npu::isa::Window random_window(Random& random, uint32_t dtype,
                                      const std::vector<uint32_t>& sizes, bool is_dst) {
  using namespace npu::isa;
  Window window{};
  window.dtype = dtype;
  window.rank = kWindowRank;
  window.size.fill(1);
  window.size[0] = sizes[0];
  for (unsigned group = 0; group < 2; ++group) {
    uint32_t left = sizes[1 + group];
    for (uint32_t factor = 2; left > 1;) {
      if (left % factor != 0) {
        ++factor;
      } else {
        window.size[1 + kWindowGroup * group + random.below(kWindowGroup)] *= factor;
        left /= factor;
      }
    }
  }
  for (uint32_t& stride : window.stride)
    stride = uint32_t(random.below(random.chance(70) ? 8 : 1000)) + is_dst;
  return window;
}

// Makes one word of a window wrong, or the sizes of a group.
inline void spoil(npu::isa::Window& window, Random& random, uint64_t limit) {
  using namespace npu::isa;
  const unsigned dim = unsigned(random.below(kWindowRank));
  switch (random.below(10)) {
    case 0:
      window.reserved[random.below(window.reserved.size())] = 1u << random.below(32);
      break;
    case 1:
      window.reserved_end[random.below(window.reserved_end.size())] = 1u << random.below(32);
      break;
    case 2:
      window.rank = uint32_t(random.below(9));
      break;
    case 3:
      window.dtype ^= 1u << random.below(32);
      break;
    case 4:
      window.size[dim] = uint32_t(random.below(3));
      break;
    case 5:
      window.stride[dim] = uint32_t(random.below(2));
      break;
    case 6: {  // products that are right modulo 2^32: 641 * 6700417 is 2^32 + 1
      uint32_t* const group = &window.size[1 + kWindowGroup * random.below(2)];
      const uint32_t right = group[0] * group[1] * group[2];
      const std::array<uint32_t, 3> wrong =
          random.chance(50) ? std::array{right, 6700417u, 641u} : std::array{6700417u, 641u, right};
      std::copy(wrong.begin(), wrong.end(), group);
      break;
    }
    case 7:
      window.stride[dim] = UINT32_MAX;
      break;
    case 8:
      window.base = limit - 4 * random.between(0, 64);
      break;
    default:
      window.base = ~0ull - 4 * random.below(64) + 1;
      break;
  }
}
