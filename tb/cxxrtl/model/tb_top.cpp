// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <stdexcept>

#include "Vtb_top.h"
#include "dram.h"
#include "npu.h"

namespace {

using Design = cxxrtl_design::p_npu__top;

constexpr unsigned kBusBits = decltype(Design::p_m__axi__rdata)::bits;
using Inputs = npu_sim::DramInputs<kBusBits>;

template <typename Signal>
std::uint64_t number(const Signal& signal) {
  return signal.template get<std::uint64_t>();
}

// npu_port_watch: valid and ready of {R, AR, B, W, AW}, counted.
struct PortWatch {
  unsigned valid = 0, ready = 0;
  bool last = true;
  std::uint16_t reads = 0, writes = 0;

  bool moved() const { return (valid & ready) != 0; }
  std::uint64_t waiting() const { return valid & ~ready; }

  void edge(bool reset) {
    const unsigned fired = valid & ready;
    const auto count = [fired](unsigned bit) { return static_cast<int>((fired >> bit) & 1U); };
    reads = static_cast<std::uint16_t>(reset ? 0 : reads + count(3) - (last ? count(4) : 0));
    writes = static_cast<std::uint16_t>(reset ? 0 : writes + count(0) - count(2));
  }
};

}  // namespace

struct Vtb_top::State {
  State() { design.reset(); }

  Design design;
  npu_sim::Dram<kBusBits> dram;
  std::array<PortWatch, 3> watches;  // s_axil, s_axi, m_axi
  bool clk = false, changed = true, rst_n = false;

  // The pins that C++ changes.
  void take(const Vtb_top& top) {
    rst_n = top.rst_n;
    dram.settings = {top.dram_latency, top.dram_stall, top.dram_seed};
    design.p_rst__n.set(top.rst_n);
    design.p_s__axil__awaddr.set(top.s_axil_awaddr);
    design.p_s__axil__awprot.set(top.s_axil_awprot);
    design.p_s__axil__awvalid.set(top.s_axil_awvalid);
    design.p_s__axil__wdata.set(top.s_axil_wdata);
    design.p_s__axil__wstrb.set(top.s_axil_wstrb);
    design.p_s__axil__wvalid.set(top.s_axil_wvalid);
    design.p_s__axil__bready.set(top.s_axil_bready);
    design.p_s__axil__araddr.set(top.s_axil_araddr);
    design.p_s__axil__arprot.set(top.s_axil_arprot);
    design.p_s__axil__arvalid.set(top.s_axil_arvalid);
    design.p_s__axil__rready.set(top.s_axil_rready);
  }

  void settle() {
    design.p_m__axi__arready.set(dram.ar_ready());
    design.p_m__axi__awready.set(dram.aw_ready());
    design.p_m__axi__wready.set(dram.w_ready());
    design.p_m__axi__rvalid.set(dram.r_valid);
    design.p_m__axi__rid.set(dram.r_id);
    std::memcpy(design.p_m__axi__rdata.data, dram.r_data.data(), kBusBits / 8);
    design.p_m__axi__rresp.set(dram.r_response);
    design.p_m__axi__rlast.set(dram.r_last);
    design.p_m__axi__bvalid.set(dram.b_valid);
    design.p_m__axi__bid.set(dram.b_id);
    design.p_m__axi__bresp.set(dram.b_response);
    design.settle();
    watch();
  }

  void watch() {
    const auto bits = [](auto... flags) {
      unsigned all = 0, at = 0;
      ((all |= static_cast<unsigned>(number(flags) != 0) << at++), ...);
      return all;
    };
    const Design& d = design;
    watches[0].valid = bits(d.p_s__axil__awvalid, d.p_s__axil__wvalid, d.p_s__axil__bvalid,
                            d.p_s__axil__arvalid, d.p_s__axil__rvalid);
    watches[0].ready = bits(d.p_s__axil__awready, d.p_s__axil__wready, d.p_s__axil__bready,
                            d.p_s__axil__arready, d.p_s__axil__rready);
    watches[2].valid = bits(d.p_m__axi__awvalid, d.p_m__axi__wvalid, d.p_m__axi__bvalid,
                            d.p_m__axi__arvalid, d.p_m__axi__rvalid);
    watches[2].ready = bits(d.p_m__axi__awready, d.p_m__axi__wready, d.p_m__axi__bready,
                            d.p_m__axi__arready, d.p_m__axi__rready);
    watches[2].last = dram.r_last;
  }

  Inputs inputs() const {
    const Design& d = design;
    Inputs in;
    in.reset = !rst_n;
    in.ar_valid = number(d.p_m__axi__arvalid) != 0;
    in.r_ready = number(d.p_m__axi__rready) != 0;
    in.aw_valid = number(d.p_m__axi__awvalid) != 0;
    in.w_valid = number(d.p_m__axi__wvalid) != 0;
    in.b_ready = number(d.p_m__axi__bready) != 0;
    if (in.ar_valid) {
      in.ar = burst(d.p_m__axi__arid, d.p_m__axi__araddr, d.p_m__axi__arlen, d.p_m__axi__arsize,
                    d.p_m__axi__arburst);
    }
    if (in.aw_valid) {
      in.aw = burst(d.p_m__axi__awid, d.p_m__axi__awaddr, d.p_m__axi__awlen, d.p_m__axi__awsize,
                    d.p_m__axi__awburst);
    }
    if (in.w_valid) {
      std::memcpy(in.w_data.data(), d.p_m__axi__wdata.data, kBusBits / 8);
      const std::uint64_t strobe = number(d.p_m__axi__wstrb);
      in.w_strobe = {static_cast<std::uint32_t>(strobe), static_cast<std::uint32_t>(strobe >> 32)};
    }
    return in;
  }

  template <typename Id, typename Address, typename Length, typename Size, typename Kind>
  static npu_sim::DramBurst burst(const Id& id, const Address& address, const Length& length,
                                  const Size& size, const Kind& kind) {
    return {static_cast<std::uint8_t>(number(id)), number(address),
            static_cast<std::uint8_t>(number(length)), static_cast<std::uint8_t>(number(size)),
            static_cast<std::uint8_t>(number(kind))};
  }

  // The rising edge: every register from the values before it.
  void edge(Vtb_top& top) {
    bool moved = false;
    for (PortWatch& port : watches) {
      moved = moved || port.moved();
      port.edge(!rst_n);
    }
    top.moved = rst_n ? top.moved + (moved ? 1 : 0) : 0;
    dram.edge(inputs());
    design.edge();
    design.commit();
  }

  void show(Vtb_top& top) const {
    top.irq = static_cast<std::uint8_t>(number(design.p_irq));
    top.s_axil_awready = static_cast<std::uint8_t>(number(design.p_s__axil__awready));
    top.s_axil_wready = static_cast<std::uint8_t>(number(design.p_s__axil__wready));
    top.s_axil_bresp = static_cast<std::uint8_t>(number(design.p_s__axil__bresp));
    top.s_axil_bvalid = static_cast<std::uint8_t>(number(design.p_s__axil__bvalid));
    top.s_axil_arready = static_cast<std::uint8_t>(number(design.p_s__axil__arready));
    top.s_axil_rdata = static_cast<std::uint32_t>(number(design.p_s__axil__rdata));
    top.s_axil_rresp = static_cast<std::uint8_t>(number(design.p_s__axil__rresp));
    top.s_axil_rvalid = static_cast<std::uint8_t>(number(design.p_s__axil__rvalid));
    top.waiting = 0;
    top.open_reads = top.open_writes = 0;
    for (std::size_t port = 0; port < watches.size(); ++port) {
      top.waiting |= static_cast<std::uint16_t>(watches[port].waiting() << (5 * port));
      top.open_reads |= std::uint64_t{watches[port].reads} << (16 * port);
      top.open_writes |= std::uint64_t{watches[port].writes} << (16 * port);
    }
  }
};

Vtb_top::Vtb_top(VerilatedContext*, const char*) : state_(std::make_unique<State>()) {}
Vtb_top::~Vtb_top() = default;

void Vtb_top::eval() {
  if (!dram_on) throw std::runtime_error("cxxrtl: a memory on ext_axi is not connected");
  State& state = *state_;
  const bool rising = clk != 0 && !state.clk;
  const bool pins = (changed != 0) != state.changed;
  state.clk = clk != 0;
  state.changed = changed != 0;
  if (rising) state.edge(*this);
  if (pins) state.take(*this);
  if (rising || pins) state.settle();
  state.show(*this);
}
