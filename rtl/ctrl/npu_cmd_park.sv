// SPDX-License-Identifier: Apache-2.0
/// The packet that has passed its checks and was put aside, so that one of the other queue can be
/// checked.
///
/// `park_i` brings it in while `valid_o` is low. It starts as it would have from npu_cmd_issue,
/// whose ports have the same meaning here, and before the packet there. LOAD is never put aside.
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

  input  slot_t [QUEUES-1:0]     next_slot_i,
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
  output logic                   waits_for_start_o,
  output logic                   blocked_o,
  output slot_id_t               awaited_o,
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
  output logic                   waits_o
);
  typedef enum logic [1:0] {
    EMPTY,
    READY,
    SYNC_REQ,
    SYNC_WAIT
  } state_e;

  state_e                 state_q, state_d;
  packet_t                packet_q;
  npu_engine_cmd_t        cmd_q;
  queue_t                 queue_q;
  logic                   from_ring_q, is_sync, go;
  logic [NUM_ENGINES-1:0] engine;
  queue_slots_t           blocked_q, awaited;
  logic [63:0]            sync_cycle_q;
  flags_t                 flags;
  logic                   unused;

  assign is_sync = packet_q.opcode == OPCODE_SYNC;
  assign flags   = packet_q.flags;
  assign unused  = ^{flags, packet_q.src1, packet_q.src2, packet_q.param};

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

  always_comb begin
    for (int unsigned e = 0; e < NUM_ENGINES; e++) begin
      engine[e] = opcode_engine(packet_q.opcode) == engine_e'(e);
    end
  end

  assign blocked_o = awaited != '0;
  assign go        = state_q == READY && !drop_i && !blocked_o &&
                     (engine == '0 || (engine & engine_free_i) != '0);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      EMPTY:     if (park_i) state_d = READY;
      READY: begin
        if (drop_i)  state_d = EMPTY;
        else if (go) state_d = is_sync ? SYNC_REQ : EMPTY;
      end
      SYNC_REQ:  if (write_ready_i) state_d = SYNC_WAIT;
      SYNC_WAIT: if (write_done_i) state_d = EMPTY;
      default:   state_d = EMPTY;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= EMPTY;
    else         state_q <= state_d;
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
    if (go)      sync_cycle_q <= cycle_i;
  end

  assign write_valid_o     = state_q == SYNC_REQ;
  assign write_o.word      = 1'b1;
  assign write_o.addr      = packet_q.dst;
  assign write_o.data      = LINE_BITS'(packet_q.param[SYNC_VALUE]);

  assign valid_o           = state_q != EMPTY;
  assign waits_for_start_o = state_q == READY;
  assign queue_o           = queue_q;
  assign from_ring_o       = from_ring_q;
  assign irq_o             = flags.irq;
  assign opcode_o          = packet_q.opcode;
  assign cmd_o             = cmd_q;
  assign start_o           = go ? engine : '0;
  assign start_cycle_o     = state_q == SYNC_WAIT ? sync_cycle_q : cycle_i;
  assign push_o            = (go && !is_sync) || (state_q == SYNC_WAIT && write_done_i);
  assign ended_o           = engine == '0;
  assign error_o           = state_q == SYNC_WAIT && write_err_i ? ERROR_BUS_WRITE : ERROR_NONE;
  assign waits_o           = state_d == state_q && (state_q == EMPTY || state_q == READY);

  always_ff @(posedge clk_i) begin
    if (rst_ni && park_i) begin
      ParkedWhenEmpty: assert (!valid_o)
        else $error("npu_cmd_park: a packet is lost");
    end
  end
endmodule
