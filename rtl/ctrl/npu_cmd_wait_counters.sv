// SPDX-License-Identifier: Apache-2.0
/// How long the packet of a queue that has been taken waits for earlier ones.
///
/// Has a clock in every cycle, also while the rest of the command processor stands still. A cycle
/// counts for memory if both are waited for. Counts wrap.
module npu_cmd_wait_counters
  import npu_ctrl_pkg::*;
(
  input  logic       clk_i,

  input  logic       take_i,  // a new packet
  input  wait_now_t  now_i,
  output cmd_waits_t waits_o
);
  cmd_waits_t waits_q;

  always_ff @(posedge clk_i) begin
    if (take_i) begin
      waits_q <= '0;
    end else if (now_i.operand) begin
      waits_q.operand    <= waits_q.operand + 32'd1;
      waits_q.waited_for <= now_i.seq;
      waits_q.qid      <= now_i.qid;
    end else if (now_i.engine) begin
      waits_q.engine <= waits_q.engine + 32'd1;
    end
  end

  assign waits_o = waits_q;
endmodule
