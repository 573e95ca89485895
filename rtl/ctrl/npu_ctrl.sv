// SPDX-License-Identifier: Apache-2.0
/// Command processor: registers, command queue, checks, dispatch to the engines, completion records.
///
/// One command runs at a time; the ring is prefetched meanwhile. `engine_cmd_o` is valid for the engine
/// whose `*_valid_o` is high and stays stable until that engine's `*_done_i` pulse, which must come at
/// least one cycle after the handshake, with all the command's writes acknowledged.
/// `soft_rst_o` is high for one cycle when CTRL.soft_reset takes effect: the engines and this module's
/// memory clients are idle then, so nobody has to abandon a bus transaction.
module npu_ctrl
  import npu_isa_pkg::*;
  import npu_pkg::*;
#(
  parameter int unsigned       ArraySize  = 16,
  parameter int unsigned       BusBits    = 256,
  parameter int unsigned       FmaLatency = 4,
  parameter logic [63:0]       MemBase    = 64'h0000_0000,
  parameter logic [63:0]       MemLimit   = 64'h2000_0000,  // first byte beyond the memory
  localparam int unsigned      StrbW      = BusBits / 8
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  // AXI4-Lite slave
  input  logic                       s_axil_awvalid_i,
  output logic                       s_axil_awready_o,
  input  logic [15:0]                s_axil_awaddr_i,
  input  logic [2:0]                 s_axil_awprot_i,
  input  logic                       s_axil_wvalid_i,
  output logic                       s_axil_wready_o,
  input  logic [31:0]                s_axil_wdata_i,
  input  logic [3:0]                 s_axil_wstrb_i,
  output logic                       s_axil_bvalid_o,
  input  logic                       s_axil_bready_i,
  output logic [1:0]                 s_axil_bresp_o,
  input  logic                       s_axil_arvalid_i,
  output logic                       s_axil_arready_o,
  input  logic [15:0]                s_axil_araddr_i,
  input  logic [2:0]                 s_axil_arprot_i,
  output logic                       s_axil_rvalid_o,
  input  logic                       s_axil_rready_i,
  output logic [31:0]                s_axil_rdata_o,
  output logic [1:0]                 s_axil_rresp_o,

  output logic                       irq_o,
  output logic                       soft_rst_o,

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
  input  logic                       wr_rsp_err_i,

  // Engines: matrix runs MATMUL, move runs COPY and FILL
  output npu_engine_cmd_t            engine_cmd_o,
  output logic                       matrix_valid_o,
  input  logic                       matrix_ready_i,
  input  logic                       matrix_done_i,
  input  error_e                     matrix_err_i,
  input  npu_stats_t                 matrix_stats_i,
  output logic                       move_valid_o,
  input  logic                       move_ready_i,
  input  logic                       move_done_i,
  input  error_e                     move_err_i,
  input  npu_stats_t                 move_stats_i,

  // One bit per beat on m_axi's R and W channels
  input  logic                       rd_beat_i,
  input  logic                       wr_beat_i
);
endmodule
