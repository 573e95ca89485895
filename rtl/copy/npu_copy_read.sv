// SPDX-License-Identifier: Apache-2.0
/// The side of the aligner that reads: sends requests, says where their bytes lie, holds the data.
///
/// `range_i` is requested while `open_i`, if all its beats have room to land; `sent_o` says that it
/// goes. Its bytes are then a run (npu_copy_run), in the order of the requests, and lie in the
/// beats that come out, with their error. Every beat is taken at once: no other client waits.
/// `empty_o`: all bytes of all requests are taken.
module npu_copy_read
  import npu_pkg::*;
#(
  parameter int unsigned BusBits  = 256,
  parameter int unsigned MaxAhead = 128,  // requests in flight
  parameter int unsigned Beats    = 128,  // at least those of the largest request
  localparam int unsigned LaneW   = $clog2(BusBits / 8)
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       open_i,
  input  mem_range_t                 range_i,
  output logic                       sent_o,

  // To the memory controller, the same range
  output logic                       mem_valid_o,
  input  logic                       mem_ready_i,
  input  logic                       data_valid_i,
  input  logic [BusBits-1:0]         data_i,
  input  logic                       data_err_i,

  // The run of the first bytes that are not taken
  output logic                       empty_o,
  output logic                       run_valid_o,
  output logic [LaneW-1:0]           lane_o,
  output logic [REQ_BYTES_WIDTH-1:0] left_o,
  input  logic                       take_i,
  input  logic [LaneW:0]             take_bytes_i,

  output logic                       beat_valid_o,
  input  logic                       beat_ready_i,
  output logic [BusBits-1:0]         beat_o,
  output logic                       beat_err_o,
  output logic                       idle_o
);
  logic room;

  assign sent_o = mem_valid_o && mem_ready_i;

  npu_read_buffer #(.BusBits(BusBits), .Beats(Beats)) u_buffer (
    .clk_i, .rst_ni,
    .req_valid_i(open_i && room), .req_range_i(range_i), .req_beats_o(),
    .mem_valid_o, .mem_ready_i, .data_valid_i, .data_i, .data_err_i,
    .beat_valid_o, .beat_ready_i, .beat_o, .beat_err_o, .idle_o
  );

  npu_copy_run #(.BusBits(BusBits), .Depth(MaxAhead)) u_run (
    .clk_i, .rst_ni,
    .request_valid_i(sent_o), .request_ready_o(room), .request_range_i(range_i),
    .empty_o, .valid_o(run_valid_o), .lane_o, .left_o, .take_i, .take_bytes_i
  );
endmodule
