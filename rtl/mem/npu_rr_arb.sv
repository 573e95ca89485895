// SPDX-License-Identifier: Apache-2.0
/// Round-robin arbiter: grants the first request after the one that was last taken.
///
/// Combinational grant, at most one bit; the turn moves on only when `take_i` is high. The grant
/// may change while it is not taken, so a register must hold the payload that it selects.
module npu_rr_arb #(
  parameter int unsigned N = 2
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic [N-1:0] req_i,
  input  logic         take_i,
  output logic [N-1:0] grant_o
);
  logic [N-1:0] after_q;  // the requests behind the last one taken
  logic [N-1:0] behind, pool;

  assign behind  = req_i & after_q;
  assign pool    = (behind != '0) ? behind : req_i;
  assign grant_o = pool & (~pool + N'(1));  // lowest set bit

  always_ff @(posedge clk_i) begin
    if (!rst_ni)                        after_q <= '0;
    else if (take_i && grant_o != '0)   after_q <= ~((grant_o - N'(1)) | grant_o);
  end
endmodule
