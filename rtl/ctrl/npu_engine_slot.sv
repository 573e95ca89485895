// SPDX-License-Identifier: Apache-2.0
/// The command of one engine, from its start until its end has been noted, and what it costs.
///
/// `start_i` takes the command, one of two, while `free_o`; the engine is offered it from the next
/// cycle on. It is chosen here, as ahead of the slots it would be simulated in every cycle.
/// Counts are those of the cycles from then up to and including that of the engine's `done`.
/// `end_valid_o` comes with that `done` and stays until `end_ready_i`; the end is described by the
/// ports behind it.
module npu_engine_slot
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            start_i,
  input  logic            parked_i,
  input  npu_engine_cmd_t checked_cmd_i,
  input  npu_engine_cmd_t parked_cmd_i,
  input  cmd_slot_id_t    place_i,
  output logic            free_o,

  output engine_req_t     req_o,
  input  engine_rsp_t     rsp_i,
  input  logic            read_beat_i,   // of this engine
  input  logic            write_beat_i,
  input  logic [63:0]     cycle_i,

  output logic            end_valid_o,
  input  logic            end_ready_i,
  output cmd_slot_id_t    end_place_o,
  output error_e          error_o,
  output logic [63:0]     end_cycle_o,
  output cmd_counts_t     counts_o,     // without this cycle's
  output perf_events_t    now_o         // this cycle's
);
  typedef enum logic [1:0] {
    FREE,
    OFFER,  // hand over to the engine
    RUN,    // wait for the engine
    ENDED   // wait until the end is noted
  } state_e;

  state_e          state_q, state_d;
  npu_engine_cmd_t cmd_q;
  cmd_slot_id_t    place_q;
  cmd_counts_t     counts_q;
  perf_events_t    now;
  error_e          error_q;
  logic [63:0]     end_cycle_q;
  logic            finish, counting;

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
      cmd_q   <= parked_i ? parked_cmd_i : checked_cmd_i;
      place_q <= place_i;
    end
  end

  assign counting = state_q == OFFER || state_q == RUN;
  assign now      = counting ? '{active: rsp_i.stats.active,
                                 operand_stall: rsp_i.stats.operand_stall,
                                 result_stall: rsp_i.stats.result_stall,
                                 read_beat: read_beat_i, write_beat: write_beat_i} : '0;

  always_ff @(posedge clk_i) begin
    if (start_i)       counts_q <= '0;
    else if (counting) counts_q <= counted(counts_q, now);
  end

  always_ff @(posedge clk_i) begin
    if (finish) begin
      error_q     <= rsp_i.err;
      end_cycle_q <= cycle_i;
    end
  end

  assign free_o      = state_q == FREE;
  assign req_o       = '{valid: state_q == OFFER, cmd: cmd_q};
  assign end_valid_o = finish || state_q == ENDED;
  assign end_place_o = place_q;
  assign error_o     = finish ? rsp_i.err : error_q;
  assign end_cycle_o = finish ? cycle_i : end_cycle_q;
  assign counts_o    = counts_q;
  assign now_o       = now;

  always_ff @(posedge clk_i) begin
    if (rst_ni && start_i) begin
      StartsWhenFree: assert (free_o)
        else $error("npu_engine_slot: a command is lost");
    end
  end
endmodule
