// SPDX-License-Identifier: Apache-2.0
// tb/hdl/tb_top.sv around a model that CXXRTL made of npu_top: the pins that the server uses, by
// the same names, the DRAM and the watch on the ports. The model has one clock (clock gates are
// enables, tb/netlist/clock_gates.py), so a cycle is one step of its registers.
#pragma once

#include <cstdint>
#include <memory>

#include "verilated.h"

class Vtb_top {
 public:
  Vtb_top(VerilatedContext* context, const char* name);
  ~Vtb_top();

  std::uint8_t clk = 0, changed = 0, rst_n = 0, irq = 0, dram_on = 1, dram_stall = 0;
  std::uint16_t dram_latency = 1, waiting = 0;
  std::uint32_t dram_seed = 0, moved = 0;
  std::uint64_t open_reads = 0, open_writes = 0;

  std::uint16_t s_axil_awaddr = 0, s_axil_araddr = 0;
  std::uint32_t s_axil_wdata = 0, s_axil_rdata = 0;
  std::uint8_t s_axil_awprot = 0, s_axil_awvalid = 0, s_axil_awready = 0, s_axil_wstrb = 0,
               s_axil_wvalid = 0, s_axil_wready = 0, s_axil_bresp = 0, s_axil_bvalid = 0,
               s_axil_bready = 0, s_axil_arprot = 0, s_axil_arvalid = 0, s_axil_arready = 0,
               s_axil_rresp = 0, s_axil_rvalid = 0, s_axil_rready = 0;
  // Not connected: the server drives neither the host port nor a memory of its own.
  std::uint8_t s_axi_awvalid = 0, s_axi_wvalid = 0, s_axi_bready = 0, s_axi_arvalid = 0,
               s_axi_rready = 0;
  std::uint8_t ext_axi_awready = 0, ext_axi_wready = 0, ext_axi_bvalid = 0, ext_axi_arready = 0,
               ext_axi_rvalid = 0;

  // After each change of clk or of other inputs. Inputs take effect with a change of `changed`.
  void eval();
  void final() {}

 private:
  struct State;
  std::unique_ptr<State> state_;
};
