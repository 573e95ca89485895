// SPDX-License-Identifier: Apache-2.0
/// What the packet that is being checked has to wait for, and how long it does.
///
/// `blocked_o`: an earlier command that has not ended is in its way, see npu_hazard and
/// npu_cmd_awaited. `line_blocked_o` is that for its descriptor at `line_addr_i`. `waits_o` are the
/// waits of the packet so far; they are counted with `clk_i`, which runs when `ctrl_clk_i` stands.
module npu_cmd_order
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
#(
  parameter logic [63:0] MemBase  = 64'h0000_0000,
  parameter logic [63:0] MemLimit = 64'h2000_0000
) (
  input  logic        clk_i,
  input  logic        ctrl_clk_i,
  input  logic        rst_ni,

  // The packet
  input  logic        take_i,
  input  logic [31:0] opcode_i,
  input  slot_t       slot_i,        // that it will have
  input  logic        span_valid_i,
  input  span_t       span_i,
  input  logic        line_valid_i,
  input  line_addr_t  line_addr_i,
  input  logic        checked_i,
  input  logic        start_i,

  // The commands before it
  input  slots_t      used_i,
  input  slots_t      unfinished_i,
  input  slots_t      may_fail_i,
  output slot_t       awaited_o,     // the last one that it waits for
  input  logic [31:0] awaited_seq_i,
  input  logic [31:0] awaited_opcode_i,

  output logic        blocked_o,
  output logic        line_blocked_o,
  output cmd_waits_t  waits_o,
  output logic        engine_wait_o,  // in this cycle it waits for its engine
  output logic [ENGINE_PAIRS-1:0] command_wait_o  // for which of the engines' commands it waits
);
  slots_t span_blocked, line_blocked, awaited;
  logic   operand_wait;

  npu_hazard #(.MemBase(MemBase), .MemLimit(MemLimit)) u_hazard (
    .clk_i         (ctrl_clk_i),
    .rst_ni,
    .take_i,
    .slot_i,
    .span_valid_i,
    .span_i,
    .unfinished_i,
    .blocked_o     (span_blocked),
    .line_valid_i,
    .line_addr_i,
    .line_blocked_o(line_blocked)
  );

  npu_cmd_awaited u_cmd_awaited (
    .opcode_i,
    .checked_i,
    .next_slot_i   (slot_i),
    .used_i,
    .may_fail_i,
    .span_blocked_i(span_blocked),
    .line_blocked_i(line_blocked),
    .awaited_o     (awaited),
    .last_o        (awaited_o)
  );

  assign blocked_o      = awaited != '0;
  assign line_blocked_o = line_blocked != '0;

  assign operand_wait   = blocked_o && (checked_i || line_valid_i);
  assign engine_wait_o  = checked_i && !blocked_o && !start_i;
  assign command_wait_o = operand_wait ? wait_pair(opcode_i, awaited_opcode_i) : '0;

  npu_cmd_waits u_cmd_waits (
    .clk_i,
    .take_i,
    .operand_i(operand_wait),
    .engine_i (engine_wait_o),
    .seq_i    (awaited_seq_i),
    .waits_o
  );
endmodule
