// SPDX-License-Identifier: Apache-2.0
/// The commands of one queue that have started and are not completed, in the order in which they
/// started.
///
/// `push_i` enters a command in slot `next_o`, with `push_ended_i` one that has ended already.
/// `end_i` marks the command of slot `end_slot_i` as ended; not in the same cycle as a push of an
/// ended one. `pop_i` removes the oldest, `flush_i` all; all must have ended, and
/// the numbers of those without `pop_i` are given back. `used_o` has a bit
/// for each slot with a command, `unfinished_o` for each whose command has not ended.
module npu_cmd_table
  import npu_isa_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         flush_i,

  input  logic         push_i,
  input  logic         push_ended_i,
  input  cmd_started_t push_command_i,
  output cmd_slot_t    next_o,
  output logic [31:0]  next_seq_o,  // sequence number of the next command
  output logic         full_o,

  input  logic         end_i,
  input  cmd_slot_t    end_slot_i,
  input  cmd_ended_t   ended_i,  // of end_i, or of a push of an ended command

  output cmd_slots_t   used_o,
  output cmd_slots_t   unfinished_o,
  output cmd_slots_t   may_fail_o,  // by its data, and has not ended
  output logic         failed_o,    // a command here has failed
  output logic         loading_o,   // a LOAD has not ended: the checks of others wait for it

  output logic         oldest_ended_o,
  output cmd_started_t oldest_o,
  output cmd_ended_t   oldest_end_o,
  input  logic         pop_i,

  // Of the command in that slot; two to look up
  input  cmd_slot_t [1:0]  look_slot_i,
  output logic [1:0][31:0] look_seq_o,
  output logic [1:0][31:0] look_opcode_o
);
  cmd_started_t [CMD_SLOTS-1:0] started_q;
  cmd_ended_t   [CMD_SLOTS-1:0] ended_q;
  cmd_slots_t                   used_q, unfinished_q, may_fail_q;
  cmd_slot_t                    head_q, tail_q;
  logic                         failed_q, loading_q, end_now;
  logic [31:0]                  next_seq_q;
  cmd_slot_t                    end_slot;

  assign end_now  = end_i || (push_i && push_ended_i);
  assign end_slot = end_i ? end_slot_i : tail_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || flush_i) begin
      used_q       <= '0;
      unfinished_q <= '0;
      may_fail_q   <= '0;
      head_q       <= '0;
      tail_q       <= '0;
      failed_q     <= 1'b0;
      loading_q    <= 1'b0;
    end else begin
      if (push_i) begin
        used_q[tail_q]       <= 1'b1;
        unfinished_q[tail_q] <= !push_ended_i;
        may_fail_q[tail_q]   <= !push_ended_i && opcode_fails_by_data(push_command_i.opcode);
        tail_q               <= tail_q + cmd_slot_t'(1);
      end
      // LOAD starts when all before it are completed: it is the only one that can end.
      if (push_i && !push_ended_i && push_command_i.opcode == OPCODE_LOAD) loading_q <= 1'b1;
      else if (end_now)                                                    loading_q <= 1'b0;
      if (end_now) begin
        unfinished_q[end_slot] <= 1'b0;
        may_fail_q[end_slot]   <= 1'b0;
        if (ended_i.error != ERROR_NONE) failed_q <= 1'b1;
      end
      if (pop_i) begin
        used_q[head_q] <= 1'b0;
        head_q         <= head_q + cmd_slot_t'(1);
      end
    end
  end

  // Commands behind one that failed give their numbers back.
  always_ff @(posedge clk_i) begin
    if (!rst_ni)                           next_seq_q <= '0;
    else if (flush_i && used_q[head_q])    next_seq_q <= started_q[head_q].seq + 32'(pop_i);
    else if (push_i)                       next_seq_q <= next_seq_q + 32'd1;
  end

  always_ff @(posedge clk_i) begin
    if (push_i)  started_q[tail_q]   <= push_command_i;
    if (end_now) ended_q[end_slot] <= ended_i;
  end

  assign next_o         = tail_q;
  assign full_o         = used_q == '1;
  assign unfinished_o   = unfinished_q;
  assign may_fail_o     = may_fail_q;
  assign failed_o       = failed_q;
  assign loading_o      = loading_q;
  assign used_o         = used_q;
  assign next_seq_o     = next_seq_q;
  assign oldest_ended_o = used_q[head_q] && !unfinished_q[head_q];
  assign oldest_o       = started_q[head_q];
  assign oldest_end_o   = ended_q[head_q];

  for (genvar i = 0; i < 2; i++) begin : gen_look
    assign look_seq_o[i]    = started_q[look_slot_i[i]].seq;
    assign look_opcode_o[i] = started_q[look_slot_i[i]].opcode;
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && push_i) begin
      RoomForPush: assert (!used_q[tail_q])
        else $error("npu_cmd_table: push into a full table");
    end
    if (rst_ni) begin
      OneEndAtATime: assert (!(end_i && push_i && push_ended_i))
        else $error("npu_cmd_table: two commands end in one cycle");
    end
    if (rst_ni && end_i) begin
      EndsOnce: assert (unfinished_q[end_slot_i])
        else $error("npu_cmd_table: the command of slot %0d has ended before", end_slot_i);
    end
  end
endmodule
