// SPDX-License-Identifier: Apache-2.0
/// From the queues to the start of a command: takes packets, checks them, starts the commands.
///
/// One packet is checked at a time; the queues take turns where both have one. A packet that waits
/// for its start is put aside (npu_cmd_park) when the other queue has a packet, so that no queue
/// waits for what the other one waits for. What is put aside starts first.
module npu_cmd_front
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
#(
  parameter logic [63:0] MemBase,
  parameter logic [63:0] MemLimit
) (
  input  logic                           clk_i,
  input  logic                           ctrl_clk_i,
  input  logic                           queue1_clk_i,
  input  logic                           rst_ni,
  input  logic                           hold_i,
  input  logic                           stop_i,
  input  logic [63:0]                    cycle_i,

  // From the queues
  input  queues_t                        cmd_valid_i,
  output queues_t                        cmd_ready_o,
  input  queued_packet_t [QUEUES-1:0]    cmd_i,

  output logic [31:0]                    program_line_o,
  input  program_info_t                  program_info_i,

  // Descriptors
  output logic                           desc_valid_o,
  input  logic                           desc_ready_i,
  output line_addr_t                     desc_addr_o,
  input  logic                           desc_line_valid_i,
  input  line_t                          line_i,
  input  logic                           line_err_i,

  // Words of SYNC; one at a time
  output logic                           write_valid_o,
  input  logic                           write_ready_i,
  output line_write_t                    write_o,
  input  logic                           write_done_i,
  input  logic                           write_err_i,

  // Commands that have started
  input  queues_t                        full_i,
  input  cmd_slot_t      [QUEUES-1:0]    next_slot_i,
  input  logic           [QUEUES-1:0][31:0] next_seq_i,
  input  queue_slots_t                   used_i,
  input  queue_slots_t                   unfinished_i,
  input  queue_slots_t                   may_fail_i,
  output cmd_slot_id_t   [1:0]           look_o,
  input  logic           [1:0][31:0]     look_seq_i,
  input  logic           [1:0][31:0]     look_opcode_i,
  output queues_t                        push_o,
  output queues_t                        push_ended_o,
  output error_e         [QUEUES-1:0]    push_error_o,
  output cmd_started_t   [QUEUES-1:0]    push_command_o,

  input  logic           [NUM_ENGINES-1:0] engine_free_i,
  output logic           [NUM_ENGINES-1:0] start_o,
  output queue_t                         start_queue_o,
  output logic                           start_parked_o,  // which of the two it is
  output npu_engine_cmd_t                checked_cmd_o,
  output npu_engine_cmd_t                parked_cmd_o,

  output logic           [NUM_ENGINES-1:0]  engine_wait_o,   // see engine_events_t
  output logic           [ENGINE_PAIRS-1:0] command_wait_o,
  output queues_t                        busy_o,   // a packet of it is here
  output logic                           idle_o,
  output logic                           settled_o  // another clock would change nothing
);
  // The two places of a packet, as indices
  localparam int unsigned Check = 0;
  localparam int unsigned Park  = 1;

  packet_t                packet;
  flags_t                 flags;
  queue_t                 turn, last_taken_q;
  queue_t [1:0]           owner;
  logic [1:0]             here, blocked, waiting, from_ring, irq, push, ended, settled;
  logic [1:0][31:0]       opcode, awaited_opcode;
  logic [1:0][63:0]       start_cycle;
  error_e [1:0]           error;
  logic [1:0][NUM_ENGINES-1:0] start;
  wait_now_t [1:0]        wait_now;
  cmd_waits_t [QUEUES-1:0] waited;
  queues_t                can_take;
  queue_slots_t           span_blocked, used, unfinished;
  error_e                 decode_error, resolve_error;
  logic                   unused_flags, take, park, park_ready, resolve_start, resolve_done;
  logic                   span_valid, line_valid, line_blocked, idle;
  logic [1:0]             sync_valid;
  line_write_t [1:0]      sync_write;
  span_t                  span;
  cmd_slots_t             parked_slot;

  assign flags        = packet.flags;
  assign unused_flags = ^flags;

  // Whose turn it is
  for (genvar q = 0; q < QUEUES; q++) begin : gen_take
    assign can_take[q]    = cmd_valid_i[q] && !full_i[q] &&
                            !(here[Park] && owner[Park] == queue_t'(q));
    assign cmd_ready_o[q] = take && turn == queue_t'(q);
  end

  assign turn       = (can_take == '1) ? !last_taken_q : can_take[1];
  assign park_ready = !here[Park] && can_take[!owner[Check]];

  always_ff @(posedge ctrl_clk_i) begin
    if (!rst_ni)   last_taken_q <= 1'b1;
    else if (take) last_taken_q <= turn;
  end

  // What has been put aside counts as started for those behind it.
  always_comb begin
    parked_slot = '0;
    parked_slot[next_slot_i[owner[Park]]] = here[Park];
    used       = used_i;
    unfinished = unfinished_i;
    used[owner[Park]]       |= parked_slot;
    unfinished[owner[Park]] |= parked_slot;
  end

  npu_cmd_check #(.MemBase(MemBase), .MemLimit(MemLimit)) u_cmd_check (
    .clk_i          (ctrl_clk_i),
    .rst_ni,
    .packet_i       (packet),
    .program_line_o,
    .program_info_i,
    .decode_error_o (decode_error),
    .resolve_start_i(resolve_start),
    .resolve_done_o (resolve_done),
    .resolve_error_o(resolve_error),
    .cmd_o          (checked_cmd_o),
    .span_valid_o   (span_valid),
    .span_o         (span),
    .req_valid_o    (line_valid),
    .req_ready_i    (desc_ready_i && !line_blocked),
    .req_addr_o     (desc_addr_o),
    .line_valid_i   (desc_line_valid_i),
    .line_i,
    .line_err_i
  );

  assign desc_valid_o = line_valid && !line_blocked;

  npu_cmd_order #(.MemBase(MemBase), .MemLimit(MemLimit)) u_cmd_order (
    .clk_i         (ctrl_clk_i),
    .queue1_clk_i,
    .rst_ni,
    .take_i        (take),
    .take_queue_i  (turn),
    .queue_i       (owner[Check]),
    .opcode_i      (packet.opcode),
    .next_slot_i,
    .span_valid_i  (span_valid),
    .span_i        (span),
    .line_valid_i  (line_valid),
    .line_addr_i   (desc_addr_o),
    .checked_i     (waiting[Check]),
    .used_i        (used),
    .unfinished_i  (unfinished),
    .may_fail_i,
    .blocked_o     (blocked[Check]),
    .line_blocked_o(line_blocked),
    .span_blocked_o(span_blocked),
    .awaited_o     (look_o[Check])
  );

  npu_cmd_issue u_cmd_issue (
    .clk_i          (ctrl_clk_i),
    .rst_ni,
    .cmd_valid_i    (can_take != '0),
    .cmd_i          (cmd_i[turn]),
    .hold_i,
    .stop_i,
    .park_ready_i   (park_ready),
    .park_o         (park),
    .packet_o       (packet),
    .decode_error_i (decode_error),
    .resolve_start_o(resolve_start),
    .resolve_done_i (resolve_done),
    .resolve_error_i(resolve_error),
    .blocked_i      (blocked[Check]),
    .engine_free_i,
    .grant_i        (start[Park] == '0),
    .cycle_i,
    .write_valid_o  (sync_valid[Check]),
    .write_ready_i  (write_ready_i && !sync_valid[Park]),
    .write_o        (sync_write[Check]),
    .write_done_i,
    .write_err_i,
    .take_o         (take),
    .start_o        (start[Check]),
    .start_cycle_o  (start_cycle[Check]),
    .push_o         (push[Check]),
    .ended_o        (ended[Check]),
    .error_o        (error[Check]),
    .here_o         (here[Check]),
    .queue_o        (owner[Check]),
    .from_ring_o    (from_ring[Check]),
    .waiting_o      (waiting[Check]),
    .engine_wait_o  (wait_now[Check].engine),
    .idle_o         (idle),
    .settled_o      (settled[Check])
  );

  npu_cmd_park u_cmd_park (
    .clk_i            (ctrl_clk_i),
    .rst_ni,
    .drop_i           (hold_i || stop_i),
    .park_i           (park),
    .queue_i          (owner[Check]),
    .from_ring_i      (from_ring[Check]),
    .packet_i         (packet),
    .cmd_i            (checked_cmd_o),
    .blocked_i        (span_blocked),
    .next_slot_i,
    .used_i,
    .unfinished_i,
    .may_fail_i,
    .engine_free_i,
    .cycle_i,
    .write_valid_o    (sync_valid[Park]),
    .write_ready_i,
    .write_o          (sync_write[Park]),
    .write_done_i,
    .write_err_i,
    .valid_o          (here[Park]),
    .waiting_o        (waiting[Park]),
    .engine_wait_o    (wait_now[Park].engine),
    .blocked_o        (blocked[Park]),
    .awaited_o        (look_o[Park]),
    .queue_o          (owner[Park]),
    .from_ring_o      (from_ring[Park]),
    .irq_o            (irq[Park]),
    .opcode_o         (opcode[Park]),
    .cmd_o            (parked_cmd_o),
    .start_o          (start[Park]),
    .start_cycle_o    (start_cycle[Park]),
    .push_o           (push[Park]),
    .ended_o          (ended[Park]),
    .error_o          (error[Park]),
    .settled_o        (settled[Park])
  );

  assign irq[Check]            = flags.irq;
  assign opcode[Check]         = packet.opcode;

  assign start_o        = start[Check] | start[Park];
  assign start_parked_o = start[Park] != '0;
  assign start_queue_o  = owner[start_parked_o ? Park : Check];

  assign write_valid_o = sync_valid != '0;
  assign write_o       = sync_write[sync_valid[Park] ? Park : Check];

  // Pushes: the two packets are of different queues.
  always_comb begin
    for (int unsigned q = 0; q < QUEUES; q++) begin
      automatic int unsigned p = here[Park] && owner[Park] == queue_t'(q) ? Park : Check;
      push_o[q]         = push[p] && owner[p] == queue_t'(q);
      push_ended_o[q]   = ended[p];
      push_error_o[q]   = error[p];
      push_command_o[q] = '{from_ring: from_ring[p], irq: irq[p], seq: next_seq_i[q],
                            opcode: opcode[p], start_cycle: start_cycle[p], waits: waited[q]};
    end
  end

  // Waiting
  for (genvar p = 0; p < 2; p++) begin : gen_wait
    // What has been put aside is not in the table yet.
    logic parked;
    assign parked = here[Park] && look_o[p].qid == owner[Park] &&
                    look_o[p].slot == next_slot_i[owner[Park]];
    assign awaited_opcode[p]   = parked ? opcode[Park] : look_opcode_i[p];
    assign wait_now[p].seq     = parked ? next_seq_i[owner[Park]] : look_seq_i[p];
    assign wait_now[p].qid     = look_o[p].qid;
    assign wait_now[p].operand = blocked[p] && (waiting[p] || (p == Check && line_valid));
  end

  for (genvar q = 0; q < QUEUES; q++) begin : gen_waits
    wait_now_t now;
    assign now = here[Park] && owner[Park] == queue_t'(q) ? wait_now[Park]
               : owner[Check] == queue_t'(q)              ? wait_now[Check] : '0;

    npu_cmd_wait_counters u_cmd_wait_counters (
      .clk_i, .take_i(take && turn == queue_t'(q)), .now_i(now), .waits_o(waited[q])
    );
    assign busy_o[q] = (here[Park] && owner[Park] == queue_t'(q))
                    || (here[Check] && owner[Check] == queue_t'(q));
  end

  always_comb begin
    engine_wait_o  = '0;
    command_wait_o = '0;
    for (int unsigned p = 0; p < 2; p++) begin
      for (int unsigned e = 0; e < NUM_ENGINES; e++) begin
        if (wait_now[p].engine && opcode_engine(opcode[p]) == engine_e'(e)) engine_wait_o[e] = 1'b1;
      end
      if (wait_now[p].operand) command_wait_o |= wait_pair(opcode[p], awaited_opcode[p]);
    end
  end

  assign idle_o  = idle && !here[Park];
  assign settled_o = settled == '1;

  always_ff @(posedge ctrl_clk_i) begin
    if (rst_ni && here == '1) begin
      DifferentQueues: assert (owner[Check] != owner[Park])
        else $error("npu_cmd_front: two packets of one queue");
    end
  end
endmodule
