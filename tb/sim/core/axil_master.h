// SPDX-License-Identifier: Apache-2.0
// AXI4-Lite transactions on tb_top's s_axil pins, one at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "simulation.h"

namespace npu_sim {

struct AxilResult {
  std::uint32_t data;
  AxiResponse response;
};

// Both return nothing when the slave has not answered after `limit` cycles, or when `abandoned`,
// asked now and then, says so; the pins are then released, and only a reset makes the port usable.
class AxilMaster {
 public:
  explicit AxilMaster(Simulation& simulation) : sim_(simulation), top_(simulation.top()) {}

  template <typename Abandoned>
  std::optional<AxilResult> read(std::uint16_t offset, std::uint64_t limit, Abandoned abandoned) {
    Vtb_top& pins = sim_.pins();
    pins.s_axil_araddr = offset;
    pins.s_axil_arvalid = 1;
    pins.s_axil_rready = 1;
    std::optional<AxilResult> result;
    for (std::uint64_t i = 0; i < limit && !result && !sim_.finished(); ++i) {
      if (i % kAskEvery == kAskEvery - 1 && abandoned()) break;
      sim_.half_cycle();
      const bool address_taken = top_.s_axil_arvalid && top_.s_axil_arready;
      if (top_.s_axil_rvalid) result = {top_.s_axil_rdata, AxiResponse(top_.s_axil_rresp)};
      sim_.half_cycle();
      if (address_taken) sim_.pins().s_axil_arvalid = 0;
    }
    sim_.pins().s_axil_arvalid = 0;
    sim_.pins().s_axil_rready = 0;
    return result;
  }

  template <typename Abandoned>
  std::optional<AxilResult> write(std::uint16_t offset, std::uint32_t data, std::uint64_t limit,
                                  Abandoned abandoned) {
    Vtb_top& pins = sim_.pins();
    pins.s_axil_awaddr = offset;
    pins.s_axil_awvalid = 1;
    pins.s_axil_wdata = data;
    pins.s_axil_wstrb = 0xF;
    pins.s_axil_wvalid = 1;
    pins.s_axil_bready = 1;
    std::optional<AxilResult> result;
    for (std::uint64_t i = 0; i < limit && !result && !sim_.finished(); ++i) {
      if (i % kAskEvery == kAskEvery - 1 && abandoned()) break;
      sim_.half_cycle();
      const bool address_taken = top_.s_axil_awvalid && top_.s_axil_awready;
      const bool data_taken = top_.s_axil_wvalid && top_.s_axil_wready;
      if (top_.s_axil_bvalid) result = {0, AxiResponse(top_.s_axil_bresp)};
      sim_.half_cycle();
      if (address_taken) sim_.pins().s_axil_awvalid = 0;
      if (data_taken) sim_.pins().s_axil_wvalid = 0;
    }
    sim_.pins().s_axil_awvalid = 0;
    sim_.pins().s_axil_wvalid = 0;
    sim_.pins().s_axil_bready = 0;
    return result;
  }

 private:
  Simulation& sim_;
  const Vtb_top& top_;
};

}  // namespace npu_sim
