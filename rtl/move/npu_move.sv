// SPDX-License-Identifier: Apache-2.0
/// COPY and FILL: moves or writes the elements of strided views without looking at their values.
module npu_move
  import npu_isa_pkg::*;
  import npu_pkg::*;
#(
  parameter int unsigned BusBits = 256,
  localparam int unsigned StrbW  = BusBits / 8
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  // Command; stable from cmd_valid_i until done_o
  input  logic                       cmd_valid_i,
  output logic                       cmd_ready_o,
  input  npu_engine_cmd_t            cmd_i,
  output logic                       done_o,
  output error_e                     err_o,
  output npu_stats_t                 stats_o,

  // Read client of the memory controller
  output logic                       rd_req_valid_o,
  input  logic                       rd_req_ready_i,
  output logic [ADDR_WIDTH-1:0]      rd_req_addr_o,
  output logic [REQ_BYTES_WIDTH-1:0] rd_req_bytes_o,
  input  logic                       rd_rsp_valid_i,
  output logic                       rd_rsp_ready_o,
  input  logic [BusBits-1:0]         rd_rsp_data_i,
  input  logic                       rd_rsp_err_i,

  // Write client of the memory controller
  output logic                       wr_req_valid_o,
  input  logic                       wr_req_ready_i,
  output logic [ADDR_WIDTH-1:0]      wr_req_addr_o,
  output logic [REQ_BYTES_WIDTH-1:0] wr_req_bytes_o,
  output logic                       wr_data_valid_o,
  input  logic                       wr_data_ready_i,
  output logic [BusBits-1:0]         wr_data_o,
  output logic [StrbW-1:0]           wr_strb_o,
  input  logic                       wr_rsp_valid_i,
  input  logic                       wr_rsp_err_i
);
endmodule
