// SPDX-License-Identifier: Apache-2.0
/// Keeps track of the position in a queue of requested runs, on one side of the aligner.
///
/// `request_*` is the request as it goes to the memory controller; the run it describes becomes
/// current when the runs before it are used up. Each `take_i` uses up `take_bytes_i` of the current
/// run, at most `left_o`. A new run can become current in every cycle.
module npu_copy_run
  import npu_pkg::*;
#(
  parameter int unsigned BusBits = 256,
  parameter int unsigned Depth   = 8,
  localparam int unsigned LaneW  = $clog2(BusBits / 8)
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       request_valid_i,
  output logic                       request_ready_o,
  input  mem_range_t                 request_range_i,

  output logic                       empty_o,
  output logic                       valid_o,
  output logic [LaneW-1:0]           lane_o,
  output logic [REQ_BYTES_WIDTH-1:0] left_o,
  input  logic                       take_i,
  input  logic [LaneW:0]             take_bytes_i
);
  logic                       next_valid, next_ready, valid_q;
  logic [LaneW-1:0]           next_lane, lane_q;
  logic [REQ_BYTES_WIDTH-1:0] next_bytes, left_q;

  npu_fifo #(.Width(LaneW + REQ_BYTES_WIDTH), .Depth(Depth)) u_queue (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(request_valid_i), .in_ready_o(request_ready_o),
    .in_data_i({request_range_i.addr[LaneW-1:0], request_range_i.bytes}),
    .out_valid_o(next_valid), .out_ready_i(next_ready), .out_data_o({next_lane, next_bytes}),
    .count_o()
  );

  assign next_ready = !valid_q || (take_i && left_q == REQ_BYTES_WIDTH'(take_bytes_i));
  assign empty_o    = !valid_q && !next_valid;
  assign valid_o    = valid_q;
  assign lane_o     = lane_q;
  assign left_o     = left_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)         valid_q <= 1'b0;
    else if (next_ready) valid_q <= next_valid;
  end

  always_ff @(posedge clk_i) begin
    if (next_ready && next_valid) begin
      lane_q <= next_lane;
      left_q <= next_bytes;
    end else if (take_i) begin
      lane_q <= lane_q + take_bytes_i[LaneW-1:0];
      left_q <= left_q - REQ_BYTES_WIDTH'(take_bytes_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && take_i) begin
      TakesWhatIsThere: assert (valid_q && REQ_BYTES_WIDTH'(take_bytes_i) <= left_q)
        else $error("npu_copy_run: took %0d of %0d bytes", take_bytes_i, left_q);
    end
  end
endmodule
