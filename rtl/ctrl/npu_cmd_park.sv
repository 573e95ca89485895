// SPDX-License-Identifier: Apache-2.0
/// The packet that has passed its checks and was put aside, so that one of the other queue can be
/// checked.
///
/// `park_i` brings it in while `valid_o` is low. It starts as npu_cmd_start says, whose ports
/// have the same meaning here, and before the packet in npu_cmd_issue. LOAD is never put aside.
module npu_cmd_park
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   drop_i,

  input  logic                   park_i,
  input  queue_t                 queue_i,
  input  logic                   from_ring_i,
  input  packet_t                packet_i,
  input  npu_engine_cmd_t        cmd_i,
  input  queue_slots_t           blocked_i,  // by npu_hazard

  input  cmd_slot_t [QUEUES-1:0] next_slot_i,
  input  queue_slots_t           used_i,
  input  queue_slots_t           unfinished_i,
  input  queue_slots_t           may_fail_i,
  input  logic [NUM_ENGINES-1:0] engine_free_i,
  input  logic [63:0]            cycle_i,

  output logic                   write_valid_o,
  input  logic                   write_ready_i,
  output line_write_t            write_o,
  input  logic                   write_done_i,
  input  logic                   write_err_i,

  output logic                   valid_o,   // a packet is here
  output logic                   waiting_o,
  output logic                   engine_wait_o,
  output logic                   blocked_o,
  output cmd_slot_id_t           awaited_o,
  output queue_t                 queue_o,
  output logic                   from_ring_o,
  output logic                   irq_o,
  output logic [31:0]            opcode_o,
  output npu_engine_cmd_t        cmd_o,
  output logic [NUM_ENGINES-1:0] start_o,
  output logic [63:0]            start_cycle_o,
  output logic                   push_o,
  output logic                   ended_o,
  output error_e                 error_o,
  output logic                   settled_o
);
  logic            valid_q, go;
  packet_t         packet_q;
  npu_engine_cmd_t cmd_q;
  queue_t          queue_q;
  logic            from_ring_q;
  queue_slots_t    blocked_q, awaited;
  flags_t          flags;
  logic            unused;

  assign flags  = packet_q.flags;
  assign unused = ^{flags, packet_q.src1, packet_q.src2, packet_q.param};

  npu_cmd_awaited u_cmd_awaited (
    .opcode_i      (packet_q.opcode),
    .queue_i       (queue_q),
    .checked_i     (1'b1),
    .next_slot_i,
    .used_i,
    .may_fail_i,
    .span_blocked_i(blocked_q & unfinished_i),
    .line_blocked_i('0),
    .awaited_o     (awaited),
    .last_o        (awaited_o)
  );

  assign blocked_o = awaited != '0;

  npu_cmd_start u_cmd_start (
    .clk_i,
    .rst_ni,
    .ready_i       (valid_q),
    .drop_i,
    .opcode_i      (packet_q.opcode),
    .dst_i         (packet_q.dst),
    .value_i       (packet_q.param[SYNC_VALUE]),
    .blocked_i     (blocked_o),
    .engine_free_i,
    .grant_i       (1'b1),
    .cycle_i,
    .write_valid_o,
    .write_ready_i,
    .write_o,
    .write_done_i,
    .write_err_i,
    .waiting_o,
    .engine_wait_o,
    .go_o          (go),
    .start_o,
    .start_cycle_o,
    .push_o,
    .ended_o,
    .error_o
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni)                              valid_q <= 1'b0;
    else if (park_i)                          valid_q <= 1'b1;
    else if (push_o || (drop_i && waiting_o)) valid_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (park_i) begin
      packet_q    <= packet_i;
      cmd_q       <= cmd_i;
      queue_q     <= queue_i;
      from_ring_q <= from_ring_i;
      blocked_q   <= blocked_i;
    end else begin
      blocked_q <= blocked_q & unfinished_i;
    end
    if (!rst_ni) queue_q <= 1'b0;
  end

  assign valid_o     = valid_q;
  assign queue_o     = queue_q;
  assign from_ring_o = from_ring_q;
  assign irq_o       = flags.irq;
  assign opcode_o    = packet_q.opcode;
  assign cmd_o       = cmd_q;
  assign settled_o   = valid_q ? waiting_o && !go && !drop_i : !park_i;

  always_ff @(posedge clk_i) begin
    if (rst_ni && park_i) begin
      ParkedWhenEmpty: assert (!valid_o)
        else $error("npu_cmd_park: a packet is lost");
    end
  end
endmodule
