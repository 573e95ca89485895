// SPDX-License-Identifier: Apache-2.0
/// The earlier commands that the packet that is being checked waits for, and the last one of them.
///
/// Combinational; one bit per slot. Before its checks have passed (`checked_i`) a packet waits only
/// for those that write a descriptor of it; then for those that use memory of its operands and for
/// those that may fail by their data; FENCE and SYNC for the completion of all.
module npu_cmd_awaited
  import npu_ctrl_pkg::*;
(
  input  logic [31:0] opcode_i,
  input  logic        checked_i,
  input  slot_t       next_slot_i,  // where the packet will be: the others are before it
  input  slots_t      used_i,
  input  slots_t      may_fail_i,
  input  slots_t      span_blocked_i,
  input  slots_t      line_blocked_i,
  output slots_t      awaited_o,
  output slot_t       last_o
);
  slot_t slot;

  always_comb begin
    if (!checked_i)                          awaited_o = line_blocked_i;
    else if (opcode_waits_for_all(opcode_i)) awaited_o = used_i;
    else                                     awaited_o = span_blocked_i | may_fail_i;
  end

  // From the oldest to the newest.
  always_comb begin
    last_o = next_slot_i;
    slot   = next_slot_i;
    if (awaited_o != '0) begin
      for (int unsigned i = 0; i < CMD_SLOTS; i++) begin
        slot = next_slot_i + slot_t'(i);
        if (awaited_o[slot]) last_o = slot;
      end
    end
  end
endmodule
