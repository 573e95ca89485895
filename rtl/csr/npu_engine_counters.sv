// SPDX-License-Identifier: Apache-2.0
/// How long each engine had a command, and how long commands waited for it and for each other.
///
/// `clear_i` zeroes all and wins over an event. The registers read `counts_o`, a copy that is made
/// with `read_clk_i`, as in npu_perf_counters. Without an event the counters have no clock.
module npu_engine_counters
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic           clk_i,
  input  logic           read_clk_i,
  input  logic           rst_ni,

  input  logic           clear_i,
  input  engine_events_t events_i,
  output engine_counts_t counts_o
);
  engine_counts_t counts_q;
  logic           clear, count_clk;

  assign clear = !rst_ni || clear_i;

  npu_clock_gate u_gate (.clk_i, .en_i(clear || events_i != '0), .clk_o(count_clk));

  always_ff @(posedge count_clk) begin
    if (clear) begin
      counts_q <= '0;
    end else begin
      for (int unsigned e = 0; e < NUM_ENGINES; e++) begin
        if (events_i.busy[e])        counts_q.busy[e]        <= counts_q.busy[e] + 32'd1;
        if (events_i.engine_wait[e]) counts_q.engine_wait[e] <= counts_q.engine_wait[e] + 32'd1;
      end
      for (int unsigned i = 0; i < ENGINE_PAIRS; i++) begin
        if (events_i.command_wait[i]) counts_q.command_wait[i] <= counts_q.command_wait[i] + 32'd1;
      end
    end
  end

  // One cycle behind: the registers have a clock long enough before they answer.
  always_ff @(posedge read_clk_i) counts_o <= counts_q;
endmodule
