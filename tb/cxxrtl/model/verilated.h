// SPDX-License-Identifier: Apache-2.0
// What tb/sim/core uses of Verilator's run-time library, for a model that CXXRTL made. It has no
// assertions, so nothing ends the simulation from within.
#pragma once

#include <cstdint>

class VerilatedContext {
 public:
  void commandArgs(int, char**) {}
  bool gotFinish() const { return false; }
  int errorCount() const { return 0; }
  std::uint64_t time() const { return time_; }
  void time(std::uint64_t value) { time_ = value; }

 private:
  std::uint64_t time_ = 0;
};
