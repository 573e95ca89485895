// SPDX-License-Identifier: Apache-2.0
/// Reads the indices in order and turns each into an offset in bytes along the table's dimension.
///
/// `view_i` is the index tensor without the dimensions that are part of a run. One index per cycle,
/// `valid_o` with either `err_o` (its beat was a bus error), `bad_o` (below zero or not below
/// `limit_i`) or `offset_o`; it stays until `take_i`. An INT64 counts with all its bits. `drop_i`
/// ends the reading and throws away what is under way. `empty_o`: nothing is left of the command.
module npu_gather_index
  import npu_isa_pkg::*;
  import npu_pkg::*;
#(
  parameter int unsigned BusBits  = 256,
  parameter int unsigned RequestW = 8,
  parameter int unsigned MaxReads = 32,
  localparam int unsigned StrbW   = BusBits / 8,
  localparam int unsigned LaneW   = $clog2(StrbW)
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       start_i,
  input  logic                       drop_i,
  input  npu_tensor_t                view_i,
  input  dtype_e                     dtype_i,
  input  logic [31:0]                limit_i,   // elements along the dimension
  input  logic [31:0]                stride_i,  // elements from one to the next
  input  logic [1:0]                 elem_log2_i,
  output logic                       empty_o,

  output logic                       req_valid_o,
  input  logic                       req_ready_i,
  output mem_range_t                 req_range_o,
  input  logic                       beat_valid_i,
  output logic                       beat_ready_o,
  input  logic [BusBits-1:0]         beat_i,
  input  logic                       beat_err_i,

  output logic                       valid_o,
  input  logic                       take_i,
  output logic                       err_o,
  output logic                       bad_o,
  output logic [ADDR_WIDTH-1:0]      offset_o
);
  typedef struct packed {
    logic                  err;
    logic                  bad;
    logic [ADDR_WIDTH-1:0] offset;
  } index_t;

  logic                       wide, walk_busy, walk_valid, room, run_empty, run_valid, take, ready;
  logic [LaneW-1:0]           lane;
  logic [REQ_BYTES_WIDTH-1:0] left;
  logic [LaneW:0]             bytes;
  logic [63:0]                word, value;
  index_t                     index, index_q;

  assign wide = dtype_i == DTYPE_INT64;

  npu_copy_walk #(.RequestW(RequestW)) u_walk (
    .clk_i, .rst_ni, .start_i, .stop_i(drop_i), .busy_o(walk_busy),
    .view_i, .merge_i('1), .short_i(1'b0), .elem_log2_i(wide ? 2'd3 : 2'd2),
    .req_valid_o(walk_valid), .req_ready_i(room && req_ready_i), .req_range_o,
    .req_last_o(), .loop_o()
  );

  assign req_valid_o = walk_valid && room;

  npu_copy_run #(.BusBits(BusBits), .Depth(MaxReads)) u_run (
    .clk_i, .rst_ni,
    .request_valid_i(walk_valid && req_ready_i), .request_ready_o(room),
    .request_range_i(req_range_o),
    .empty_o(run_empty), .valid_o(run_valid), .lane_o(lane), .left_o(left),
    .take_i(take), .take_bytes_i(bytes)
  );

  // Indices are aligned: none lies in two beats.
  assign bytes        = wide ? (LaneW + 1)'(8) : (LaneW + 1)'(4);
  assign take         = run_valid && beat_valid_i && (ready || drop_i);
  assign beat_ready_o = take && (left == REQ_BYTES_WIDTH'(bytes)
                                 || (LaneW + 1)'(lane) + bytes == (LaneW + 1)'(StrbW));

  always_comb begin
    word  = '0;
    index = '0;
    value = '0;
    if (take) begin
      word[63:32]  = beat_i[{lane[LaneW-1:3], 6'd32} +: 32];
      word[31:0]   = beat_i[{lane[LaneW-1:2], 5'b0} +: 32];
      value        = wide ? word : {{32{word[31]}}, word[31:0]};
      index.err    = beat_err_i;
      index.bad    = value >= 64'(limit_i);  // a negative one is huge
      index.offset = (ADDR_WIDTH'(value[31:0]) * ADDR_WIDTH'(stride_i)) << elem_log2_i;
    end
  end

  npu_stream_reg #(.Width($bits(index_t))) u_index (
    .clk_i, .rst_ni, .flush_i(drop_i),
    .in_valid_i(take), .in_ready_o(ready), .in_data_i(index),
    .out_valid_o(valid_o), .out_ready_i(take_i), .out_data_o(index_q)
  );

  assign err_o    = index_q.err;
  assign bad_o    = index_q.bad;
  assign offset_o = index_q.offset;
  assign empty_o  = !walk_busy && run_empty && !valid_o;
endmodule
