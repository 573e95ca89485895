// SPDX-License-Identifier: Apache-2.0
/// The engine of this bench: VECTOR, with another number of stages at each bus width.
module bench_engine
  import npu_pkg::*;
#(
  parameter int unsigned BusBits = 256,
  parameter int unsigned Readers = 4,
  parameter int unsigned Writers = 3,
  parameter int unsigned Size    = 16,  // lanes
  localparam int unsigned StrbW  = BusBits / 8
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  engine_req_t               req_i,
  output engine_rsp_t               rsp_o,
  output mem_rd_req_t [Readers-1:0] rd_req_o,
  input  mem_rd_rsp_t [Readers-1:0] rd_rsp_i,
  input  logic [BusBits-1:0]        rd_data_i,
  input  logic [31:0]               program_line_i,
  output program_info_t             program_info_o,
  output mem_wr_req_t [Writers-1:0] wr_req_o,
  input  mem_wr_rsp_t [Writers-1:0] wr_rsp_i,
  output logic [Writers-1:0][BusBits-1:0] wr_data_o,
  output logic [Writers-1:0][StrbW-1:0]   wr_strb_o
);
  localparam int unsigned FmaLatency = BusBits == 128 ? 1 : BusBits == 256 ? 4 : 8;

  npu_vector #(
    .VectorLanes(Size), .BusBits(BusBits), .FmaLatency(FmaLatency)
  ) u_vector (
    .clk_i, .rst_ni, .req_i, .rsp_o, .program_line_i, .program_info_o,
    .rd_req_o, .rd_rsp_i, .rd_data_i,
    .wr_req_o, .wr_rsp_i, .wr_data_o, .wr_strb_o
  );
endmodule
