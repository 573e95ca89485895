// SPDX-License-Identifier: Apache-2.0
/// Takes the packets from the queue, checks them and starts the commands, in that order.
///
/// A packet is taken and checked while earlier commands run (`take_o`). It starts as npu_cmd_start
/// says, whose ports have the same meaning here. A command that fails its checks ends here, with
/// `ended_o`.
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
  input  logic                   grant_i,

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
  output logic [63:0]            start_cycle_o,
  output logic                   push_o,
  output logic                   ended_o,
  output error_e                 error_o,
  output logic                   here_o,         // a packet is being checked or waits
  output queue_t                 queue_o,        // of the packet
  output logic                   from_ring_o,    // with push_o
  output logic                   waiting_o,      // it has passed its checks
  output logic                   engine_wait_o,
  output logic                   idle_o,
  output logic                   settled_o       // another clock would change nothing
);
  typedef enum logic [2:0] {
    IDLE,
    DECODE,     // the packet's own words
    RESOLVE,    // its operands
    READY,      // start it
    FAILED      // report a failed check
  } state_e;

  state_e         state_q, state_d;
  error_e         error_q, error_d, start_error;
  packet_t        packet_q;
  queue_t         queue_q;
  logic           from_ring_q, fetch_err_q, drop, has_operands, go, pushed, ended;

  // NOP and FENCE have none.
  assign has_operands = opcode_engine(packet_q.opcode) != ENGINE_NONE
                     || packet_q.opcode == OPCODE_SYNC;
  assign drop         = hold_i || stop_i;
  // LOAD, for which everything waits, waits here.
  assign park_o       = waiting_o && !drop && !go && park_ready_i &&
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
        if (error_d != ERROR_NONE) state_d = FAILED;
        else                       state_d = has_operands ? RESOLVE : READY;
      end
      RESOLVE: if (resolve_done_i) begin
        error_d = resolve_error_i;
        state_d = (error_d != ERROR_NONE) ? FAILED : READY;
      end
      READY:      if (pushed || park_o || (drop && waiting_o)) state_d = IDLE;
      FAILED:     state_d = IDLE;
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
  end

  npu_cmd_start u_cmd_start (
    .clk_i,
    .rst_ni,
    .ready_i       (state_q == READY),
    .drop_i        (drop),
    .opcode_i      (packet_q.opcode),
    .dst_i         (packet_q.dst),
    .value_i       (packet_q.param[SYNC_VALUE]),
    .blocked_i,
    .engine_free_i,
    .grant_i,
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
    .push_o        (pushed),
    .ended_o       (ended),
    .error_o       (start_error)
  );

  assign take_o          = state_q == IDLE && !drop && cmd_valid_i;
  assign packet_o        = packet_q;
  assign here_o          = !idle_o;
  assign queue_o         = queue_q;
  assign from_ring_o     = from_ring_q;
  assign resolve_start_o = state_q == DECODE && state_d == RESOLVE;

  assign ended_o         = state_q == FAILED || ended;
  assign push_o          = pushed || (state_q == FAILED && !drop);
  assign error_o         = state_q == FAILED ? error_q : start_error;

  assign idle_o          = state_q == IDLE;
  assign settled_o       = state_d == state_q && (idle_o || (waiting_o && !go));
endmodule
