// SPDX-License-Identifier: Apache-2.0
#include "cocotb_loop.h"

#include <algorithm>

#include "vpi_user.h"

// Of cocotb's VPI library.
extern "C" void vlog_startup_routines_bootstrap(void);

namespace npu_sim {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};

}  // namespace

void CocotbLoop::run() {
  Verilated::fatalOnVpiError(false);  // cocotb asks for names that need not exist
  vlog_startup_routines_bootstrap();
  VerilatedVpi::callCbs(cbStartOfSimulation);
  settle();
  evaluate();
  bool python_ran = true;
  while (!sim_.finished()) {
    const std::uint64_t deadline = VerilatedVpi::cbNextDeadline();
    const std::uint64_t edge = next_edge();
    if (!python_ran && edge < deadline) {
      python_ran = burst(deadline);
      continue;
    }
    const std::uint64_t time = std::min(edge, deadline);
    if (time == kNever) break;  // nothing will ever happen again
    python_ran = step(time, deadline);
  }
  VerilatedVpi::callCbs(cbEndOfSimulation);
}

std::uint64_t CocotbLoop::next_edge() const { return own_clock_ ? edge_ : kNever; }

bool CocotbLoop::burst(std::uint64_t deadline) {
  // Callbacks come and go only while Python runs: this holds for the whole burst. It is never the
  // clock that is watched: each of its edges calls back, and what calls back is no burst.
  const bool watched = VerilatedVpi::hasCbs(cbValueChange);
  Vtb_top& top = sim_.model();
  while (edge_ < deadline && !sim_.finished()) {
    toggle();
    evaluate_model(top);
    if (watched && settle()) {
      evaluate();
      return true;
    }
    sim_.sample_waves();
  }
  return false;
}

void CocotbLoop::toggle() {
  sim_.toggle(edge_);
  edge_ += kHalfPeriod;
}

bool CocotbLoop::step(std::uint64_t time, std::uint64_t deadline) {
  sim_.context().time(time);
  bool python_ran = VerilatedVpi::callCbs(cbNextSimTime);
  python_ran |= settle();
  if (deadline <= time) {
    VerilatedVpi::callTimedCbs();
    settle();
    python_ran = true;
  }
  if (time == next_edge()) {
    toggle();
    python_ran |= settle();
  }
  return evaluate() || python_ran;
}

bool CocotbLoop::evaluate() {
  bool python_ran = false;
  do {
    do {
      sim_.take_pins();
      sim_.model().eval_step();
      VerilatedVpi::clearEvalNeeded();
      VerilatedVpi::doInertialPuts();
      python_ran |= settle();
    } while (VerilatedVpi::evalNeeded());
    python_ran |= VerilatedVpi::callCbs(cbReadWriteSynch);
    VerilatedVpi::doInertialPuts();
    python_ran |= settle();
  } while (VerilatedVpi::evalNeeded());
  sim_.model().eval_end_step();
  python_ran |= VerilatedVpi::callCbs(cbReadOnlySynch);
  sim_.sample_waves();
  return python_ran;
}

bool CocotbLoop::settle() {
  if (!VerilatedVpi::callValueCbs()) return false;
  while (VerilatedVpi::callValueCbs()) {
  }
  return true;
}

}  // namespace npu_sim
