// SPDX-License-Identifier: Apache-2.0
// The Verilated model, its clock and its waves: what both main programs share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "Vtb_top.h"
#include "shared_memory.h"
#include "verilated.h"
#include "waves.h"

class Vtb_top___024root;
void Vtb_top___024root___eval(Vtb_top___024root* root);

namespace npu_sim {

// Of Verilator's models not `eval`: that looks for garbage of classes and for messages of other
// threads, under two locks, 3 % of a COPY. The model has neither, and messages of its own thread
// are not queued. With waves it also notes that there is something to write. CXXRTL's has no root.
template <typename Model>
void evaluate_model(Model& model) {
  if constexpr (!VM_TRACE && requires { model.rootp; }) {
    Vtb_top___024root___eval(model.rootp);
  } else {
    model.eval();
  }
}

// Simulated time of half a clock period, in the model's 1 ps steps.
inline constexpr std::uint64_t kHalfPeriod = 1000;
inline constexpr unsigned kResetCycles = 8;
// Cycles between two looks at whether the client is still there: milliseconds even for a slow
// model.
inline constexpr std::uint64_t kAskEvery = 1024;

// The model has no name of its own: cocotb looks for "tb_top", not "TOP.tb_top".
class Simulation {
 public:
  Simulation(int argc, char** argv, SharedMemory& shared)
      : shared_(shared), top_(configured(argc, argv), "") {
    attach_dram(shared_);
    release_pins();
    top_.dram_on = 1;
    top_.dram_latency = 100;
    top_.dram_stall = 0;
    top_.dram_seed = 1;
    top_.changed = 0;
    top_.eval();  // the first: runs what is initial
    pins();
    evaluate();  // before the first edge of the clock
  }

  const Vtb_top& top() const { return top_; }
  // For whoever changes inputs: those changes take effect with the next change of the clock.
  Vtb_top& pins() {
    top_.changed = !changed_;
    return top_;
  }
  // For whoever evaluates the model itself: inputs that have changed take effect now.
  void take_pins() { top_.changed = !top_.changed; }
  // Everything, for waves and cocotb.
  Vtb_top& model() { return top_; }
  VerilatedContext& context() { return context_; }
  Waves& waves() { return waves_; }
  SharedMemory& shared() { return shared_; }
  std::uint64_t cycle() { return shared_.header().cycle; }
  bool finished() const { return context_.gotFinish(); }

  // Changes the clock pin at `time`, without evaluating the model.
  void toggle(std::uint64_t time) {
    context_.time(time);
    top_.clk = top_.clk ^ 1;
    shared_.header().cycle += top_.clk;
  }

  void sample_waves() { waves_.sample(top_, cycle(), context_.time()); }

  void half_cycle() {
    toggle(context_.time() + kHalfPeriod);
    evaluate();
    sample_waves();
  }

  // One clock period, entered and left with the clock high: inputs set before the call are seen by
  // the rising edge at its end.
  void cycle_once() {
    half_cycle();
    half_cycle();
  }

  // `abandoned` is asked now and then whether to stop early.
  template <typename Abandoned>
  void reset(std::uint64_t cycles, Abandoned abandoned) {
    if (top_.clk == 0) half_cycle();
    pins().rst_n = 0;
    for (std::uint64_t i = 0; i < cycles; ++i) {
      if (i % kAskEvery == kAskEvery - 1 && abandoned()) return;
      cycle_once();
    }
    pins().rst_n = 1;
    cycle_once();
  }

  void reset() {
    reset(kResetCycles, [] { return false; });
  }

 private:
  void evaluate() {
    evaluate_model(top_);
    changed_ = top_.changed;
  }

  VerilatedContext* configured(int argc, char** argv) {
    context_.commandArgs(argc, argv);
    waves_.prepare(context_);
    return &context_;
  }

  // Inputs start with random values, too: there is no request and no response.
  void release_pins() {
    top_.clk = 0;
    top_.rst_n = 0;
    top_.s_axil_awvalid = 0;
    top_.s_axil_awprot = 0;
    top_.s_axil_wvalid = 0;
    top_.s_axil_bready = 0;
    top_.s_axil_arvalid = 0;
    top_.s_axil_arprot = 0;
    top_.s_axil_rready = 0;
    top_.s_axi_awvalid = 0;
    top_.s_axi_wvalid = 0;
    top_.s_axi_bready = 0;
    top_.s_axi_arvalid = 0;
    top_.s_axi_rready = 0;
    top_.ext_axi_awready = 0;
    top_.ext_axi_wready = 0;
    top_.ext_axi_bvalid = 0;
    top_.ext_axi_arready = 0;
    top_.ext_axi_rvalid = 0;
  }

  VerilatedContext context_;
  bool changed_ = false;  // the pin `changed` when the model was last evaluated
  SharedMemory& shared_;
  Waves waves_;
  Vtb_top top_;
};

}  // namespace npu_sim
