// SPDX-License-Identifier: Apache-2.0
/// The commands from their start to their completion: engines, table, completion records.
///
/// Vectors have one element per queue. `push_i` enters a command that starts, with `push_ended_i`
/// one that has ended already, with `push_error_i`. The other ports are those of npu_cmd_engines,
/// npu_cmd_table and npu_cmd_retire.
module npu_cmd_inflight
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic                   ctrl_clk_i,
  input  logic                   queue1_clk_i,
  input  logic                   rst_ni,
  input  logic                   resume_i,
  input  logic [63:0]            cycle_i,

  // From npu_cmd_front
  input  queues_t                   push_i,
  input  queues_t                   push_ended_i,
  input  error_e [QUEUES-1:0]       push_error_i,
  input  cmd_started_t [QUEUES-1:0] push_command_i,
  input  logic [NUM_ENGINES-1:0]    start_i,
  input  queue_t                    start_queue_i,
  input  logic                      parked_i,  // which of the two it is
  input  npu_engine_cmd_t           checked_cmd_i,
  input  npu_engine_cmd_t           parked_cmd_i,
  input  logic                      front_idle_i,
  output logic [NUM_ENGINES-1:0]    free_o,
  output logic [NUM_ENGINES-1:0]    busy_o,
  output queues_t                   full_o,    // no packet can be taken now
  output logic                      stop_o,    // a command has failed
  output cmd_slot_t [QUEUES-1:0]    next_slot_o,
  output logic [QUEUES-1:0][31:0]   next_seq_o,

  // For npu_cmd_front
  output queue_slots_t       used_o,
  output queue_slots_t       unfinished_o,
  output queue_slots_t       may_fail_o,
  input  cmd_slot_id_t [1:0] look_i,  // two commands to look up
  output logic [1:0][31:0]   look_seq_o,
  output logic [1:0][31:0]   look_opcode_o,

  // Channels of the engines
  input  logic                   engine_clk_i [NUM_CHANNELS],
  output logic [NUM_CHANNELS-1:0] on_o,  // has a command, or takes one
  output engine_req_t            req_o [NUM_CHANNELS],
  input  engine_rsp_t            rsp_i [NUM_CHANNELS],
  input  logic [NUM_CHANNELS-1:0] read_beat_i,
  input  logic [NUM_CHANNELS-1:0] write_beat_i,

  // Line writer
  input  ring_config_t [QUEUES-1:0] records_i,
  output logic                   write_valid_o,
  input  logic                   write_ready_i,
  output line_write_t            write_o,
  input  logic                   write_done_i,
  input  logic                   write_err_i,

  // Completion
  output queues_t                retire_o,
  output queues_t                retire_ring_o,
  output logic                   irq_wanted_o,
  output queue_t                 error_queue_o,
  output error_e                 error_o,
  output logic [31:0]            retire_seq_o,  // with retire_o
  output logic [QUEUES-1:0][31:0] completed_o,
  output logic                   idle_o,        // nothing is on its way
  output logic                   settled_o,     // another clock would change nothing
  output logic                   in_error_o
);
  logic         engine_end, engine_ending, failing, drained, retire_settled, drop;
  queues_t      ended_oldest, failed, table_full, loading, any, table_clk;
  cmd_slot_id_t end_place;
  cmd_ended_t   engine_ended;
  cmd_ended_t   [QUEUES-1:0] oldest_end;
  cmd_started_t [QUEUES-1:0] oldest;
  logic [QUEUES-1:0][1:0][31:0] seen_seq, seen_opcode;

  npu_cmd_engines u_engines (
    .rst_ni,
    .start_i,
    .parked_i,
    .checked_cmd_i,
    .parked_cmd_i,
    .place_i   ('{qid: start_queue_i, slot: next_slot_o[start_queue_i]}),
    .free_o,
    .busy_o,
    .engine_clk_i,
    .on_o,
    .req_o,
    .rsp_i,
    .read_beat_i,
    .write_beat_i,
    .cycle_i,
    .hold_end_i((push_i & push_ended_i) != '0),
    .ending_o  (engine_ending),
    .end_o     (engine_end),
    .end_place_o(end_place),
    .ended_o   (engine_ended)
  );

  assign table_clk = {queue1_clk_i, ctrl_clk_i};

  for (genvar q = 0; q < QUEUES; q++) begin : gen_queue
    logic       end_here;
    cmd_ended_t ended;

    assign end_here = engine_end && end_place.qid == queue_t'(q);
    assign ended    = end_here ? engine_ended
                               : '{error: push_error_i[q], end_cycle: cycle_i, counts: '0};

    npu_cmd_table u_table (
      .clk_i         (table_clk[q]),
      .rst_ni,
      .flush_i       (drop),
      .push_i        (push_i[q]),
      .push_ended_i  (push_ended_i[q]),
      .push_command_i(push_command_i[q]),
      .next_o        (next_slot_o[q]),
      .next_seq_o    (next_seq_o[q]),
      .full_o        (table_full[q]),
      .end_i         (end_here),
      .end_slot_i    (end_place.slot),
      .ended_i       (ended),
      .used_o        (used_o[q]),
      .unfinished_o  (unfinished_o[q]),
      .may_fail_o    (may_fail_o[q]),
      .failed_o      (failed[q]),
      .loading_o     (loading[q]),
      .oldest_ended_o(ended_oldest[q]),
      .oldest_o      (oldest[q]),
      .oldest_end_o  (oldest_end[q]),
      .pop_i         (retire_o[q]),
      .look_slot_i   ({look_i[1].slot, look_i[0].slot}),
      .look_seq_o    (seen_seq[q]),
      .look_opcode_o (seen_opcode[q])
    );

    assign any[q] = used_o[q] != '0;
  end

  for (genvar i = 0; i < 2; i++) begin : gen_look
    assign look_seq_o[i]    = seen_seq[look_i[i].qid][i];
    assign look_opcode_o[i] = seen_opcode[look_i[i].qid][i];
  end

  assign drained = unfinished_o == '0 && front_idle_i;

  npu_cmd_retire u_retire (
    .clk_i    (ctrl_clk_i),
    .rst_ni,
    .resume_i,
    .any_i    (any),
    .ended_i  (ended_oldest),
    .command_i(oldest),
    .end_i    (oldest_end),
    .drained_i(drained),
    .records_i,
    .write_valid_o,
    .write_ready_i,
    .write_o,
    .write_done_i,
    .write_err_i,
    .retire_o,
    .retire_ring_o,
    .irq_wanted_o,
    .queue_o  (error_queue_o),
    .error_o,
    .seq_o    (retire_seq_o),
    .completed_o,
    .failing_o(failing),
    .flush_o  (drop),
    .settled_o(retire_settled),
    .in_error_o
  );

  // While a LOAD runs, nothing of either queue is taken.
  assign full_o  = table_full | {QUEUES{loading != '0}};
  assign stop_o  = failed != '0 || failing;
  assign idle_o  = used_o == '0;
  assign settled_o = retire_settled && !engine_ending;
endmodule
