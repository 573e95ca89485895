// SPDX-License-Identifier: Apache-2.0
/// The commands of all engines, and their ends one after the other.
///
/// `start_i`, one bit per engine, hands the command that has been checked, or the one that was put
/// aside, to an engine that is free: one with a channel that has no command, of which the lower one
/// takes it. `busy_o`: one of its channels has a command.
/// `end_o` announces the end of the command at `end_place_o`, in the cycle of its channel's `done`
/// or later: at most one per cycle, and none while `hold_end_i`. Each channel's own part runs on
/// the clock of its engine, which has to tick while `on_o`.
module npu_cmd_engines
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic                   rst_ni,

  input  logic [NUM_ENGINES-1:0] start_i,
  input  logic                   parked_i,       // which of the two it is
  input  npu_engine_cmd_t        checked_cmd_i,
  input  npu_engine_cmd_t        parked_cmd_i,
  input  cmd_slot_id_t           place_i,
  output logic [NUM_ENGINES-1:0] free_o,
  output logic [NUM_ENGINES-1:0] busy_o,

  input  logic                   engine_clk_i [NUM_CHANNELS],
  output logic [NUM_CHANNELS-1:0] on_o,
  output engine_req_t            req_o [NUM_CHANNELS],
  input  engine_rsp_t            rsp_i [NUM_CHANNELS],
  input  logic [NUM_CHANNELS-1:0] read_beat_i,   // of each channel
  input  logic [NUM_CHANNELS-1:0] write_beat_i,
  input  logic [63:0]            cycle_i,

  input  logic                   hold_end_i,
  output logic                   ending_o,  // an end is announced, or held
  output logic                   end_o,
  output cmd_slot_id_t           end_place_o,
  output cmd_ended_t             ended_o
);
  logic [NUM_CHANNELS-1:0] start, free, end_valid, end_ready;
  cmd_slot_id_t              place_ended [NUM_CHANNELS];
  error_e                  error [NUM_CHANNELS];
  logic [63:0]             end_cycle [NUM_CHANNELS];
  cmd_counts_t             counts [NUM_CHANNELS];
  perf_events_t            now [NUM_CHANNELS];

  always_comb begin
    start                = {1'b0, start_i};
    start[ENGINE_COPY]   = start_i[ENGINE_COPY] && free[ENGINE_COPY];
    start[CHANNEL_COPY1] = start_i[ENGINE_COPY] && !free[ENGINE_COPY];
    free_o               = free[NUM_ENGINES-1:0];
    free_o[ENGINE_COPY]  = free[ENGINE_COPY] || free[CHANNEL_COPY1];
    busy_o               = ~free[NUM_ENGINES-1:0];
    busy_o[ENGINE_COPY]  = !free[ENGINE_COPY] || !free[CHANNEL_COPY1];
  end

  for (genvar e = 0; e < NUM_CHANNELS; e++) begin : gen_channel
    npu_engine_slot u_slot (
      .clk_i       (engine_clk_i[e]),
      .rst_ni,
      .start_i     (start[e]),
      .parked_i,
      .checked_cmd_i,
      .parked_cmd_i,
      .place_i,
      .free_o      (free[e]),
      .req_o       (req_o[e]),
      .rsp_i       (rsp_i[e]),
      .read_beat_i (read_beat_i[e]),
      .write_beat_i(write_beat_i[e]),
      .cycle_i,
      .end_valid_o (end_valid[e]),
      .end_ready_i (end_ready[e]),
      .end_place_o (place_ended[e]),
      .error_o     (error[e]),
      .end_cycle_o (end_cycle[e]),
      .counts_o    (counts[e]),
      .now_o       (now[e])
    );
  end

  always_comb begin
    end_ready   = '0;
    end_place_o = place_ended[0];
    ended_o     = '{error: ERROR_NONE, end_cycle: '0, counts: '0};
    for (int unsigned e = 0; e < NUM_CHANNELS; e++) begin
      if (end_valid[e] && !hold_end_i && end_ready == '0) begin
        end_ready[e] = 1'b1;
        end_place_o  = place_ended[e];
        ended_o      = '{error: error[e], end_cycle: end_cycle[e],
                         counts: counted(counts[e], now[e])};
      end
    end
  end

  assign on_o     = start | ~free;
  assign end_o    = end_ready != '0;
  assign ending_o = end_valid != '0;
endmodule
