// SPDX-License-Identifier: Apache-2.0
/// The engine of this bench: COPY and FILL.
module bench_engine
  import npu_pkg::*;
#(
  parameter int unsigned BusBits = 256,
  parameter int unsigned Readers = 1,
  parameter int unsigned Writers = 1,
  parameter int unsigned Size    = 0,  // none here
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
  // Runs of 256 KiB take the way of runs of 4 GiB.
  npu_copy #(.BusBits(BusBits), .RunW(18)) u_copy (
    .clk_i, .rst_ni, .req_i, .rsp_o, .pending_o(), .other_i('0), .rd_req_o, .rd_rsp_i, .rd_data_i,
    .wr_req_o, .wr_rsp_i,
    .wr_data_o, .wr_strb_o
  );

  // No programs here.
  logic unused_line;
  assign unused_line    = ^program_line_i;
  assign program_info_o = '0;
endmodule
