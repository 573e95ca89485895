// SPDX-License-Identifier: Apache-2.0
/// The 64-bit event counters. `clear_i` zeroes all but the cycle count and wins over an event.
module npu_perf_counters
  import npu_ctrl_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         clear_i,
  input  logic         busy_i,     // the state is BUSY
  input  logic         command_i,  // a command has finished
  input  perf_events_t events_i,

  output logic [63:0]  cycle_o,
  output logic [63:0]  busy_o,
  output logic [63:0]  active_o,
  output logic [63:0]  operand_stall_o,
  output logic [63:0]  result_stall_o,
  output logic [63:0]  read_beats_o,
  output logic [63:0]  write_beats_o,
  output logic [63:0]  commands_o
);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) cycle_o <= '0;
    else         cycle_o <= cycle_o + 64'd1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      busy_o          <= '0;
      active_o        <= '0;
      operand_stall_o <= '0;
      result_stall_o  <= '0;
      read_beats_o    <= '0;
      write_beats_o   <= '0;
      commands_o      <= '0;
    end else begin
      if (busy_i)                 busy_o          <= busy_o + 64'd1;
      if (events_i.active)        active_o        <= active_o + 64'd1;
      if (events_i.operand_stall) operand_stall_o <= operand_stall_o + 64'd1;
      if (events_i.result_stall)  result_stall_o  <= result_stall_o + 64'd1;
      if (events_i.read_beat)     read_beats_o    <= read_beats_o + 64'd1;
      if (events_i.write_beat)    write_beats_o   <= write_beats_o + 64'd1;
      if (command_i)              commands_o      <= commands_o + 64'd1;
    end
  end
endmodule
