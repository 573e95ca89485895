// SPDX-License-Identifier: Apache-2.0
/// Two readers on one read client of the memory controller, which answers in order.
///
/// Reader 1 goes first. Both must accept their beats at once, as npu_gather_land does.
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
  input  logic [1:0][ADDR_WIDTH-1:0]      req_addr_i,
  input  logic [1:0][REQ_BYTES_WIDTH-1:0] req_bytes_i,
  input  logic [1:0][BeatsW-1:0]          req_beats_i,
  output logic [1:0]                      rsp_valid_o,

  output logic                            rd_req_valid_o,
  input  logic                            rd_req_ready_i,
  output logic [ADDR_WIDTH-1:0]           rd_req_addr_o,
  output logic [REQ_BYTES_WIDTH-1:0]      rd_req_bytes_o,
  input  logic                            rd_rsp_valid_i
);
  logic              pick, room, known, owner, last, held_q, pick_q;
  logic [BeatsW-1:0] beats, done_q;

  // A request that was offered stays, whoever comes later.
  assign pick           = held_q ? pick_q : req_valid_i[1];
  assign rd_req_valid_o = req_valid_i[pick] && room;
  assign rd_req_addr_o  = req_addr_i[pick];
  assign rd_req_bytes_o = req_bytes_i[pick];
  assign req_ready_o[0] = !pick && room && rd_req_ready_i;
  assign req_ready_o[1] = pick && room && rd_req_ready_i;

  npu_fifo #(.Width(1 + BeatsW), .Depth(MaxReads)) u_owners (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(req_valid_i[pick] && rd_req_ready_i), .in_ready_o(room),
    .in_data_i({pick, req_beats_i[pick]}),
    .out_valid_o(known), .out_ready_i(rd_rsp_valid_i && last), .out_data_o({owner, beats}),
    .count_o()
  );

  assign last           = done_q + BeatsW'(1) == beats;
  assign rsp_valid_o[0] = rd_rsp_valid_i && !owner;
  assign rsp_valid_o[1] = rd_rsp_valid_i && owner;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= 1'b0;
      pick_q <= 1'b0;
      done_q <= '0;
    end else begin
      held_q <= rd_req_valid_o && !rd_req_ready_i;
      pick_q <= pick;
      if (rd_rsp_valid_i) done_q <= last ? '0 : done_q + BeatsW'(1);
    end
  end

  ResponseExpected: assert property (@(posedge clk_i) disable iff (!rst_ni)
      rd_rsp_valid_i |-> known)
    else $error("npu_gather_port: a beat that nobody asked for");
endmodule
