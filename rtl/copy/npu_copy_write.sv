// SPDX-License-Identifier: Apache-2.0
/// The side of the aligner that writes: sends requests, says where their bytes go, takes the data.
///
/// `range_i` is requested while `open_i` and there is room for one more request whose data is still
/// to come; `sent_o` says that it goes. Its bytes are then a run (npu_copy_run), in the order of
/// the requests, and beats of exactly these bytes leave through a FIFO that cuts the ready path.
/// Every beat belongs to a request that is not answered before it has left: `all_answered_o` says
/// that nothing is under way.
module npu_copy_write
  import npu_pkg::*;
#(
  parameter int unsigned BusBits = 256,
  localparam int unsigned StrbW  = BusBits / 8,
  localparam int unsigned LaneW  = $clog2(StrbW)
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       open_i,
  input  mem_range_t                 range_i,
  output logic                       sent_o,
  output logic                       all_answered_o,

  // The run of the first bytes that are still to come
  output logic                       empty_o,
  output logic                       run_valid_o,
  output logic [LaneW-1:0]           lane_o,
  output logic [REQ_BYTES_WIDTH-1:0] left_o,
  input  logic                       take_i,
  input  logic [LaneW:0]             take_bytes_i,

  input  logic                       beat_valid_i,
  output logic                       beat_ready_o,
  input  logic [BusBits-1:0]         beat_i,
  input  logic [StrbW-1:0]           strb_i,

  output mem_wr_req_t                wr_req_o,
  input  mem_wr_rsp_t                wr_rsp_i,
  output logic [BusBits-1:0]         wr_data_o,
  output logic [StrbW-1:0]           wr_strb_o
);
  // Requests ahead of their data; the memory controller takes only a few.
  localparam int unsigned MaxAhead = 8;

  logic room;

  assign wr_req_o.valid = open_i && room;
  assign wr_req_o.range = range_i;
  assign sent_o         = wr_req_o.valid && wr_rsp_i.ready;

  npu_copy_run #(.BusBits(BusBits), .Depth(MaxAhead)) u_run (
    .clk_i, .rst_ni,
    .request_valid_i(sent_o), .request_ready_o(room), .request_range_i(range_i),
    .empty_o, .valid_o(run_valid_o), .lane_o, .left_o, .take_i, .take_bytes_i
  );

  npu_fifo #(.Width(BusBits + StrbW), .Depth(2)) u_beats (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(beat_valid_i), .in_ready_o(beat_ready_o), .in_data_i({strb_i, beat_i}),
    .out_valid_o(wr_req_o.data_valid), .out_ready_i(wr_rsp_i.data_ready),
    .out_data_o({wr_strb_o, wr_data_o}), .count_o()
  );

  npu_outstanding #(.Most(MAX_OPEN_WRITES)) u_writes (
    .clk_i, .rst_ni, .sent_i(sent_o), .answered_i(wr_rsp_i.done), .none_o(all_answered_o)
  );
endmodule
