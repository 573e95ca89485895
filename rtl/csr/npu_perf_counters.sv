// SPDX-License-Identifier: Apache-2.0
/// The 64-bit event counters. `clear_i` zeroes all but the cycle count and wins over an event.
///
/// The registers read `counts_o`, a copy that is made with `read_clk_i`, a gate of `clk_i`: after a
/// cycle in which that gate was open the copy is equal to the counters. They count on in every
/// cycle, the wide multiplexer behind the copy rests while nobody reads.
module npu_perf_counters
  import npu_ctrl_pkg::*;
(
  input  logic         clk_i,
  input  logic         read_clk_i,
  input  logic         rst_ni,

  input  logic         clear_i,
  input  logic         busy_i,     // the state is BUSY
  input  logic         command_i,  // a command has finished
  input  perf_events_t events_i,

  output logic [63:0]  cycle_o,    // of the counter itself
  output perf_counts_t counts_o
);
  perf_counts_t counts_q, counts_d;

  always_comb begin
    counts_d = counts_q;
    if (busy_i)                 counts_d.busy          += 64'd1;
    if (events_i.active)        counts_d.active        += 64'd1;
    if (events_i.operand_stall) counts_d.operand_stall += 64'd1;
    if (events_i.result_stall)  counts_d.result_stall  += 64'd1;
    if (events_i.read_beat)     counts_d.read_beats    += 64'd1;
    if (events_i.write_beat)    counts_d.write_beats   += 64'd1;
    if (command_i)              counts_d.commands      += 64'd1;
    if (!rst_ni || clear_i)     counts_d                = '0;
    counts_d.cycle = rst_ni ? counts_q.cycle + 64'd1 : '0;
  end

  always_ff @(posedge clk_i)      counts_q <= counts_d;
  always_ff @(posedge read_clk_i) counts_o <= counts_d;

  assign cycle_o = counts_q.cycle;
endmodule
