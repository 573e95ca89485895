// SPDX-License-Identifier: Apache-2.0
/// The earlier commands that a packet waits for, and the last one of them.
///
/// Combinational; one bit per slot of each queue's table. Before its checks have passed
/// (`checked_i`) a packet waits only for those that write a descriptor of it; then for those that
/// use memory of its operands, and for those of its own queue that may fail by their data. FENCE
/// and SYNC wait for the completion of all of their queue, LOAD for that of all. `last_o` is one of
/// its own queue, if any is.
module npu_cmd_awaited
  import npu_isa_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic [31:0]            opcode_i,
  input  queue_t                 queue_i,
  input  logic                   checked_i,
  input  cmd_slot_t [QUEUES-1:0] next_slot_i,  // where the next one of each queue will be
  input  queue_slots_t           used_i,
  input  queue_slots_t           may_fail_i,
  input  queue_slots_t           span_blocked_i,
  input  queue_slots_t           line_blocked_i,
  output queue_slots_t           awaited_o,
  output cmd_slot_id_t           last_o
);
  cmd_slot_t slot;

  always_comb begin
    awaited_o = span_blocked_i;
    if (!checked_i)                          awaited_o = line_blocked_i;
    else if (opcode_i == OPCODE_LOAD)        awaited_o = used_i;
    else if (opcode_waits_for_all(opcode_i)) awaited_o[queue_i] = used_i[queue_i];
    else                                     awaited_o[queue_i] |= may_fail_i[queue_i];
  end

  // From the oldest to the newest, the other queue's first.
  always_comb begin
    last_o = '{qid: queue_i, slot: next_slot_i[queue_i]};
    slot   = '0;
    if (awaited_o != '0) begin
      for (int unsigned i = 1; i <= CMD_SLOTS; i++) begin
        slot = next_slot_i[!queue_i] + cmd_slot_t'(i);
        if (awaited_o[!queue_i][slot]) last_o = '{qid: !queue_i, slot: slot};
      end
      for (int unsigned i = 1; i <= CMD_SLOTS; i++) begin
        slot = next_slot_i[queue_i] + cmd_slot_t'(i);
        if (awaited_o[queue_i][slot]) last_o = '{qid: queue_i, slot: slot};
      end
    end
  end
endmodule
