// SPDX-License-Identifier: Apache-2.0
/// Completes the commands in the order in which they started: completion record, then report.
///
/// `retire_o` pulses when the record of the oldest command is acknowledged, in the cycle after its
/// end if it has none. A command that failed, or whose record did, is reported once every command
/// behind it has ended (`drained_i`); from then on the state is ERROR (`in_error_o`) until
/// `resume_i`, and the commands behind it are dropped (`flush_o`).
module npu_cmd_retire
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  resume_i,

  // The oldest command
  input  logic                  ended_i,
  input  cmd_started_t          command_i,
  input  cmd_ended_t            end_i,
  input  logic                  drained_i,

  input  ring_config_t          records_i,
  output logic                  write_valid_o,
  input  logic                  write_ready_i,
  output line_write_t           write_o,
  input  logic                  write_done_i,
  input  logic                  write_err_i,

  output logic                  retire_o,
  output logic                  retire_ring_o,  // with retire_o: the packet came from the ring
  output logic                  irq_wanted_o,   // with retire_o: the command's IRQ flag
  output error_e                error_o,      // with retire_o, and in ERROR
  output logic [31:0]           completed_o,  // commands so far
  output logic                  failing_o,    // the oldest command's record has failed
  output logic                  flush_o,
  output logic                  idle_o,       // nothing is under way here
  output logic                  waits_o,      // another clock would change nothing
  output logic                  in_error_o
);
  typedef enum logic [2:0] {
    IDLE,
    RECORD,  // wait for the acknowledgement of the record
    DRAIN,   // a command failed: wait for those behind it
    RETIRE,
    ERROR
  } state_e;

  state_e      state_q, state_d;
  error_e      error_q, error_d;
  logic [31:0] completed_q;
  completion_t record;
  index_t      record_slot;

  always_comb begin
    state_d = state_q;
    error_d = error_q;
    unique case (state_q)
      IDLE: if (ended_i) begin
        error_d = end_i.error;
        if (!records_i.enable)  state_d = (error_d == ERROR_NONE) ? RETIRE : DRAIN;
        else if (write_ready_i) state_d = RECORD;
      end
      RECORD: if (write_done_i) begin
        if (write_err_i && error_q == ERROR_NONE) error_d = ERROR_BUS_WRITE;
        state_d = (error_d == ERROR_NONE) ? RETIRE : DRAIN;
      end
      DRAIN:  if (drained_i) state_d = RETIRE;
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
      completed_q <= '0;
    end else begin
      state_q <= state_d;
      error_q <= error_d;
      if (retire_o) completed_q <= completed_q + 32'd1;
    end
  end

  always_comb begin
    record               = '0;
    record.seq           = command_i.seq;
    record.status        = 32'(end_i.error);
    record.start_cycle   = command_i.start_cycle;
    record.end_cycle     = end_i.end_cycle;
    record.active_cycles = end_i.counts.active;
    record.operand_stall = end_i.counts.operand_stall;
    record.result_stall  = end_i.counts.result_stall;
    record.read_beats    = end_i.counts.read_beats;
    record.write_beats   = end_i.counts.write_beats;
    record.opcode        = command_i.opcode;
    record.engine_wait   = command_i.waits.engine;
    record.operand_wait  = command_i.waits.operand;
    record.waited_for    = command_i.waits.waited_for;
  end

  assign record_slot   = command_i.seq[INDEX_WIDTH-1:0] & index_mask(records_i.log2_entries);
  assign write_valid_o = state_q == IDLE && ended_i && records_i.enable;
  assign write_o.word  = 1'b0;
  assign write_o.addr  = {records_i.base + LINE_ADDR_WIDTH'(record_slot),
                          {(ADDR_WIDTH - LINE_ADDR_WIDTH){1'b0}}};
  assign write_o.data  = record;

  assign retire_o      = state_q == RETIRE;
  assign retire_ring_o = retire_o && command_i.from_ring;
  assign irq_wanted_o  = command_i.irq;
  assign error_o       = error_q;
  assign completed_o   = completed_q;
  assign failing_o     = error_q != ERROR_NONE;
  assign flush_o       = retire_o && error_q != ERROR_NONE;
  assign idle_o        = (state_q == IDLE && !ended_i) || state_q == ERROR;
  assign waits_o       = state_d == state_q && !write_valid_o &&
                         (state_q == IDLE || state_q == DRAIN || state_q == ERROR);
  assign in_error_o    = state_q == ERROR;
endmodule
