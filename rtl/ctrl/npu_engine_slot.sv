// SPDX-License-Identifier: Apache-2.0
/// The command of one engine, from its start until its end has been noted, and what it costs.
///
/// `start_i` takes the command while `free_o`; the engine is offered it from the next cycle on.
/// Counts are those of the cycles from then up to and including that of the engine's `done`.
/// `end_valid_o` comes with that `done` and stays until `end_ready_i`.
module npu_engine_slot
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            start_i,
  input  npu_engine_cmd_t cmd_i,
  input  place_t          place_i,
  output logic            free_o,

  output engine_req_t     req_o,
  input  engine_rsp_t     rsp_i,
  input  logic            read_beat_i,   // of this engine
  input  logic            write_beat_i,
  input  logic [63:0]     cycle_i,

  output logic            end_valid_o,
  input  logic            end_ready_i,
  output place_t          end_place_o,
  output cmd_ended_t      ended_o
);
  typedef enum logic [1:0] {
    FREE,
    OFFER,  // hand over to the engine
    RUN,    // wait for the engine
    ENDED   // wait until the end is noted
  } state_e;

  state_e          state_q, state_d;
  npu_engine_cmd_t cmd_q;
  place_t          place_q;
  cmd_ended_t      ended_q, ended_d;
  logic            finish;

  assign finish = state_q == RUN && rsp_i.done;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      FREE:    if (start_i) state_d = OFFER;
      OFFER:   if (rsp_i.ready) state_d = RUN;
      RUN:     if (rsp_i.done) state_d = end_ready_i ? FREE : ENDED;
      ENDED:   if (end_ready_i) state_d = FREE;
      default: state_d = FREE;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= FREE;
    else         state_q <= state_d;
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      cmd_q   <= cmd_i;
      place_q <= place_i;
    end
  end

  always_comb begin
    ended_d = ended_q;
    if (state_q == OFFER || state_q == RUN) begin
      if (rsp_i.stats.active)        ended_d.counts.active        += 32'd1;
      if (rsp_i.stats.operand_stall) ended_d.counts.operand_stall += 32'd1;
      if (rsp_i.stats.result_stall)  ended_d.counts.result_stall  += 32'd1;
      if (read_beat_i)               ended_d.counts.read_beats    += 32'd1;
      if (write_beat_i)              ended_d.counts.write_beats   += 32'd1;
    end
    if (finish) begin
      ended_d.error     = rsp_i.err;
      ended_d.end_cycle = cycle_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) ended_q <= '0;
    else         ended_q <= ended_d;
  end

  assign free_o      = state_q == FREE;
  assign req_o       = '{valid: state_q == OFFER, cmd: cmd_q};
  assign end_valid_o = finish || state_q == ENDED;
  assign end_place_o = place_q;
  assign ended_o     = ended_d;

  always_ff @(posedge clk_i) begin
    if (rst_ni && start_i) begin
      StartsWhenFree: assert (free_o)
        else $error("npu_engine_slot: a command is lost");
    end
  end
endmodule
