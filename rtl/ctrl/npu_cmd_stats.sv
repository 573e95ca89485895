// SPDX-License-Identifier: Apache-2.0
/// Times one command and builds its completion record.
///
/// Counts from `start_i` (the packet leaves the queue) up to and including the cycle of `finish_i`;
/// the record is stable afterwards until the next `start_i`. 32-bit counts wrap.
module npu_cmd_stats
  import npu_isa_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         start_i,
  input  logic         finish_i,
  input  perf_events_t events_i,
  input  logic [63:0]  cycle_i,

  input  logic [31:0]  seq_i,
  input  error_e       error_i,
  input  logic [31:0]  opcode_i,
  output completion_t  record_o
);
  logic        running_q;
  logic [63:0] start_cycle_q, end_cycle_q;
  logic [31:0] active_q, operand_stall_q, result_stall_q, read_beats_q, write_beats_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)       running_q <= 1'b0;
    else if (start_i)  running_q <= 1'b1;
    else if (finish_i) running_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      start_cycle_q   <= cycle_i;
      active_q        <= '0;
      operand_stall_q <= '0;
      result_stall_q  <= '0;
      read_beats_q    <= '0;
      write_beats_q   <= '0;
    end else if (running_q) begin
      if (finish_i)               end_cycle_q     <= cycle_i;
      if (events_i.active)        active_q        <= active_q + 32'd1;
      if (events_i.operand_stall) operand_stall_q <= operand_stall_q + 32'd1;
      if (events_i.result_stall)  result_stall_q  <= result_stall_q + 32'd1;
      if (events_i.read_beat)     read_beats_q    <= read_beats_q + 32'd1;
      if (events_i.write_beat)    write_beats_q   <= write_beats_q + 32'd1;
    end
  end

  always_comb begin
    record_o               = '0;
    record_o.seq           = seq_i;
    record_o.status        = 32'(error_i);
    record_o.start_cycle   = start_cycle_q;
    record_o.end_cycle     = end_cycle_q;
    record_o.active_cycles = active_q;
    record_o.operand_stall = operand_stall_q;
    record_o.result_stall  = result_stall_q;
    record_o.read_beats    = read_beats_q;
    record_o.write_beats   = write_beats_q;
    record_o.opcode        = opcode_i;
  end
endmodule
