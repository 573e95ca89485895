// SPDX-License-Identifier: Apache-2.0
/// Wires the host's port straight to the memory: an AXI master on s_axi_* then meets npu_dram
/// alone. Registers never answer.
module npu_top #(
  parameter int unsigned ArraySize = 16,
  parameter int unsigned BusBits = 256,
  parameter int unsigned FmaLatency = 4,
  parameter int unsigned AccTiles = 4,
  parameter int unsigned RowTiles = 4,
  parameter int unsigned WeightSlots = 2,
  parameter int unsigned VectorLanes = 4,
  parameter bit WholeWrites = 1'b0,
  parameter logic [63:0] MemBase = 64'h0,
  parameter logic [63:0] MemLimit = 64'h2000_0000
) (
  input  logic                 clk,
  input  logic                 rst_n,
  output logic                 irq,

  input  logic [15:0]                s_axil_awaddr,
  input  logic [2:0]                 s_axil_awprot,
  input  logic                       s_axil_awvalid,
  output logic                       s_axil_awready,
  input  logic [31:0]                s_axil_wdata,
  input  logic [3:0]                 s_axil_wstrb,
  input  logic                       s_axil_wvalid,
  output logic                       s_axil_wready,
  output logic [1:0]                 s_axil_bresp,
  output logic                       s_axil_bvalid,
  input  logic                       s_axil_bready,
  input  logic [15:0]                s_axil_araddr,
  input  logic [2:0]                 s_axil_arprot,
  input  logic                       s_axil_arvalid,
  output logic                       s_axil_arready,
  output logic [31:0]                s_axil_rdata,
  output logic [1:0]                 s_axil_rresp,
  output logic                       s_axil_rvalid,
  input  logic                       s_axil_rready,

  input  logic [3:0]                 s_axi_awid,
  input  logic [63:0]                s_axi_awaddr,
  input  logic [7:0]                 s_axi_awlen,
  input  logic [2:0]                 s_axi_awsize,
  input  logic [1:0]                 s_axi_awburst,
  input  logic                       s_axi_awvalid,
  output logic                       s_axi_awready,
  input  logic [BusBits-1:0]         s_axi_wdata,
  input  logic [BusBits/8-1:0]       s_axi_wstrb,
  input  logic                       s_axi_wlast,
  input  logic                       s_axi_wvalid,
  output logic                       s_axi_wready,
  output logic [3:0]                 s_axi_bid,
  output logic [1:0]                 s_axi_bresp,
  output logic                       s_axi_bvalid,
  input  logic                       s_axi_bready,
  input  logic [3:0]                 s_axi_arid,
  input  logic [63:0]                s_axi_araddr,
  input  logic [7:0]                 s_axi_arlen,
  input  logic [2:0]                 s_axi_arsize,
  input  logic [1:0]                 s_axi_arburst,
  input  logic                       s_axi_arvalid,
  output logic                       s_axi_arready,
  output logic [3:0]                 s_axi_rid,
  output logic [BusBits-1:0]         s_axi_rdata,
  output logic [1:0]                 s_axi_rresp,
  output logic                       s_axi_rlast,
  output logic                       s_axi_rvalid,
  input  logic                       s_axi_rready,

  output logic [7:0]                 m_axi_awid,
  output logic [63:0]                m_axi_awaddr,
  output logic [7:0]                 m_axi_awlen,
  output logic [2:0]                 m_axi_awsize,
  output logic [1:0]                 m_axi_awburst,
  output logic [3:0]                 m_axi_awcache,
  output logic [2:0]                 m_axi_awprot,
  output logic                       m_axi_awvalid,
  input  logic                       m_axi_awready,
  output logic [BusBits-1:0]         m_axi_wdata,
  output logic [BusBits/8-1:0]       m_axi_wstrb,
  output logic                       m_axi_wlast,
  output logic                       m_axi_wvalid,
  input  logic                       m_axi_wready,
  input  logic [7:0]                 m_axi_bid,
  input  logic [1:0]                 m_axi_bresp,
  input  logic                       m_axi_bvalid,
  output logic                       m_axi_bready,
  output logic [7:0]                 m_axi_arid,
  output logic [63:0]                m_axi_araddr,
  output logic [7:0]                 m_axi_arlen,
  output logic [2:0]                 m_axi_arsize,
  output logic [1:0]                 m_axi_arburst,
  output logic [3:0]                 m_axi_arcache,
  output logic [2:0]                 m_axi_arprot,
  output logic                       m_axi_arvalid,
  input  logic                       m_axi_arready,
  input  logic [7:0]                 m_axi_rid,
  input  logic [BusBits-1:0]         m_axi_rdata,
  input  logic [1:0]                 m_axi_rresp,
  input  logic                       m_axi_rlast,
  input  logic                       m_axi_rvalid,
  output logic                       m_axi_rready
);
  assign m_axi_awid     = 8'(s_axi_awid);
  assign m_axi_awaddr   = s_axi_awaddr;
  assign m_axi_awlen    = s_axi_awlen;
  assign m_axi_awsize   = s_axi_awsize;
  assign m_axi_awburst  = s_axi_awburst;
  assign m_axi_awvalid  = s_axi_awvalid;
  assign s_axi_awready  = m_axi_awready;
  assign m_axi_wdata    = s_axi_wdata;
  assign m_axi_wstrb    = s_axi_wstrb;
  assign m_axi_wlast    = s_axi_wlast;
  assign m_axi_wvalid   = s_axi_wvalid;
  assign s_axi_wready   = m_axi_wready;
  assign s_axi_bid      = 4'(m_axi_bid);
  assign s_axi_bresp    = m_axi_bresp;
  assign s_axi_bvalid   = m_axi_bvalid;
  assign m_axi_bready   = s_axi_bready;
  assign m_axi_arid     = 8'(s_axi_arid);
  assign m_axi_araddr   = s_axi_araddr;
  assign m_axi_arlen    = s_axi_arlen;
  assign m_axi_arsize   = s_axi_arsize;
  assign m_axi_arburst  = s_axi_arburst;
  assign m_axi_arvalid  = s_axi_arvalid;
  assign s_axi_arready  = m_axi_arready;
  assign s_axi_rid      = 4'(m_axi_rid);
  assign s_axi_rdata    = m_axi_rdata;
  assign s_axi_rresp    = m_axi_rresp;
  assign s_axi_rlast    = m_axi_rlast;
  assign s_axi_rvalid   = m_axi_rvalid;
  assign m_axi_rready   = s_axi_rready;
  assign m_axi_awcache  = '0;
  assign m_axi_awprot   = '0;
  assign m_axi_arcache  = '0;
  assign m_axi_arprot   = '0;

  assign s_axil_awready  = '0;
  assign s_axil_wready   = '0;
  assign s_axil_bresp    = '0;
  assign s_axil_bvalid   = '0;
  assign s_axil_arready  = '0;
  assign s_axil_rdata    = '0;
  assign s_axil_rresp    = '0;
  assign s_axil_rvalid   = '0;
  assign irq = 1'b0;
endmodule
