// SPDX-License-Identifier: Apache-2.0
/// The commands from their start to their completion: engines, table, completion records.
///
/// `push_i` enters a command that starts, with `push_ended_i` one that has ended already, with
/// `push_error_i`. The other ports are those of npu_cmd_engines, npu_cmd_table and npu_cmd_retire.
module npu_cmd_flight
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   ctrl_clk_i,
  input  logic                   rst_ni,
  input  logic                   resume_i,
  input  logic [63:0]            cycle_i,

  // From npu_cmd_issue
  input  logic                   push_i,
  input  logic                   push_ended_i,
  input  error_e                 push_error_i,
  input  cmd_started_t           push_command_i,
  input  logic [NUM_ENGINES-1:0] start_i,
  input  npu_engine_cmd_t        cmd_i,
  input  logic                   issue_idle_i,
  output logic [NUM_ENGINES-1:0] free_o,
  output logic                   full_o,       // no packet can be taken now
  output logic                   stop_o,       // a command has failed
  output slot_t                  next_slot_o,
  output logic [31:0]            next_seq_o,

  // For npu_cmd_order
  output slots_t                 used_o,
  output slots_t                 unfinished_o,
  output slots_t                 may_fail_o,
  input  slot_t                  seq_slot_i,
  output logic [31:0]            seq_o,
  output logic [31:0]            opcode_o,

  // Engines
  output engine_req_t            req_o [NUM_ENGINES],
  input  engine_rsp_t            rsp_i [NUM_ENGINES],
  input  logic [NUM_ENGINES-1:0] read_beat_i,
  input  logic [NUM_ENGINES-1:0] write_beat_i,

  // Line writer
  input  ring_config_t           records_i,
  output logic                   write_valid_o,
  input  logic                   write_ready_i,
  output line_write_t            write_o,
  input  logic                   write_done_i,
  input  logic                   write_err_i,

  // Completion
  output logic                   retire_o,
  output logic                   retire_ring_o,
  output logic                   irq_wanted_o,
  output error_e                 error_o,
  output logic [31:0]            retire_seq_o,  // with retire_o
  output logic [31:0]            completed_o,
  output logic                   idle_o,        // nothing is on its way, or in ERROR
  output logic                   waits_o,       // another clock would change nothing
  output logic                   in_error_o
);
  logic         engine_end, engine_ending, ended_oldest, failed, failing, drained;
  logic         retire_idle, retire_waits, drop, table_full, loading;
  slot_t        end_slot;
  cmd_ended_t   engine_ended, ended, oldest_end;
  cmd_started_t oldest;

  npu_cmd_engines u_engines (
    .clk_i,
    .rst_ni,
    .start_i,
    .cmd_i,
    .slot_i    (next_slot_o),
    .free_o,
    .req_o,
    .rsp_i,
    .read_beat_i,
    .write_beat_i,
    .cycle_i,
    .hold_end_i(push_i && push_ended_i),
    .ending_o  (engine_ending),
    .end_o     (engine_end),
    .end_slot_o(end_slot),
    .ended_o   (engine_ended)
  );

  assign ended = engine_end ? engine_ended
                            : '{error: push_error_i, end_cycle: cycle_i, counts: '0};

  npu_cmd_table u_table (
    .clk_i         (ctrl_clk_i),
    .rst_ni,
    .flush_i       (drop),
    .push_i,
    .push_ended_i,
    .push_command_i,
    .next_o        (next_slot_o),
    .next_seq_o,
    .full_o        (table_full),
    .end_i         (engine_end),
    .end_slot_i    (end_slot),
    .ended_i       (ended),
    .used_o,
    .unfinished_o,
    .may_fail_o,
    .failed_o      (failed),
    .loading_o     (loading),
    .oldest_ended_o(ended_oldest),
    .oldest_o      (oldest),
    .oldest_end_o  (oldest_end),
    .pop_i         (retire_o),
    .seq_slot_i,
    .seq_o,
    .opcode_o
  );

  assign drained = unfinished_o == '0 && issue_idle_i;

  npu_cmd_retire u_retire (
    .clk_i    (ctrl_clk_i),
    .rst_ni,
    .resume_i,
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
    .error_o,
    .completed_o,
    .failing_o(failing),
    .flush_o  (drop),
    .idle_o   (retire_idle),
    .waits_o  (retire_waits),
    .in_error_o
  );

  assign full_o       = table_full || loading;
  assign stop_o       = failed || failing;
  assign retire_seq_o = oldest.seq;
  assign idle_o       = retire_idle && unfinished_o == '0 && (in_error_o || used_o == '0);
  assign waits_o      = retire_waits && !engine_ending;
endmodule
