// SPDX-License-Identifier: Apache-2.0
/// Runs one command after the other: check, dispatch, wait, write the completion record, report.
///
/// `start_o` pulses when a packet leaves the queue, `finish_o` when its last write is acknowledged;
/// the record is written after that, and `retire_o` follows the record's acknowledgement. A failed
/// command is retired like any other, then the state is ERROR (`in_error_o`) until `resume_i`.
/// `hold_i` keeps the next command in the queue. `idle_o`: between commands, or in ERROR. FENCE and
/// NOP need no work: every earlier command has had its writes acknowledged.
module npu_cmd_exec
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // From the queue
  input  logic                   cmd_valid_i,
  output logic                   cmd_ready_o,
  input  queued_packet_t         cmd_i,
  input  logic                   hold_i,
  input  logic                   resume_i,

  // Checks
  output packet_t                packet_o,  // stable from start to retire
  input  error_e                 decode_error_i,
  output logic                   resolve_start_o,
  input  logic                   resolve_done_i,
  input  error_e                 resolve_error_i,

  // Engines; valid is one bit per engine
  output logic [NUM_ENGINES-1:0] engine_valid_o,
  input  engine_rsp_t            engine_rsp_i [NUM_ENGINES],

  // Line writer: SYNC's word, completion records
  input  logic                   record_enable_i,
  input  logic [ADDR_WIDTH-1:0]  record_addr_i,
  input  line_t                  record_i,
  output logic                   write_valid_o,
  input  logic                   write_ready_i,
  output line_write_t            write_o,
  input  logic                   write_done_i,
  input  logic                   write_err_i,

  // Progress
  output logic                   start_o,
  output logic                   finish_o,
  output logic                   retire_o,
  output logic                   retire_ring_o,  // with retire_o: the packet came from the ring
  output error_e                 error_o,        // of the command that runs or stopped the queue
  output logic [31:0]            seq_o,          // of the command that runs, or runs next
  output logic                   idle_o,
  output logic                   waits_o,   // another clock would change nothing
  output logic                   in_error_o
);
  typedef enum logic [3:0] {
    IDLE,
    DECODE,       // the packet's own words
    RESOLVE,      // its operands
    DISPATCH,     // hand over to the engine
    RUN,          // wait for the engine
    SYNC_REQ,     // write SYNC's word
    SYNC_WAIT,
    RECORD,       // the command's counters no longer change; write its record
    RECORD_WAIT,
    RETIRE,
    ERROR
  } state_e;

  state_e      state_q, state_d;
  error_e      error_q, error_d;
  packet_t     packet_q;
  logic        from_ring_q, fetch_err_q;
  logic [31:0] seq_q;
  logic        is_sync, no_work, engine_ready, engine_done;
  engine_e     engine;
  error_e      engine_err;

  assign engine  = opcode_engine(packet_q.opcode);
  assign is_sync = packet_q.opcode == OPCODE_SYNC;
  assign no_work = packet_q.opcode == OPCODE_NOP || packet_q.opcode == OPCODE_FENCE;

  // The engine that runs this command.
  always_comb begin
    engine_ready   = 1'b0;
    engine_done    = 1'b0;
    engine_err     = ERROR_NONE;
    engine_valid_o = '0;
    for (int unsigned e = 0; e < NUM_ENGINES; e++) begin
      if (engine == engine_e'(e)) begin
        engine_ready      = engine_rsp_i[e].ready;
        engine_done       = engine_rsp_i[e].done;
        engine_err        = engine_rsp_i[e].err;
        engine_valid_o[e] = state_q == DISPATCH;
      end
    end
  end

  always_comb begin
    state_d = state_q;
    error_d = error_q;
    unique case (state_q)
      IDLE: if (start_o) begin
        state_d = DECODE;
        error_d = ERROR_NONE;
      end
      DECODE: begin
        error_d = fetch_err_q ? ERROR_BUS_READ : decode_error_i;
        state_d = (no_work || error_d != ERROR_NONE) ? RECORD : RESOLVE;
      end
      RESOLVE: if (resolve_done_i) begin
        error_d = resolve_error_i;
        state_d = (error_d != ERROR_NONE) ? RECORD : (is_sync ? SYNC_REQ : DISPATCH);
      end
      DISPATCH: if (engine_ready) state_d = RUN;
      RUN: if (engine_done) begin
        error_d = engine_err;
        state_d = RECORD;
      end
      SYNC_REQ:  if (write_ready_i) state_d = SYNC_WAIT;
      SYNC_WAIT: if (write_done_i) begin
        if (write_err_i) error_d = ERROR_BUS_WRITE;
        state_d = RECORD;
      end
      RECORD:      if (!record_enable_i) state_d = RETIRE;
                   else if (write_ready_i) state_d = RECORD_WAIT;
      RECORD_WAIT: if (write_done_i) begin
        if (write_err_i && error_q == ERROR_NONE) error_d = ERROR_BUS_WRITE;
        state_d = RETIRE;
      end
      RETIRE:  state_d = (error_q != ERROR_NONE) ? ERROR : IDLE;
      ERROR: if (resume_i) begin
        state_d = IDLE;
        error_d = ERROR_NONE;
      end
      default: state_d = IDLE;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= IDLE;
      error_q <= ERROR_NONE;
      seq_q   <= '0;
    end else begin
      state_q <= state_d;
      error_q <= error_d;
      if (retire_o) seq_q <= seq_q + 32'd1;
    end
  end

  // A packet that could not be read is all zero in its record.
  always_ff @(posedge clk_i) begin
    if (start_o) begin
      packet_q    <= cmd_i.fetch_err ? '0 : cmd_i.packet;
      from_ring_q <= cmd_i.from_ring;
      fetch_err_q <= cmd_i.fetch_err;
    end
  end

  assign cmd_ready_o     = state_q == IDLE && !hold_i;
  assign packet_o        = packet_q;
  assign resolve_start_o = state_q == DECODE && state_d == RESOLVE;

  assign write_valid_o   = state_q == SYNC_REQ || (state_q == RECORD && record_enable_i);
  assign write_o.word    = state_q == SYNC_REQ;
  assign write_o.addr    = write_o.word ? packet_q.dst : record_addr_i;
  assign write_o.data    = write_o.word ? LINE_BITS'(packet_q.param[SYNC_VALUE]) : record_i;

  assign start_o         = cmd_ready_o && cmd_valid_i;
  assign finish_o        = state_q != RECORD && state_d == RECORD;
  assign retire_o        = state_q == RETIRE;
  assign retire_ring_o   = retire_o && from_ring_q;
  assign error_o         = error_q;
  assign seq_o           = seq_q;
  assign idle_o          = state_q == IDLE || state_q == ERROR;
  assign waits_o         = state_d == state_q && (idle_o || state_q == RUN);
  assign in_error_o      = state_q == ERROR;
endmodule
