// SPDX-License-Identifier: Apache-2.0
/// Starts a command that has passed its checks.
///
/// `ready_i` stays high from then on, with the packet, until the command starts with `push_o`
/// (which enters it in the table) or is dropped. It starts when nothing that it has to wait for is
/// left: `blocked_i`, its engine, and `grant_i`, without which none starts on an engine. `start_o`
/// is one bit per engine. NOP, FENCE and SYNC end here: `ended_o` comes with their `push_o`. SYNC
/// writes its word before that; while it does, it is neither `waiting_o` nor dropped.
module npu_cmd_start
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   ready_i,
  input  logic                   drop_i,
  input  logic [31:0]            opcode_i,
  input  logic [ADDR_WIDTH-1:0]  dst_i,
  input  logic [31:0]            value_i,    // SYNC's word

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

  output logic                   waiting_o,      // it has not started
  output logic                   engine_wait_o, // for its busy engine alone
  output logic                   go_o,           // it starts
  output logic [NUM_ENGINES-1:0] start_o,
  output logic [63:0]            start_cycle_o,  // with push_o
  output logic                   push_o,
  output logic                   ended_o,        // with push_o: no engine runs it
  output error_e                 error_o         // with push_o
);
  typedef enum logic [1:0] {
    WAIT,
    SYNC_REQ,   // write SYNC's word
    SYNC_WAIT
  } state_e;

  state_e                 state_q, state_d;
  logic                   is_sync, free;
  logic [NUM_ENGINES-1:0] engine;
  logic [63:0]            sync_cycle_q;

  assign is_sync = opcode_i == OPCODE_SYNC;

  // The engine that runs this command, one bit, if any.
  always_comb begin
    for (int unsigned e = 0; e < NUM_ENGINES; e++) begin
      engine[e] = opcode_engine(opcode_i) == engine_e'(e);
    end
  end

  assign ended_o        = engine == '0;
  assign free           = ended_o || (engine & engine_free_i) != '0;
  assign waiting_o      = ready_i && state_q == WAIT;
  assign engine_wait_o = waiting_o && !blocked_i && !free;
  assign go_o           = waiting_o && !drop_i && !blocked_i && free && (ended_o || grant_i);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      WAIT:      if (go_o && is_sync) state_d = SYNC_REQ;
      SYNC_REQ:  if (write_ready_i) state_d = SYNC_WAIT;
      SYNC_WAIT: if (write_done_i) state_d = WAIT;
      default:   state_d = WAIT;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= WAIT;
    else         state_q <= state_d;
  end

  always_ff @(posedge clk_i) begin
    if (go_o) sync_cycle_q <= cycle_i;
  end

  assign write_valid_o = state_q == SYNC_REQ;
  assign write_o       = '{word: 1'b1, addr: dst_i, data: LINE_BITS'(value_i)};

  assign start_o       = go_o ? engine : '0;
  assign start_cycle_o = state_q == SYNC_WAIT ? sync_cycle_q : cycle_i;
  assign push_o        = (go_o && !is_sync) || (state_q == SYNC_WAIT && write_done_i);
  assign error_o       = state_q == SYNC_WAIT && write_err_i ? ERROR_BUS_WRITE : ERROR_NONE;
endmodule
