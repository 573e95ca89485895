// SPDX-License-Identifier: Apache-2.0
// The protocol checkers on all three ports of npu_top, in every build with assertions.
bind npu_top npu_axi_checker #(
  .BusBits(BusBits), .IdBits(4), .Port("s_axi")
) u_s_axi_checker (
  .clk_i(clk), .rst_ni(rst_n),
  .awvalid(s_axi_awvalid), .awready(s_axi_awready), .awid(s_axi_awid),
  .awaddr(s_axi_awaddr), .awlen(s_axi_awlen), .awsize(s_axi_awsize),
  .awburst(s_axi_awburst), .wvalid(s_axi_wvalid), .wready(s_axi_wready),
  .wdata(s_axi_wdata), .wstrb(s_axi_wstrb), .wlast(s_axi_wlast),
  .bvalid(s_axi_bvalid), .bready(s_axi_bready), .bid(s_axi_bid),
  .bresp(s_axi_bresp), .arvalid(s_axi_arvalid), .arready(s_axi_arready),
  .arid(s_axi_arid), .araddr(s_axi_araddr), .arlen(s_axi_arlen),
  .arsize(s_axi_arsize), .arburst(s_axi_arburst), .rvalid(s_axi_rvalid),
  .rready(s_axi_rready), .rid(s_axi_rid), .rdata(s_axi_rdata),
  .rresp(s_axi_rresp), .rlast(s_axi_rlast)
);

bind npu_top npu_axi_checker #(
  .BusBits(BusBits), .IdBits(8), .Port("m_axi")
) u_m_axi_checker (
  .clk_i(clk), .rst_ni(rst_n),
  .awvalid(m_axi_awvalid), .awready(m_axi_awready), .awid(m_axi_awid),
  .awaddr(m_axi_awaddr), .awlen(m_axi_awlen), .awsize(m_axi_awsize),
  .awburst(m_axi_awburst), .wvalid(m_axi_wvalid), .wready(m_axi_wready),
  .wdata(m_axi_wdata), .wstrb(m_axi_wstrb), .wlast(m_axi_wlast),
  .bvalid(m_axi_bvalid), .bready(m_axi_bready), .bid(m_axi_bid),
  .bresp(m_axi_bresp), .arvalid(m_axi_arvalid), .arready(m_axi_arready),
  .arid(m_axi_arid), .araddr(m_axi_araddr), .arlen(m_axi_arlen),
  .arsize(m_axi_arsize), .arburst(m_axi_arburst), .rvalid(m_axi_rvalid),
  .rready(m_axi_rready), .rid(m_axi_rid), .rdata(m_axi_rdata),
  .rresp(m_axi_rresp), .rlast(m_axi_rlast)
);

bind npu_top npu_axil_checker u_s_axil_checker (
  .clk_i(clk), .rst_ni(rst_n),
  .awvalid(s_axil_awvalid), .awready(s_axil_awready), .awaddr(s_axil_awaddr),
  .wvalid(s_axil_wvalid), .wready(s_axil_wready), .wdata(s_axil_wdata),
  .wstrb(s_axil_wstrb), .bvalid(s_axil_bvalid), .bready(s_axil_bready),
  .bresp(s_axil_bresp), .arvalid(s_axil_arvalid), .arready(s_axil_arready),
  .araddr(s_axil_araddr), .rvalid(s_axil_rvalid), .rready(s_axil_rready),
  .rdata(s_axil_rdata), .rresp(s_axil_rresp)
);
