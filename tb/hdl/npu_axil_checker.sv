// SPDX-License-Identifier: Apache-2.0
/// Protocol assertions of the AXI4-Lite port: payloads held until accepted, one response for each
/// address (and data), none without, nothing valid in the first cycle after reset.
module npu_axil_checker (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        awvalid,
  input logic        awready,
  input logic [15:0] awaddr,
  input logic        wvalid,
  input logic        wready,
  input logic [31:0] wdata,
  input logic [3:0]  wstrb,
  input logic        bvalid,
  input logic        bready,
  input logic [1:0]  bresp,
  input logic        arvalid,
  input logic        arready,
  input logic [15:0] araddr,
  input logic        rvalid,
  input logic        rready,
  input logic [31:0] rdata,
  input logic [1:0]  rresp
);
  logic [31:0] aw_q, w_q, b_q, ar_q, r_q;  // handshakes since reset

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {aw_q, w_q, b_q, ar_q, r_q} <= '0;
    end else begin
      aw_q <= aw_q + 32'(awvalid && awready);
      w_q  <= w_q + 32'(wvalid && wready);
      b_q  <= b_q + 32'(bvalid && bready);
      ar_q <= ar_q + 32'(arvalid && arready);
      r_q  <= r_q + 32'(rvalid && rready);
    end
  end

  AwStable: assert property (@(posedge clk_i) disable iff (!rst_ni)
      awvalid && !awready |=> awvalid && $stable(awaddr))
    else $error("s_axil: AW changed before it was accepted");
  WStable: assert property (@(posedge clk_i) disable iff (!rst_ni)
      wvalid && !wready |=> wvalid && $stable({wdata, wstrb}))
    else $error("s_axil: W changed before it was accepted");
  BStable: assert property (@(posedge clk_i) disable iff (!rst_ni)
      bvalid && !bready |=> bvalid && $stable(bresp))
    else $error("s_axil: B changed before it was accepted");
  ArStable: assert property (@(posedge clk_i) disable iff (!rst_ni)
      arvalid && !arready |=> arvalid && $stable(araddr))
    else $error("s_axil: AR changed before it was accepted");
  RStable: assert property (@(posedge clk_i) disable iff (!rst_ni)
      rvalid && !rready |=> rvalid && $stable({rdata, rresp}))
    else $error("s_axil: R changed before it was accepted");
  BHasRequest: assert property (@(posedge clk_i) disable iff (!rst_ni)
      bvalid |-> b_q < aw_q && b_q < w_q)
    else $error("s_axil: write response without address and data");
  RHasRequest: assert property (@(posedge clk_i) disable iff (!rst_ni) rvalid |-> r_q < ar_q)
    else $error("s_axil: read data without address");
  QuietAfterReset: assert property (@(posedge clk_i)
      $rose(rst_ni) |-> !awvalid && !wvalid && !bvalid && !arvalid && !rvalid)
    else $error("s_axil: a valid is high in the first cycle after reset");
endmodule
