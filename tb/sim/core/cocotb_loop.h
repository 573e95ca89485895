// SPDX-License-Identifier: Apache-2.0
// The main loop of a simulation that cocotb tests run in.
//
// The clock toggles here. While no Python is due, the loop only toggles and evaluates; it leaves
// that burst at cocotb's next deadline (Timer) or when a watched signal (RisingEdge, …) changes,
// and then goes through the regions of one time step in the order that cocotb expects. As with a
// clock that cocotb drives, a coroutine woken by RisingEdge(clk) reads values from before the edge,
// and what it writes takes effect after it.
#pragma once

#include "simulation.h"
#include "verilated_vpi.h"

namespace npu_sim {

class CocotbLoop {
 public:
  // With `own_clock` false the clock pin is left to cocotb's Clock.
  CocotbLoop(Simulation& simulation, bool own_clock) : sim_(simulation), own_clock_(own_clock) {}

  // From the start callback to the end callback; cocotb ends the simulation.
  void run();

 private:
  // Time of the clock's next edge.
  std::uint64_t next_edge() const;
  // Toggles up to, and not including, `deadline`. True when it ended because Python ran, in a time
  // step that the rest of the loop has completed.
  bool burst(std::uint64_t deadline);
  // The clock's next edge, without evaluating the model.
  void toggle();
  // One time step at `time` with all of its regions. True when Python ran.
  bool step(std::uint64_t time, std::uint64_t deadline);
  // The part of a time step that evaluates, until nothing changes any more. True when Python ran.
  bool evaluate();
  // Calls value change callbacks until none fires. True when one did.
  static bool settle();

  Simulation& sim_;
  bool own_clock_;
  std::uint64_t edge_ = kHalfPeriod;
};

}  // namespace npu_sim
