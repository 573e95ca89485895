// SPDX-License-Identifier: Apache-2.0
/// Two readers on one read client of the memory controller, which answers in order.
///
/// Reader 1 goes first. Both must accept their beats at once, as npu_read_buffer does.
module npu_gather_port
  import npu_pkg::*;
#(
  parameter int unsigned BeatsW   = 8,
  parameter int unsigned MaxReads = 64  // requests in flight
) (
  input  logic                            clk_i,
  input  logic                            rst_ni,

  input  logic [1:0]                      req_valid_i,
  output logic [1:0]                      req_ready_o,
  input  mem_range_t [1:0]                req_range_i,
  input  logic [1:0][BeatsW-1:0]          req_beats_i,
  output logic [1:0]                      data_valid_o,

  output logic                            mem_valid_o,
  input  logic                            mem_ready_i,
  output mem_range_t                      mem_range_o,
  input  logic                            data_valid_i
);
  logic              pick, room, known, owner, last, held_q, pick_q;
  logic [BeatsW-1:0] beats, done_q;

  // A request that was offered stays offered, also when reader 1 requests later.
  assign pick           = held_q ? pick_q : req_valid_i[1];
  assign mem_valid_o    = req_valid_i[pick] && room;
  assign mem_range_o    = req_range_i[pick];
  assign req_ready_o[0] = !pick && room && mem_ready_i;
  assign req_ready_o[1] = pick && room && mem_ready_i;

  npu_fifo #(.Width(1 + BeatsW), .Depth(MaxReads)) u_owners (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(req_valid_i[pick] && mem_ready_i), .in_ready_o(room),
    .in_data_i({pick, req_beats_i[pick]}),
    .out_valid_o(known), .out_ready_i(data_valid_i && last), .out_data_o({owner, beats}),
    .count_o()
  );

  assign last            = done_q + BeatsW'(1) == beats;
  assign data_valid_o[0] = data_valid_i && !owner;
  assign data_valid_o[1] = data_valid_i && owner;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= 1'b0;
      pick_q <= 1'b0;
      done_q <= '0;
    end else begin
      held_q <= mem_valid_o && !mem_ready_i;
      pick_q <= pick;
      if (data_valid_i) done_q <= last ? '0 : done_q + BeatsW'(1);
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && data_valid_i) begin
      ResponseExpected: assert (known)
        else $error("npu_gather_port: a beat without a request");
    end
  end
endmodule
