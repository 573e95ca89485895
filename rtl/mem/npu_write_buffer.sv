// SPDX-License-Identifier: Apache-2.0
/// Writes for a memory that serves one burst at a time: a burst is asked for when all its data is
/// here, so that it needs no further read before it ends.
///
/// Data may arrive before its address, in the order of the addresses. It leaves behind its address,
/// in the same order. Latency: the data of the burst, and 1 cycle.
module npu_write_buffer
  import npu_mem_pkg::*;
#(
  parameter int unsigned BusBits = 256,
  localparam int unsigned StrbW  = BusBits / 8
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic               aw_valid_i,
  output logic               aw_ready_o,
  input  axi_addr_t          aw_i,
  input  logic               w_valid_i,
  output logic               w_ready_o,
  input  logic [BusBits-1:0] w_data_i,
  input  logic [StrbW-1:0]   w_strb_i,
  input  logic               w_last_i,

  output logic               aw_valid_o,
  input  logic               aw_ready_i,
  output axi_addr_t          aw_o,
  output logic               w_valid_o,
  input  logic               w_ready_i,
  output logic [BusBits-1:0] w_data_o,
  output logic [StrbW-1:0]   w_strb_o,
  output logic               w_last_o
);
  // With fewer the longest burst would never be whole.
  localparam int unsigned Beats = MAX_BURST_BEATS;
  localparam int unsigned Addresses = 4;
  localparam int unsigned CountW = $clog2(Beats + 1);

  logic [CountW-1:0] whole_q;  // bursts whose data is here and whose address is not sent
  logic [CountW-1:0] sent_q;   // bursts whose address is sent and whose data is not
  logic              addr_valid, beat_valid, stored, sent, left;

  npu_fifo #(.Width($bits(axi_addr_t)), .Depth(Addresses)) u_addr (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(aw_valid_i), .in_ready_o(aw_ready_o), .in_data_i(aw_i),
    .out_valid_o(addr_valid), .out_ready_i(sent), .out_data_o(aw_o), .count_o()
  );

  npu_fifo #(.Width(1 + StrbW + BusBits), .Depth(Beats)) u_beats (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(w_valid_i), .in_ready_o(w_ready_o), .in_data_i({w_last_i, w_strb_i, w_data_i}),
    .out_valid_o(beat_valid), .out_ready_i(w_valid_o && w_ready_i),
    .out_data_o({w_last_o, w_strb_o, w_data_o}), .count_o()
  );

  assign aw_valid_o = addr_valid && whole_q != '0;
  assign w_valid_o  = beat_valid && sent_q != '0;
  assign stored     = w_valid_i && w_ready_o && w_last_i;
  assign sent       = aw_valid_o && aw_ready_i;
  assign left       = w_valid_o && w_ready_i && w_last_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      whole_q <= '0;
      sent_q  <= '0;
    end else begin
      if (stored != sent) whole_q <= stored ? whole_q + CountW'(1) : whole_q - CountW'(1);
      if (sent != left)   sent_q  <= sent ? sent_q + CountW'(1) : sent_q - CountW'(1);
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && sent_q != '0) begin
      SentIsWhole: assert (beat_valid)
        else $error("npu_write_buffer: the data of a burst that is sent is not here");
    end
  end
endmodule
