// SPDX-License-Identifier: Apache-2.0
/// Completes the commands of each queue in the order in which they started: completion record, then
/// report. The queues take turns.
///
/// `retire_o` pulses when the record of a queue's oldest command is acknowledged, in the cycle
/// after its end if it has none. A command that failed, or whose record did, is reported when
/// everything that has started has ended (`drained_i`), and the other queue's commands are
/// completed, or the oldest of them has failed as well; then that of the first queue is reported.
/// From then on the state is ERROR (`in_error_o`) until `resume_i`, and the commands behind it are
/// dropped (`flush_o`).
module npu_cmd_retire
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic                      resume_i,

  // The oldest command of each queue
  input  queues_t                   any_i,
  input  queues_t                   ended_i,
  input  cmd_started_t [QUEUES-1:0] command_i,
  input  cmd_ended_t   [QUEUES-1:0] end_i,
  input  logic                      drained_i,

  input  ring_config_t [QUEUES-1:0] records_i,
  output logic                      write_valid_o,
  input  logic                      write_ready_i,
  output line_write_t               write_o,
  input  logic                      write_done_i,
  input  logic                      write_err_i,

  output queues_t                   retire_o,
  output queues_t                   retire_ring_o,  // with retire_o: the packet came from the ring
  output logic                      irq_wanted_o,   // with retire_o: the command's IRQ flag
  output queue_t                    queue_o,        // with retire_o, and in ERROR
  output error_e                    error_o,        // with retire_o, and in ERROR
  output logic [31:0]               seq_o,          // with retire_o
  output logic [QUEUES-1:0][31:0]   completed_o,    // commands so far
  output logic                      failing_o,      // a record has failed
  output logic                      flush_o,
  output logic                      settled_o,      // another clock would change nothing
  output logic                      in_error_o
);
  typedef enum logic [1:0] {
    IDLE,
    RECORD,  // wait for the acknowledgement of the record
    RETIRE,
    ERROR
  } state_e;

  state_e                  state_q, state_d;
  error_e                  error_q, error_d;
  queue_t                  queue_q, queue_d;  // the last one that was served, or is
  queues_t                 record_bad_q, failing, ready;
  logic [QUEUES-1:0][31:0] completed_q;
  cmd_started_t            command;
  cmd_ended_t              ended;
  ring_config_t            records;
  completion_t             record;
  ring_index_t             record_slot;
  logic                    start, has_record;

  always_comb begin
    for (int unsigned q = 0; q < QUEUES; q++) begin
      failing[q] = ended_i[q] && (end_i[q].error != ERROR_NONE || record_bad_q[q]);
    end
    for (int unsigned q = 0; q < QUEUES; q++) begin
      ready[q] = ended_i[q];
      // An error comes last, and of two errors that of the first queue.
      if (failing[q]) ready[q] = drained_i && (!any_i[1-q] || (failing[1-q] && q == 0));
    end
  end

  assign queue_d    = (state_q != IDLE || ready == '0) ? queue_q
                                                       : (ready == '1) ? !queue_q : ready[1];
  assign command    = command_i[queue_d];
  assign ended      = end_i[queue_d];
  assign records    = records_i[queue_d];
  assign start      = state_q == IDLE && ready != '0;
  assign has_record = records.enable && !record_bad_q[queue_d];

  always_comb begin
    state_d = state_q;
    error_d = error_q;
    unique case (state_q)
      IDLE: if (start) begin
        error_d = record_bad_q[queue_d] ? ERROR_BUS_WRITE : ended.error;
        if (!has_record)        state_d = RETIRE;
        else if (write_ready_i) state_d = RECORD;
      end
      RECORD: if (write_done_i) state_d = (write_err_i && error_q == ERROR_NONE) ? IDLE : RETIRE;
      RETIRE: state_d = (error_q != ERROR_NONE) ? ERROR : IDLE;
      ERROR: if (resume_i) begin
        state_d = IDLE;
        error_d = ERROR_NONE;
      end
      default: state_d = IDLE;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= IDLE;
      error_q     <= ERROR_NONE;
      queue_q     <= 1'b0;
      completed_q <= '0;
    end else begin
      state_q <= state_d;
      error_q <= error_d;
      // A request that waits for the writer is that of another queue in the next cycle only if
      // that one has become ready.
      if (state_d != state_q) queue_q <= queue_d;
      if (retire_o != '0) completed_q[queue_q] <= completed_q[queue_q] + 32'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || flush_o) begin
      record_bad_q <= '0;
    end else if (state_q == RECORD && state_d == IDLE) begin
      record_bad_q[queue_q] <= 1'b1;
    end
  end

  always_comb begin
    record               = '0;
    record.seq           = command.seq;
    record.status        = 32'(ended.error);
    record.start_cycle   = command.start_cycle;
    record.end_cycle     = ended.end_cycle;
    record.active_cycles = ended.counts.active;
    record.operand_stall = ended.counts.operand_stall;
    record.result_stall  = ended.counts.result_stall;
    record.read_beats    = ended.counts.read_beats;
    record.write_beats   = ended.counts.write_beats;
    record.opcode        = command.opcode;
    record.engine_wait   = command.waits.engine;
    record.operand_wait  = command.waits.operand;
    record.waited_for    = command.waits.waited_for;
    record.waited_queue  = 32'(command.waits.qid);
  end

  assign record_slot   = command.seq[RING_INDEX_WIDTH-1:0] & index_mask(records.log2_entries);
  assign write_valid_o = start && has_record;
  assign write_o.word  = 1'b0;
  assign write_o.addr  = {records.base + LINE_ADDR_WIDTH'(record_slot),
                          {(ADDR_WIDTH - LINE_ADDR_WIDTH){1'b0}}};
  assign write_o.data  = record;

  always_comb begin
    retire_o          = '0;
    retire_o[queue_q] = state_q == RETIRE;
  end

  assign retire_ring_o = command.from_ring ? retire_o : '0;
  assign irq_wanted_o  = command.irq;
  assign queue_o       = queue_q;
  assign error_o       = error_q;
  assign seq_o         = command.seq;
  assign completed_o   = completed_q;
  assign failing_o     = record_bad_q != '0;
  assign flush_o       = state_q == RETIRE && error_q != ERROR_NONE;
  assign settled_o     = state_d == state_q && !write_valid_o &&
                         (state_q == IDLE || state_q == ERROR);
  assign in_error_o    = state_q == ERROR;
endmodule
