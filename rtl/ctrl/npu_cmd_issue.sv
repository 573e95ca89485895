// SPDX-License-Identifier: Apache-2.0
/// Takes the packets from the queue, checks them and starts the commands, in that order.
///
/// A packet is taken and checked while earlier commands run (`take_o`). It starts when nothing that
/// it has to wait for is left: `blocked_i`, and its engine. `start_o` is one bit per engine, in the
/// same cycle as `push_o`, which enters the command in the table. NOP, FENCE and SYNC, and commands
/// that fail their checks, end here: `ended_o` comes with their `push_o`. SYNC writes its word
/// before that.
///
/// `stop_i` (an earlier command has failed; if here, from the cycle after its `push_o`) and
/// `hold_i` (ERROR, soft reset) let nothing be taken or start, and drop the packet that is checked.
///
/// While a packet waits for its start and `park_ready_i`, it is put aside: `park_o` hands it to
/// npu_cmd_park.
module npu_cmd_issue
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // From the queue
  input  logic                   cmd_valid_i,
  input  queued_packet_t         cmd_i,
  input  logic                   hold_i,
  input  logic                   stop_i,
  input  logic                   park_ready_i,
  output logic                   park_o,

  // Checks
  output packet_t                packet_o,  // stable from take to push
  input  error_e                 decode_error_i,
  output logic                   resolve_start_o,
  input  logic                   resolve_done_i,
  input  error_e                 resolve_error_i,

  // What it waits for
  input  logic                   blocked_i,
  input  logic [NUM_ENGINES-1:0] engine_free_i,

  input  logic [63:0]            cycle_i,

  // Line writer: SYNC's word
  output logic                   write_valid_o,
  input  logic                   write_ready_i,
  output line_write_t            write_o,
  input  logic                   write_done_i,
  input  logic                   write_err_i,

  // Progress
  output logic                   take_o,
  output logic [NUM_ENGINES-1:0] start_o,
  output logic [63:0]            start_cycle_o,  // with push_o
  output logic                   push_o,
  output logic                   ended_o,        // with push_o: no engine runs it
  output error_e                 error_o,        // with push_o
  output logic                   here_o,         // a packet is being checked or waits
  output queue_t                 queue_o,        // of the packet
  output logic                   from_ring_o,    // with push_o
  output logic                   checked_o,      // it has passed its checks
  output logic                   idle_o,
  output logic                   waits_o         // another clock would change nothing
);
  typedef enum logic [2:0] {
    IDLE,
    DECODE,     // the packet's own words
    RESOLVE,    // its operands
    READY,      // wait for memory and engine
    FAILED,     // report a failed check
    SYNC_REQ,   // write SYNC's word
    SYNC_WAIT
  } state_e;

  state_e                 state_q, state_d;
  error_e                 error_q, error_d;
  packet_t                packet_q;
  queue_t                 queue_q;
  logic                   from_ring_q, fetch_err_q, is_sync, no_engine, free, go, drop;
  logic [NUM_ENGINES-1:0] engine;
  logic [63:0]            sync_cycle_q;

  assign is_sync = packet_q.opcode == OPCODE_SYNC;

  // The engine that runs this command, one bit, if any.
  always_comb begin
    for (int unsigned e = 0; e < NUM_ENGINES; e++) begin
      engine[e] = opcode_engine(packet_q.opcode) == engine_e'(e);
    end
  end

  assign no_engine = engine == '0;
  assign free      = no_engine || (engine & engine_free_i) != '0;
  assign drop      = hold_i || stop_i;
  assign go        = state_q == READY && !drop && !blocked_i && free;
  // LOAD, for which everything waits, waits here.
  assign park_o    = state_q == READY && !drop && !go && park_ready_i &&
                     packet_q.opcode != OPCODE_LOAD;

  always_comb begin
    state_d = state_q;
    error_d = error_q;
    unique case (state_q)
      IDLE: if (take_o) begin
        state_d = DECODE;
        error_d = ERROR_NONE;
      end
      DECODE: begin
        error_d = fetch_err_q ? ERROR_BUS_READ : decode_error_i;
        if (error_d != ERROR_NONE)     state_d = FAILED;
        else if (no_engine && !is_sync) state_d = READY;
        else                           state_d = RESOLVE;
      end
      RESOLVE: if (resolve_done_i) begin
        error_d = resolve_error_i;
        state_d = (error_d != ERROR_NONE) ? FAILED : READY;
      end
      READY: begin
        if (drop || park_o) state_d = IDLE;
        else if (go)        state_d = is_sync ? SYNC_REQ : IDLE;
      end
      FAILED:     state_d = IDLE;
      SYNC_REQ:   if (write_ready_i) state_d = SYNC_WAIT;
      SYNC_WAIT:  if (write_done_i) begin
        error_d = write_err_i ? ERROR_BUS_WRITE : ERROR_NONE;
        state_d = IDLE;
      end
      default:    state_d = IDLE;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= IDLE;
      error_q <= ERROR_NONE;
    end else begin
      state_q <= state_d;
      error_q <= error_d;
    end
  end

  // A packet that could not be read is all zero in its record.
  always_ff @(posedge clk_i) begin
    if (take_o) begin
      queue_q     <= cmd_i.qid;
      packet_q    <= cmd_i.fetch_err ? '0 : cmd_i.packet;
      from_ring_q <= cmd_i.from_ring;
      fetch_err_q <= cmd_i.fetch_err;
    end
    if (go) sync_cycle_q <= cycle_i;
  end

  assign take_o          = state_q == IDLE && !drop && cmd_valid_i;
  assign packet_o        = packet_q;
  assign here_o          = !idle_o;
  assign queue_o         = queue_q;
  assign from_ring_o     = from_ring_q;
  assign resolve_start_o = state_q == DECODE && state_d == RESOLVE;
  assign checked_o       = state_q == READY;

  assign write_valid_o   = state_q == SYNC_REQ;
  assign write_o.word    = 1'b1;
  assign write_o.addr    = packet_q.dst;
  assign write_o.data    = LINE_BITS'(packet_q.param[SYNC_VALUE]);

  assign start_o         = go ? engine : '0;
  assign start_cycle_o   = is_sync && state_q == SYNC_WAIT ? sync_cycle_q : cycle_i;
  assign ended_o         = state_q != READY || no_engine;
  assign push_o          = (go && !is_sync) || (state_q == FAILED && !drop) ||
                           (state_q == SYNC_WAIT && write_done_i);
  assign error_o         = error_d;

  assign idle_o          = state_q == IDLE;
  assign waits_o         = state_d == state_q && (idle_o || state_q == READY);
endmodule
