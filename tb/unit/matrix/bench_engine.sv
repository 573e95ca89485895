// SPDX-License-Identifier: Apache-2.0
/// The engine of this bench: MATMUL with small buffers, so that small products have many blocks.
module bench_engine
  import npu_pkg::*;
#(
  parameter int unsigned BusBits = 256,
  parameter int unsigned Readers = 1,
  parameter int unsigned Writers = 1,
  parameter int unsigned Size    = 16,  // rows of the array
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
  // One of those in corners.hpp
  localparam int unsigned FmaLatency =
      BusBits == 128 && Size == 8 ? 4 : BusBits == 256 ? 1 : 2;
  // The unusual shapes have the least buffers.
  localparam bit Least = (BusBits == 128 && Size == 32) || (BusBits == 512 && Size == 8);
  localparam int unsigned AccTiles    = !Least ? 8 : (Size == 32) ? 2 : 1;
  localparam int unsigned RowTiles    = Least ? 1 : 2;
  localparam int unsigned WeightSlots = Least ? 2 : 4;

  npu_matrix #(
    .ArraySize(Size), .BusBits(BusBits), .FmaLatency(FmaLatency), .AccTiles(AccTiles),
    .RowTiles(RowTiles), .WeightSlots(WeightSlots)
  ) u_matrix (
    .clk_i, .rst_ni, .req_i, .rsp_o, .rd_req_o(rd_req_o[0]), .rd_rsp_i(rd_rsp_i[0]), .rd_data_i,
    .wr_req_o, .wr_rsp_i, .wr_data_o, .wr_strb_o
  );

  // No programs here.
  logic unused_line;
  assign unused_line    = ^program_line_i;
  assign program_info_o = '0;
endmodule
