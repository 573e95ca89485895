// SPDX-License-Identifier: Apache-2.0
/// What the packet that is being checked has to wait for.
///
/// `blocked_o`: an earlier command that has not ended is in its way, see npu_hazard and
/// npu_cmd_awaited. `line_blocked_o` is that for its descriptor at `line_addr_i`. `span_blocked_o`
/// is what npu_hazard says, for a packet that is put aside.
module npu_cmd_order
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
#(
  parameter logic [63:0] MemBase,
  parameter logic [63:0] MemLimit
) (
  input  logic               clk_i,
  input  logic               queue1_clk_i,
  input  logic               rst_ni,

  // The packet
  input  logic                   take_i,
  input  queue_t                 take_queue_i,
  input  queue_t                 queue_i,
  input  logic [31:0]            opcode_i,
  input  cmd_slot_t [QUEUES-1:0] next_slot_i,  // that of its queue will be its own
  input  logic                   span_valid_i,
  input  span_t                  span_i,
  input  logic                   line_valid_i,
  input  line_addr_t             line_addr_i,
  input  logic                   checked_i,

  // The commands before it: started, or put aside
  input  queue_slots_t       used_i,
  input  queue_slots_t       unfinished_i,
  input  queue_slots_t       may_fail_i,

  output logic               blocked_o,
  output logic               line_blocked_o,
  output queue_slots_t       span_blocked_o,
  output cmd_slot_id_t       awaited_o  // the last one that it waits for
);
  queue_slots_t line_blocked, awaited;
  queues_t      hazard_clk;

  assign hazard_clk = {queue1_clk_i, clk_i};

  for (genvar q = 0; q < QUEUES; q++) begin : gen_queue
    npu_hazard #(.MemBase(MemBase), .MemLimit(MemLimit)) u_hazard (
      .clk_i         (hazard_clk[q]),
      .rst_ni,
      .take_i,
      .take_own_i    (take_i && take_queue_i == queue_t'(q)),
      .own_i         (queue_i == queue_t'(q)),
      .slot_i        (next_slot_i[q]),
      .span_valid_i,
      .span_i,
      .unfinished_i  (unfinished_i[q]),
      .blocked_o     (span_blocked_o[q]),
      .line_valid_i,
      .line_addr_i,
      .line_blocked_o(line_blocked[q])
    );
  end

  npu_cmd_awaited u_cmd_awaited (
    .opcode_i,
    .queue_i,
    .checked_i,
    .next_slot_i,
    .used_i,
    .may_fail_i,
    .span_blocked_i(span_blocked_o),
    .line_blocked_i(line_blocked),
    .awaited_o     (awaited),
    .last_o        (awaited_o)
  );

  assign blocked_o      = awaited != '0;
  assign line_blocked_o = line_blocked != '0;
endmodule
