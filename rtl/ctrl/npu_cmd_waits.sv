// SPDX-License-Identifier: Apache-2.0
/// How long the command that is being checked, or has been, waits for earlier ones.
///
/// Has a clock in every cycle, also while the rest of the command processor stands still. A cycle
/// counts for memory if both are waited for. Counts wrap.
module npu_cmd_waits
  import npu_ctrl_pkg::*;
(
  input  logic        clk_i,

  input  logic        take_i,  // a new packet
  input  logic        operand_i,
  input  logic        engine_i,
  input  logic [31:0] seq_i,   // with operand_i: the last command that is waited for
  output cmd_waits_t  waits_o
);
  cmd_waits_t waits_q;

  always_ff @(posedge clk_i) begin
    if (take_i) begin
      waits_q <= '0;
    end else if (operand_i) begin
      waits_q.operand    <= waits_q.operand + 32'd1;
      waits_q.waited_for <= seq_i;
    end else if (engine_i) begin
      waits_q.engine <= waits_q.engine + 32'd1;
    end
  end

  assign waits_o = waits_q;
endmodule
