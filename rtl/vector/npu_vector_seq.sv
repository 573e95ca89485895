// SPDX-License-Identifier: Apache-2.0
/// Runs the program on one group after the other: instruction by instruction, within it vector by
/// vector, within it beat by beat; one beat per cycle.
///
/// An instruction starts when the results of the one before are in their registers: with a full
/// group that is at once, for the vectors before hide the latency. DIV and SQRT take longer than
/// the rest: what follows them starts late enough that results leave in the order of the beats. A
/// result that leaves for memory or reduction needs room there first. `advance_o` asks for the next
/// instruction.
module npu_vector_seq
  import npu_vector_pkg::*;
  import npu_vector_types_pkg::*;
#(
  parameter int unsigned VectorLanes = 16,
  parameter int unsigned FmaLatency  = 4
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  // The program
  input  logic         ready_i,
  input  instruction_t instruction_i,
  input  logic         last_i,         // the last one of the program
  output logic         advance_o,

  input  logic         group_valid_i,
  input  group_slot_t  group_last_i,
  output logic         group_free_o,
  output group_slot_t  slot_o,
  input  meta_t        meta_i,         // of that slot

  input  logic [MAX_RESULTS-1:0] room_i,  // of each result
  output logic         issue_o,
  output logic         out_o,          // as result result_o
  output result_no_t   result_o,
  output lane_beat_t   beat_o,
  output logic         beat_last_o,    // of its vector

  output logic         waits_room_o
);
  localparam int unsigned BeatShift = $clog2(VectorLanes);
  localparam int unsigned AgeW = 4;
  // Cycles from a beat to the next that may read its result.
  localparam logic [AgeW-1:0] FastAge = AgeW'(FmaLatency + 2);
  localparam logic [AgeW-1:0] SlowAge = AgeW'(DIV_LATENCY + 2);

  logic             start_q;     // at the first instruction of a group
  group_slot_t      slot_q;
  lane_beat_t       beat_q;
  logic [AgeW-1:0]  age_q;       // cycles since the first beat of the instruction before
  logic [AgeW-1:0]  need_q;      // that the next one has to wait for
  logic [AgeW-1:0]  slow_q;      // cycles in which a fast result would overtake a slow one
  logic             slow, room, first, ready, ordered, last_slot;

  assign slow          = is_slow(instruction_i.op);
  assign out_o         = instruction_i.dst >= 5'(DST_RESULT);
  assign result_o      = instruction_i.dst[1:0];
  assign room          = !out_o || room_i[result_o];
  assign first         = slot_q == '0 && beat_q == '0;
  assign ready         = !first || start_q || age_q >= need_q;
  assign ordered       = slow || slow_q == '0;
  assign beat_last_o   = (32'(beat_q) + 32'd1) << BeatShift >= 32'(meta_i.count);
  assign issue_o       = group_valid_i && ready_i && ready && ordered && room;
  assign waits_room_o  = group_valid_i && ready_i && ready && ordered && !room;
  assign last_slot     = slot_q == group_last_i;
  assign advance_o     = issue_o && beat_last_o && last_slot;
  assign group_free_o  = advance_o && last_i;
  assign slot_o        = slot_q;
  assign beat_o        = beat_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      start_q <= 1'b1;
      slot_q  <= '0;
      beat_q  <= '0;
    end else if (issue_o) begin
      beat_q <= beat_last_o ? '0 : beat_q + lane_beat_t'(1);
      if (beat_last_o) slot_q <= last_slot ? '0 : slot_q + group_slot_t'(1);
      if (advance_o)   start_q <= last_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      age_q  <= '0;
      slow_q <= '0;
    end else begin
      if (issue_o && first)  age_q <= AgeW'(1);
      else if (age_q != '1)  age_q <= age_q + AgeW'(1);
      if (issue_o && slow)   slow_q <= AgeW'(DIV_LATENCY - FmaLatency);
      else if (slow_q != '0) slow_q <= slow_q - AgeW'(1);
    end
  end

  always_ff @(posedge clk_i) begin
    if (issue_o) need_q <= slow ? SlowAge : FastAge;
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && issue_o && last_i) begin
      TheLastLeaves: assert (out_o)
        else $error("npu_vector_seq: the last instruction gives no result");
    end
  end
endmodule
