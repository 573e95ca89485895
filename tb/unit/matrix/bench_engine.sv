// SPDX-License-Identifier: Apache-2.0
/// The engine of this bench: MATMUL, with another array and small buffers at each bus width, so
/// that small products have many blocks.
module bench_engine
  import npu_pkg::*;
#(
  parameter int unsigned BusBits = 256,
  parameter int unsigned Readers = 1,
  localparam int unsigned StrbW  = BusBits / 8
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  engine_req_t               req_i,
  output engine_rsp_t               rsp_o,
  output mem_rd_req_t [Readers-1:0] rd_req_o,
  input  mem_rd_rsp_t [Readers-1:0] rd_rsp_i,
  input  logic [BusBits-1:0]        rd_data_i,
  output mem_wr_req_t               wr_req_o,
  input  mem_wr_rsp_t               wr_rsp_i,
  output logic [BusBits-1:0]        wr_data_o,
  output logic [StrbW-1:0]          wr_strb_o
);
  localparam int unsigned ArraySize  = BusBits == 128 ? 8 : BusBits == 256 ? 16 : 32;
  localparam int unsigned FmaLatency = BusBits == 128 ? 1 : BusBits == 256 ? 4 : 2;

  npu_matrix #(
    .ArraySize(ArraySize), .BusBits(BusBits), .FmaLatency(FmaLatency), .AccTiles(8), .RowTiles(2),
    .WeightSlots(4)
  ) u_matrix (
    .clk_i, .rst_ni, .req_i, .rsp_o, .rd_req_o(rd_req_o[0]), .rd_rsp_i(rd_rsp_i[0]), .rd_data_i,
    .wr_req_o, .wr_rsp_i, .wr_data_o, .wr_strb_o
  );
endmodule
