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

  // As in npu_axi_checker
  logic [4:0]  waits, waited_q;  // R, AR, B, W, AW
  logic        first_q;          // the first cycle after reset
  logic [15:0] aw_held_q, ar_held_q;
  logic [35:0] w_held_q;         // data, strobes
  logic [1:0]  b_held_q;
  logic [33:0] r_held_q;         // data, response

  `define NPU_STABLE(name, channel, bit_number, valid, held, payload) \
    if (waited_q[bit_number]) begin \
      name: assert (valid && held == payload) \
        else $error("s_axil: %s changed before it was accepted", channel); \
    end \
    if (waits[bit_number]) held = payload;

  always @(posedge clk_i) begin
    if (!rst_ni) begin
      {aw_q, w_q, b_q, ar_q, r_q} = '0;
      waited_q = '0;
    end else if (awvalid || wvalid || bvalid || arvalid || rvalid || waited_q != '0) begin
      QuietAfterReset: assert (!first_q)
        else $error("s_axil: a valid is high in the first cycle after reset");

      waits = {rvalid && !rready, arvalid && !arready, bvalid && !bready, wvalid && !wready,
               awvalid && !awready};
      if ((waits | waited_q) != '0) begin
        `NPU_STABLE(AwStable, "AW", 0, awvalid, aw_held_q, awaddr)
        `NPU_STABLE(WStable, "W", 1, wvalid, w_held_q, {wdata, wstrb})
        `NPU_STABLE(BStable, "B", 2, bvalid, b_held_q, bresp)
        `NPU_STABLE(ArStable, "AR", 3, arvalid, ar_held_q, araddr)
        `NPU_STABLE(RStable, "R", 4, rvalid, r_held_q, {rdata, rresp})
        waited_q = waits;
      end

      if (bvalid) begin
        BHasRequest: assert (b_q < aw_q && b_q < w_q)
          else $error("s_axil: write response without address and data");
      end
      if (rvalid) begin
        RHasRequest: assert (r_q < ar_q) else $error("s_axil: read data without address");
      end
      if (awvalid && awready) aw_q = aw_q + 32'd1;
      if (wvalid && wready)   w_q  = w_q + 32'd1;
      if (bvalid && bready)   b_q  = b_q + 32'd1;
      if (arvalid && arready) ar_q = ar_q + 32'd1;
      if (rvalid && rready)   r_q  = r_q + 32'd1;
    end
    first_q = !rst_ni;
  end
  `undef NPU_STABLE
endmodule
