// SPDX-License-Identifier: Apache-2.0
/// What one port of the device does, for the simulator's main loop (simulation only).
///
/// `moved_o`: a channel transfers in this cycle. `waiting_o`: a channel is valid and not accepted,
/// {R, AR, B, W, AW}. `reads_o`, `writes_o`: bursts whose address was accepted and whose last beat
/// of data, or whose response, was not. An AXI4-Lite port has rlast_i = 1.
module npu_port_watch (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        aw_valid_i,
  input  logic        aw_ready_i,
  input  logic        w_valid_i,
  input  logic        w_ready_i,
  input  logic        b_valid_i,
  input  logic        b_ready_i,
  input  logic        ar_valid_i,
  input  logic        ar_ready_i,
  input  logic        r_valid_i,
  input  logic        r_ready_i,
  input  logic        r_last_i,
  output logic        moved_o,
  output logic [4:0]  waiting_o,
  output logic [15:0] reads_o,
  output logic [15:0] writes_o
);
  logic [4:0] valid, ready, moved;
  assign valid     = {r_valid_i, ar_valid_i, b_valid_i, w_valid_i, aw_valid_i};
  assign ready     = {r_ready_i, ar_ready_i, b_ready_i, w_ready_i, aw_ready_i};
  assign moved     = valid & ready;
  assign moved_o   = moved != '0;
  assign waiting_o = valid & ~ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      reads_o  <= '0;
      writes_o <= '0;
    end else if (moved_o) begin
      reads_o  <= reads_o + 16'(moved[3]) - 16'(moved[4] && r_last_i);
      writes_o <= writes_o + 16'(moved[0]) - 16'(moved[2]);
    end
  end
endmodule
