// SPDX-License-Identifier: Apache-2.0
/// The NPU's pins, in AMBA's names; nothing but wiring.
///
/// s_axil: registers (docs/registers.md). s_axi: the host's window into device memory, addresses as
/// the device sees them. m_axi: the DRAM. irq: level, high while an enabled cause is pending.
module npu_top
  import npu_mem_pkg::*;
#(
  parameter int unsigned ArraySize   = 16,              // 8, 16, 32
  parameter int unsigned BusBits     = 256,             // 128, 256, 512: s_axi and m_axi
  parameter int unsigned FmaLatency  = 4,               // cycles of one multiply-add
  parameter int unsigned AccTiles    = 64,              // tiles in each accumulator half
  parameter int unsigned RowTiles    = 8,               // row tiles of a block
  parameter int unsigned WeightSlots = 16,              // weight tiles waiting in the array
  parameter int unsigned VectorLanes = 16,              // 4, 8, 16: of the vector engine
  parameter logic [63:0] MemBase     = 64'h0000_0000,   // device memory: first byte
  parameter logic [63:0] MemLimit    = 64'h2000_0000,   // and the first byte beyond
  localparam int unsigned StrbW      = BusBits / 8
) (
  input  logic        clk,
  input  logic        rst_n,
  output logic        irq,

  input  logic s_axil_awvalid,
  output logic s_axil_awready,
  input  logic [15:0] s_axil_awaddr,
  input  logic [2:0] s_axil_awprot,
  input  logic s_axil_wvalid,
  output logic s_axil_wready,
  input  logic [31:0] s_axil_wdata,
  input  logic [3:0] s_axil_wstrb,
  output logic s_axil_bvalid,
  input  logic s_axil_bready,
  output logic [1:0] s_axil_bresp,
  input  logic s_axil_arvalid,
  output logic s_axil_arready,
  input  logic [15:0] s_axil_araddr,
  input  logic [2:0] s_axil_arprot,
  output logic s_axil_rvalid,
  input  logic s_axil_rready,
  output logic [31:0] s_axil_rdata,
  output logic [1:0] s_axil_rresp,

  input  logic s_axi_awvalid,
  output logic s_axi_awready,
  input  logic [HOST_ID_WIDTH-1:0] s_axi_awid,
  input  logic [63:0] s_axi_awaddr,
  input  logic [7:0] s_axi_awlen,
  input  logic [2:0] s_axi_awsize,
  input  logic [1:0] s_axi_awburst,
  input  logic s_axi_wvalid,
  output logic s_axi_wready,
  input  logic [BusBits-1:0] s_axi_wdata,
  input  logic [StrbW-1:0] s_axi_wstrb,
  input  logic s_axi_wlast,
  output logic s_axi_bvalid,
  input  logic s_axi_bready,
  output logic [HOST_ID_WIDTH-1:0] s_axi_bid,
  output logic [1:0] s_axi_bresp,
  input  logic s_axi_arvalid,
  output logic s_axi_arready,
  input  logic [HOST_ID_WIDTH-1:0] s_axi_arid,
  input  logic [63:0] s_axi_araddr,
  input  logic [7:0] s_axi_arlen,
  input  logic [2:0] s_axi_arsize,
  input  logic [1:0] s_axi_arburst,
  output logic s_axi_rvalid,
  input  logic s_axi_rready,
  output logic [HOST_ID_WIDTH-1:0] s_axi_rid,
  output logic [BusBits-1:0] s_axi_rdata,
  output logic [1:0] s_axi_rresp,
  output logic s_axi_rlast,

  output logic m_axi_awvalid,
  input  logic m_axi_awready,
  output logic [AXI_ID_WIDTH-1:0] m_axi_awid,
  output logic [63:0] m_axi_awaddr,
  output logic [7:0] m_axi_awlen,
  output logic [2:0] m_axi_awsize,
  output logic [1:0] m_axi_awburst,
  output logic [3:0] m_axi_awcache,
  output logic [2:0] m_axi_awprot,
  output logic m_axi_wvalid,
  input  logic m_axi_wready,
  output logic [BusBits-1:0] m_axi_wdata,
  output logic [StrbW-1:0] m_axi_wstrb,
  output logic m_axi_wlast,
  input  logic m_axi_bvalid,
  output logic m_axi_bready,
  input  logic [AXI_ID_WIDTH-1:0] m_axi_bid,
  input  logic [1:0] m_axi_bresp,
  output logic m_axi_arvalid,
  input  logic m_axi_arready,
  output logic [AXI_ID_WIDTH-1:0] m_axi_arid,
  output logic [63:0] m_axi_araddr,
  output logic [7:0] m_axi_arlen,
  output logic [2:0] m_axi_arsize,
  output logic [1:0] m_axi_arburst,
  output logic [3:0] m_axi_arcache,
  output logic [2:0] m_axi_arprot,
  input  logic m_axi_rvalid,
  output logic m_axi_rready,
  input  logic [AXI_ID_WIDTH-1:0] m_axi_rid,
  input  logic [BusBits-1:0] m_axi_rdata,
  input  logic [1:0] m_axi_rresp,
  input  logic m_axi_rlast
);
  host_addr_t host_aw, host_ar;
  axi_addr_t  dram_aw, dram_ar;
  resp_e      host_b_resp, host_r_resp;

  assign host_aw = '{id: s_axi_awid, addr: s_axi_awaddr, len: s_axi_awlen, size: s_axi_awsize,
                     burst: burst_e'(s_axi_awburst)};
  assign host_ar = '{id: s_axi_arid, addr: s_axi_araddr, len: s_axi_arlen, size: s_axi_arsize,
                     burst: burst_e'(s_axi_arburst)};
  assign s_axi_bresp = host_b_resp;
  assign s_axi_rresp = host_r_resp;

  assign {m_axi_awid, m_axi_awaddr, m_axi_awlen, m_axi_awsize} =
      {dram_aw.id, dram_aw.addr, dram_aw.len, dram_aw.size};
  assign {m_axi_arid, m_axi_araddr, m_axi_arlen, m_axi_arsize} =
      {dram_ar.id, dram_ar.addr, dram_ar.len, dram_ar.size};
  assign m_axi_awburst = dram_aw.burst;
  assign m_axi_arburst = dram_ar.burst;
  // Normal, non-cacheable, bufferable memory; unprivileged, secure data.
  assign m_axi_awcache = 4'b0011;
  assign m_axi_arcache = 4'b0011;
  assign m_axi_awprot  = 3'b000;
  assign m_axi_arprot  = 3'b000;

  npu_core #(
    .ArraySize(ArraySize), .BusBits(BusBits), .FmaLatency(FmaLatency), .AccTiles(AccTiles),
    .RowTiles(RowTiles), .WeightSlots(WeightSlots), .VectorLanes(VectorLanes), .MemBase(MemBase),
    .MemLimit(MemLimit)
  ) u_core (
    .clk_i(clk),
    .rst_ni(rst_n),
    .irq_o(irq),
    .s_axil_awvalid_i(s_axil_awvalid),
    .s_axil_awready_o(s_axil_awready),
    .s_axil_awaddr_i(s_axil_awaddr),
    .s_axil_awprot_i(s_axil_awprot),
    .s_axil_wvalid_i(s_axil_wvalid),
    .s_axil_wready_o(s_axil_wready),
    .s_axil_wdata_i(s_axil_wdata),
    .s_axil_wstrb_i(s_axil_wstrb),
    .s_axil_bvalid_o(s_axil_bvalid),
    .s_axil_bready_i(s_axil_bready),
    .s_axil_bresp_o(s_axil_bresp),
    .s_axil_arvalid_i(s_axil_arvalid),
    .s_axil_arready_o(s_axil_arready),
    .s_axil_araddr_i(s_axil_araddr),
    .s_axil_arprot_i(s_axil_arprot),
    .s_axil_rvalid_o(s_axil_rvalid),
    .s_axil_rready_i(s_axil_rready),
    .s_axil_rdata_o(s_axil_rdata),
    .s_axil_rresp_o(s_axil_rresp),
    .host_ar_valid_i(s_axi_arvalid),
    .host_ar_ready_o(s_axi_arready),
    .host_ar_i(host_ar),
    .host_r_valid_o(s_axi_rvalid),
    .host_r_ready_i(s_axi_rready),
    .host_r_id_o(s_axi_rid),
    .host_r_data_o(s_axi_rdata),
    .host_r_resp_o(host_r_resp),
    .host_r_last_o(s_axi_rlast),
    .host_aw_valid_i(s_axi_awvalid),
    .host_aw_ready_o(s_axi_awready),
    .host_aw_i(host_aw),
    .host_w_valid_i(s_axi_wvalid),
    .host_w_ready_o(s_axi_wready),
    .host_w_data_i(s_axi_wdata),
    .host_w_strb_i(s_axi_wstrb),
    .host_w_last_i(s_axi_wlast),
    .host_b_valid_o(s_axi_bvalid),
    .host_b_ready_i(s_axi_bready),
    .host_b_id_o(s_axi_bid),
    .host_b_resp_o(host_b_resp),
    .axi_ar_valid_o(m_axi_arvalid),
    .axi_ar_ready_i(m_axi_arready),
    .axi_ar_o(dram_ar),
    .axi_r_valid_i(m_axi_rvalid),
    .axi_r_ready_o(m_axi_rready),
    .axi_r_id_i(m_axi_rid),
    .axi_r_data_i(m_axi_rdata),
    .axi_r_resp_i(resp_e'(m_axi_rresp)),
    .axi_r_last_i(m_axi_rlast),
    .axi_aw_valid_o(m_axi_awvalid),
    .axi_aw_ready_i(m_axi_awready),
    .axi_aw_o(dram_aw),
    .axi_w_valid_o(m_axi_wvalid),
    .axi_w_ready_i(m_axi_wready),
    .axi_w_data_o(m_axi_wdata),
    .axi_w_strb_o(m_axi_wstrb),
    .axi_w_last_o(m_axi_wlast),
    .axi_b_valid_i(m_axi_bvalid),
    .axi_b_ready_o(m_axi_bready),
    .axi_b_id_i(m_axi_bid),
    .axi_b_resp_i(resp_e'(m_axi_bresp))
  );
endmodule
