// SPDX-License-Identifier: Apache-2.0
// What the host sees of the register port.
#pragma once

#include <cstdint>

#include "common.hpp"

// An answer of the register port, which stays as it is until it is taken, `late` cycles after it
// came.
struct Answer {
  uint64_t late;
  bool valid = false, taken = false;
  unsigned response = 0;
  uint32_t data = 0;

  bool may_take() const { return late == 0; }
  void sample(bool valid_now, bool ready, unsigned response_now, uint32_t data_now) {
    check(!valid || (valid_now && response == response_now && data == data_now),
          "an answer of the register port changes before it is taken");
    valid = valid_now;
    response = response_now;
    data = data_now;
    taken = valid && ready;
    if (valid && late != 0) --late;
  }
};
