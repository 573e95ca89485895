// SPDX-License-Identifier: Apache-2.0
/// Moves the bytes of the source runs to the lanes of the destination runs.
///
/// Per cycle it takes the bytes that the current source beat, source run and destination run have
/// in common, rotates them to their destination lanes, and joins them with the bytes carried over
/// from the cycle before. Full rate at any offset: one source beat in or one destination beat out
/// per cycle. FILL has no source: every beat is the pattern, already in its lanes as elements are
/// aligned. While `drain_i` is high, source beats are dropped and destination beats carry no
/// strobes, each side at its own pace, so that every request made is honoured after an error.
module npu_copy_align
  import npu_pkg::*;
#(
  parameter int unsigned BusBits = 256,
  localparam int unsigned Lanes  = BusBits / 8,
  localparam int unsigned LaneW  = $clog2(Lanes)
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       fill_i,
  input  logic [31:0]                pattern_i,
  input  logic                       drain_i,

  // Source run and beats
  input  logic                       src_valid_i,
  input  logic [LaneW-1:0]           src_lane_i,
  input  logic [REQ_BYTES_WIDTH-1:0] src_left_i,
  output logic                       src_take_o,
  output logic [LaneW:0]             src_bytes_o,
  input  logic                       beat_valid_i,
  output logic                       beat_ready_o,
  input  logic [BusBits-1:0]         beat_i,

  // Destination run and beats
  input  logic                       dst_valid_i,
  input  logic [LaneW-1:0]           dst_lane_i,
  input  logic [REQ_BYTES_WIDTH-1:0] dst_left_i,
  output logic                       dst_take_o,
  output logic [LaneW:0]             dst_bytes_o,
  output logic                       out_valid_o,
  input  logic                       out_ready_i,
  output logic [BusBits-1:0]         out_o,
  output logic [Lanes-1:0]           strb_o,

  output npu_stats_t                 stats_o
);
  localparam logic [LaneW:0] AllLanes = (LaneW + 1)'(Lanes);

  logic               alone, src_has, step, emit, flush, run_end;
  logic [LaneW:0]     src_room, dst_room, bytes;
  logic [LaneW+1:0]   lane_end;           // may lie in the next beat
  logic [LaneW:0]     out_end;
  logic [LaneW-1:0]   first, turn;
  logic [BusBits-1:0] turned, joined, carry_q;
  logic               part_q;             // carry_q holds lanes first_q .. dst_lane_i - 1
  logic [LaneW-1:0]   first_q;
  logic [LaneW:0]     tail_q;             // carry_q holds this many last bytes of the run before

  function automatic logic [LaneW:0] at_most(logic [LaneW:0] a, logic [REQ_BYTES_WIDTH-1:0] b);
    return (b < REQ_BYTES_WIDTH'(a)) ? b[LaneW:0] : a;
  endfunction

  assign alone    = fill_i || drain_i;
  assign src_has  = src_valid_i && beat_valid_i;
  assign src_room = at_most(AllLanes - (LaneW + 1)'(src_lane_i), src_left_i);
  assign dst_room = alone ? AllLanes - (LaneW + 1)'(dst_lane_i) : src_room;
  assign bytes    = at_most(dst_room, dst_left_i);
  assign run_end  = REQ_BYTES_WIDTH'(bytes) == dst_left_i;
  assign lane_end = (LaneW + 2)'(dst_lane_i) + (LaneW + 2)'(bytes);
  assign emit     = run_end || lane_end >= (LaneW + 2)'(Lanes);
  assign flush    = tail_q != '0;
  assign step     = !flush && dst_valid_i && (alone || src_has) && (!emit || out_ready_i);

  assign src_take_o   = drain_i ? src_has : step && !fill_i;
  assign src_bytes_o  = drain_i ? src_room : bytes;
  assign beat_ready_o = src_take_o && src_bytes_o == src_room;
  assign dst_take_o   = step;
  assign dst_bytes_o  = bytes;

  // Rotate left by `turn` bytes: source lane s lands in lane s + turn. Not inlined: Verilator would
  // evaluate both shifts of each instance in every cycle, whatever the conditions around them.
  function automatic logic [BusBits-1:0] rotated(input logic [BusBits-1:0] whole,
                                                 input logic [LaneW-1:0]   by);
    // verilator no_inline_task
    rotated = (whole << {by, 3'b0}) | (whole >> {AllLanes - (LaneW + 1)'(by), 3'b0});
  endfunction

  assign turn = dst_lane_i - src_lane_i;
  always_comb begin
    turned = '0;
    if (out_valid_o || step) begin
      if (fill_i)           turned = {(BusBits / 32){pattern_i}};
      else if (turn == '0)  turned = beat_i;
      else                  turned = rotated(beat_i, turn);
    end
  end

  // Lanes below the current one come from the cycle before.
  always_comb begin
    joined = turned;
    if (flush)       joined = carry_q;
    else if (part_q) joined = turned
                            ^ ((turned ^ carry_q) & ~({BusBits{1'b1}} << {dst_lane_i, 3'b0}));
  end

  assign first   = part_q ? first_q : dst_lane_i;
  assign out_end = (lane_end > (LaneW + 2)'(Lanes)) ? AllLanes : lane_end[LaneW:0];
  assign out_o   = joined;
  always_comb begin
    strb_o = '0;
    if (flush)                  strb_o = {Lanes{1'b1}} >> (AllLanes - tail_q);
    else if (step && !drain_i)  strb_o = ({Lanes{1'b1}} << first)
                                       & ({Lanes{1'b1}} >> (AllLanes - out_end));
  end
  assign out_valid_o = flush || (dst_valid_i && (alone || src_has) && emit);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      part_q  <= 1'b0;
      first_q <= '0;
      tail_q  <= '0;
    end else if (flush) begin
      if (out_ready_i) tail_q <= '0;
    end else if (step) begin
      part_q  <= !run_end && lane_end != (LaneW + 2)'(Lanes);
      first_q <= emit ? '0 : first;
      if (run_end && lane_end > (LaneW + 2)'(Lanes)) begin
        tail_q <= (LaneW + 1)'(lane_end - (LaneW + 2)'(Lanes));
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (step && !alone) carry_q <= emit ? turned : joined;
  end

  assign stats_o.active        = step || (flush && out_ready_i);
  assign stats_o.result_stall  = out_valid_o && !out_ready_i;
  assign stats_o.operand_stall = !flush && dst_valid_i && !alone && !src_has;
endmodule
