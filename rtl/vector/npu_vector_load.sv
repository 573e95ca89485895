// SPDX-License-Identifier: Apache-2.0
/// One source of the vector engine: walks its view and delivers its rows as vectors, in order.
///
///     walk → (memory) → beats → align → unpack
///
/// Its buffer of Depth beats takes every beat at once, so no other client waits for it. Contiguous
/// elements arrive at the rate of the bus whatever their alignment. Every second or fourth element
/// is read with what lies between, if a beat then holds two or more of them: no beat is read that
/// has none. Others arrive one per cycle; an element that is repeated along the row is read once
/// per row.
module npu_vector_load
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_types_pkg::*;
#(
  parameter int unsigned BusBits = 256,
  parameter int unsigned Depth   = 128,
  localparam int unsigned StrbW  = BusBits / 8
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  // Stable from start_i until the last vector was taken
  input  logic                       start_i,
  input  npu_tensor_t                view_i,
  input  dtype_e                     dtype_i,

  output logic                       req_valid_o,
  input  logic                       req_ready_i,
  output mem_range_t                 req_range_o,
  input  logic                       beat_valid_i,
  input  logic [BusBits-1:0]         beat_i,

  output logic                       vec_valid_o,
  input  logic                       vec_ready_i,
  output vector_t                    vec_o
);
  localparam int unsigned LaneW    = $clog2(StrbW);
  // Requests of 16 beats: long enough for the bus, short enough to fit while others are in flight.
  localparam int unsigned RequestW = LaneW + 4;
  // Bytes of a row of 2^32 - 1 elements of 8 bytes.
  localparam int unsigned RowW     = 35;

  logic                       splat, walk_valid, walk_ready;
  npu_tensor_t                view;
  logic [1:0]                 elem_log2, gap_log2;
  logic [31:0]                row_elems;  // as they are read
  logic [RowW-1:0]            row_bytes, row_left_q;
  logic                       run_valid, run_take, row_take, beat_valid, beat_ready;
  logic                       packed_valid, packed_ready, fifo_valid, fifo_ready;
  logic [LaneW-1:0]           run_lane, row_lane_q;
  logic [LaneW:0]             run_bytes, take_bytes;
  logic [REQ_BYTES_WIDTH-1:0] run_left, row_left;
  logic [BusBits-1:0]         beat, packed_beat, fifo_beat;

  assign elem_log2 = dtype_log2_bytes(dtype_i);
  assign splat     = view_i.stride[MAX_RANK-1] == '0;
  assign row_bytes = RowW'(row_elems) << elem_log2;

  // The distance of a row's elements, as a power of two; 0 as well where each is read alone. So
  // short a row that its elements with all between them can be counted.
  always_comb begin
    gap_log2 = 2'd0;
    if (view_i.stride[MAX_RANK-1] == 32'd2) gap_log2 = 2'd1;
    if (view_i.stride[MAX_RANK-1] == 32'd4) gap_log2 = 2'd2;
    if (32'(elem_log2) + 32'(gap_log2) >= LaneW || view_i.size[MAX_RANK-1] >= 32'h4000_0000) begin
      gap_log2 = 2'd0;
    end
  end

  always_comb begin
    row_elems = splat ? 32'd1 : ((view_i.size[MAX_RANK-1] - 32'd1) << gap_log2) + 32'd1;
    view      = view_i;
    view.size[MAX_RANK-1] = row_elems;
    if (gap_log2 != 2'd0) view.stride[MAX_RANK-1] = 32'd1;
  end

  npu_copy_walk #(.RequestW(RequestW)) u_walk (
    .clk_i, .rst_ni, .start_i, .stop_i(1'b0), .busy_o(),
    .view_i(view), .merge_i('1), .short_i(1'b0), .elem_log2_i(elem_log2),
    .req_valid_o(walk_valid), .req_ready_i(walk_ready),
    .req_range_o, .req_last_o(), .loop_o()
  );

  npu_copy_read #(.BusBits(BusBits), .MaxAhead(Depth), .Beats(Depth)) u_read (
    .clk_i, .rst_ni,
    .open_i(walk_valid), .range_i(req_range_o), .sent_o(walk_ready),
    .mem_valid_o(req_valid_o), .mem_ready_i(req_ready_i),
    .data_valid_i(beat_valid_i), .data_i(beat_i), .data_err_i(1'b0),
    .empty_o(), .run_valid_o(run_valid), .lane_o(run_lane), .left_o(run_left),
    .take_i(run_take), .take_bytes_i(run_bytes),
    .beat_valid_o(beat_valid), .beat_ready_i(beat_ready), .beat_o(beat), .beat_err_o(),
    .idle_o()
  );

  // ---- every row starts in lane 0 of a beat ----
  assign row_left = (row_left_q > RowW'(MAX_REQ_BYTES)) ? REQ_BYTES_WIDTH'(MAX_REQ_BYTES)
                                                        : row_left_q[REQ_BYTES_WIDTH-1:0];

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      row_left_q <= row_bytes;
      row_lane_q <= '0;
    end else if (row_take) begin
      if (row_left_q == RowW'(take_bytes)) begin
        row_left_q <= row_bytes;
        row_lane_q <= '0;
      end else begin
        row_left_q <= row_left_q - RowW'(take_bytes);
        row_lane_q <= row_lane_q + take_bytes[LaneW-1:0];
      end
    end
  end

  npu_copy_align #(.BusBits(BusBits)) u_align (
    .clk_i, .rst_ni, .fill_i(1'b0), .pattern_i('0), .drain_i(1'b0),
    .src_valid_i(run_valid), .src_lane_i(run_lane), .src_left_i(run_left),
    .src_take_o(run_take), .src_bytes_o(run_bytes),
    .beat_valid_i(beat_valid), .beat_ready_o(beat_ready), .beat_i(beat),
    .dst_valid_i(1'b1), .dst_lane_i(row_lane_q), .dst_left_i(row_left),
    .dst_take_o(row_take), .dst_bytes_o(take_bytes),
    .out_valid_o(packed_valid), .out_ready_i(packed_ready), .out_o(packed_beat), .strb_o(),
    .stats_o()
  );

  npu_fifo #(.Width(BusBits), .Depth(2)) u_packed (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(packed_valid), .in_ready_o(packed_ready), .in_data_i(packed_beat),
    .out_valid_o(fifo_valid), .out_ready_i(fifo_ready), .out_data_o(fifo_beat), .count_o()
  );

  npu_vector_unpack #(.BusBits(BusBits)) u_unpack (
    .clk_i, .rst_ni, .start_i, .dtype_i, .splat_i(splat), .gap_log2_i(gap_log2),
    .row_elems_i(view_i.size[MAX_RANK-1]),
    .beat_valid_i(fifo_valid), .beat_ready_o(fifo_ready), .beat_i(fifo_beat),
    .vec_valid_o, .vec_ready_i, .vec_o
  );
endmodule
