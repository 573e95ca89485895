// SPDX-License-Identifier: Apache-2.0
/// The NPU without its pins: command processor, engines and memory controller, wired.
///
/// Clients of the memory controller. Reads: 0 ctrl, 1 move, 2 matrix, 3 to 5 vector src1 to src3,
/// 6 gather's indices and old values, 7 gather's data. Writes: 0 ctrl, 1 move, 2 matrix, 3 vector,
/// 4 gather.
module npu_core
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_pkg::MAX_SOURCES;
  import npu_mem_pkg::*;
#(
  parameter int unsigned ArraySize   = 16,
  parameter int unsigned BusBits     = 256,
  parameter int unsigned FmaLatency  = 4,
  parameter int unsigned AccTiles    = 64,
  parameter int unsigned RowTiles    = 8,
  parameter int unsigned WeightSlots = 16,
  parameter int unsigned VectorLanes = 16,
  parameter logic [63:0] MemBase     = 64'h0000_0000,
  parameter logic [63:0] MemLimit    = 64'h2000_0000,
  localparam int unsigned StrbW      = BusBits / 8
) (
  input  logic clk_i,
  input  logic rst_ni,
  output logic irq_o,

  // AXI4-Lite slave
  input  logic s_axil_awvalid_i,
  output logic s_axil_awready_o,
  input  logic [15:0] s_axil_awaddr_i,
  input  logic [2:0] s_axil_awprot_i,
  input  logic s_axil_wvalid_i,
  output logic s_axil_wready_o,
  input  logic [31:0] s_axil_wdata_i,
  input  logic [3:0] s_axil_wstrb_i,
  output logic s_axil_bvalid_o,
  input  logic s_axil_bready_i,
  output logic [1:0] s_axil_bresp_o,
  input  logic s_axil_arvalid_i,
  output logic s_axil_arready_o,
  input  logic [15:0] s_axil_araddr_i,
  input  logic [2:0] s_axil_arprot_i,
  output logic s_axil_rvalid_o,
  input  logic s_axil_rready_i,
  output logic [31:0] s_axil_rdata_o,
  output logic [1:0] s_axil_rresp_o,

  // Host window
  input  logic host_ar_valid_i,
  output logic host_ar_ready_o,
  input  host_addr_t host_ar_i,
  output logic host_r_valid_o,
  input  logic host_r_ready_i,
  output logic [HOST_ID_WIDTH-1:0] host_r_id_o,
  output logic [BusBits-1:0] host_r_data_o,
  output resp_e host_r_resp_o,
  output logic host_r_last_o,
  input  logic host_aw_valid_i,
  output logic host_aw_ready_o,
  input  host_addr_t host_aw_i,
  input  logic host_w_valid_i,
  output logic host_w_ready_o,
  input  logic [BusBits-1:0] host_w_data_i,
  input  logic [StrbW-1:0] host_w_strb_i,
  input  logic host_w_last_i,
  output logic host_b_valid_o,
  input  logic host_b_ready_i,
  output logic [HOST_ID_WIDTH-1:0] host_b_id_o,
  output resp_e host_b_resp_o,

  // DRAM port
  output logic axi_ar_valid_o,
  input  logic axi_ar_ready_i,
  output axi_addr_t axi_ar_o,
  input  logic axi_r_valid_i,
  output logic axi_r_ready_o,
  input  logic [AXI_ID_WIDTH-1:0] axi_r_id_i,
  input  logic [BusBits-1:0] axi_r_data_i,
  input  resp_e axi_r_resp_i,
  input  logic axi_r_last_i,
  output logic axi_aw_valid_o,
  input  logic axi_aw_ready_i,
  output axi_addr_t axi_aw_o,
  output logic axi_w_valid_o,
  input  logic axi_w_ready_i,
  output logic [BusBits-1:0] axi_w_data_o,
  output logic [StrbW-1:0] axi_w_strb_o,
  output logic axi_w_last_o,
  input  logic axi_b_valid_i,
  output logic axi_b_ready_o,
  input  logic [AXI_ID_WIDTH-1:0] axi_b_id_i,
  input  resp_e axi_b_resp_i
);
  localparam int unsigned Readers      = 8;
  localparam int unsigned Writers      = 5;
  localparam int unsigned Ctrl         = 0;
  localparam int unsigned Move         = 1;
  localparam int unsigned Matrix       = 2;
  localparam int unsigned VectorSource = 3;  // to 5
  localparam int unsigned GatherIndex  = 6;
  localparam int unsigned GatherData   = 7;
  localparam int unsigned Vector       = 3;
  localparam int unsigned Gather       = 4;

  logic [Readers-1:0]                      rd_req_valid, rd_req_ready, rd_rsp_valid, rd_rsp_ready;
  logic [Readers-1:0][ADDR_WIDTH-1:0]      rd_req_addr;
  logic [Readers-1:0][REQ_BYTES_WIDTH-1:0] rd_req_bytes;
  logic [Writers-1:0][ADDR_WIDTH-1:0]      wr_req_addr;
  logic [Writers-1:0][REQ_BYTES_WIDTH-1:0] wr_req_bytes;
  logic [Writers-1:0]                      wr_req_valid, wr_req_ready, wr_data_valid, wr_data_ready;
  logic [Writers-1:0]                      wr_rsp_valid, wr_rsp_err;
  logic [Writers-1:0][BusBits-1:0]         wr_data;
  logic [Writers-1:0][StrbW-1:0]           wr_strb;
  logic [BusBits-1:0]                      rd_rsp_data;
  logic                                    rd_rsp_err, rd_beat, wr_beat;

  npu_engine_cmd_t cmd;
  logic            matrix_valid, matrix_ready, matrix_done, move_valid, move_ready, move_done;
  logic            vector_valid, vector_ready, vector_done, gather_valid, gather_ready, gather_done;
  error_e          matrix_err, move_err, vector_err, gather_err;
  npu_stats_t      matrix_stats, move_stats, vector_stats, gather_stats;
  logic            soft_rst, engine_rst_n;

  assign engine_rst_n = rst_ni && !soft_rst;

  npu_ctrl #(
    .ArraySize(ArraySize), .BusBits(BusBits), .FmaLatency(FmaLatency), .MemBase(MemBase),
    .MemLimit(MemLimit)
  ) u_ctrl (
    .clk_i, .rst_ni,
    .s_axil_awvalid_i, .s_axil_awready_o, .s_axil_awaddr_i, .s_axil_awprot_i,
    .s_axil_wvalid_i, .s_axil_wready_o, .s_axil_wdata_i, .s_axil_wstrb_i,
    .s_axil_bvalid_o, .s_axil_bready_i, .s_axil_bresp_o, .s_axil_arvalid_i,
    .s_axil_arready_o, .s_axil_araddr_i, .s_axil_arprot_i, .s_axil_rvalid_o,
    .s_axil_rready_i, .s_axil_rdata_o, .s_axil_rresp_o,
    .irq_o, .soft_rst_o(soft_rst),
    .rd_req_valid_o(rd_req_valid[Ctrl]),
    .rd_req_ready_i(rd_req_ready[Ctrl]),
    .rd_req_addr_o(rd_req_addr[Ctrl]),
    .rd_req_bytes_o(rd_req_bytes[Ctrl]),
    .rd_rsp_valid_i(rd_rsp_valid[Ctrl]),
    .rd_rsp_ready_o(rd_rsp_ready[Ctrl]),
    .rd_rsp_data_i(rd_rsp_data), .rd_rsp_err_i(rd_rsp_err),
    .wr_req_valid_o(wr_req_valid[Ctrl]),
    .wr_req_ready_i(wr_req_ready[Ctrl]),
    .wr_req_addr_o(wr_req_addr[Ctrl]),
    .wr_req_bytes_o(wr_req_bytes[Ctrl]),
    .wr_data_valid_o(wr_data_valid[Ctrl]),
    .wr_data_ready_i(wr_data_ready[Ctrl]),
    .wr_data_o(wr_data[Ctrl]),
    .wr_strb_o(wr_strb[Ctrl]),
    .wr_rsp_valid_i(wr_rsp_valid[Ctrl]),
    .wr_rsp_err_i(wr_rsp_err[Ctrl]),
    .engine_cmd_o(cmd),
    .matrix_valid_o(matrix_valid), .matrix_ready_i(matrix_ready), .matrix_done_i(matrix_done),
    .matrix_err_i(matrix_err), .matrix_stats_i(matrix_stats),
    .move_valid_o(move_valid), .move_ready_i(move_ready), .move_done_i(move_done),
    .move_err_i(move_err), .move_stats_i(move_stats),
    .vector_valid_o(vector_valid), .vector_ready_i(vector_ready), .vector_done_i(vector_done),
    .vector_err_i(vector_err), .vector_stats_i(vector_stats),
    .gather_valid_o(gather_valid), .gather_ready_i(gather_ready), .gather_done_i(gather_done),
    .gather_err_i(gather_err), .gather_stats_i(gather_stats),
    .rd_beat_i(rd_beat), .wr_beat_i(wr_beat)
  );

  npu_matrix #(
    .ArraySize(ArraySize), .BusBits(BusBits), .FmaLatency(FmaLatency), .AccTiles(AccTiles),
    .RowTiles(RowTiles), .WeightSlots(WeightSlots)
  ) u_matrix (
    .clk_i, .rst_ni(engine_rst_n),
    .cmd_valid_i(matrix_valid), .cmd_ready_o(matrix_ready), .cmd_i(cmd),
    .done_o(matrix_done), .err_o(matrix_err), .stats_o(matrix_stats),
    .rd_req_valid_o(rd_req_valid[Matrix]),
    .rd_req_ready_i(rd_req_ready[Matrix]),
    .rd_req_addr_o(rd_req_addr[Matrix]),
    .rd_req_bytes_o(rd_req_bytes[Matrix]),
    .rd_rsp_valid_i(rd_rsp_valid[Matrix]),
    .rd_rsp_ready_o(rd_rsp_ready[Matrix]),
    .rd_rsp_data_i(rd_rsp_data), .rd_rsp_err_i(rd_rsp_err),
    .wr_req_valid_o(wr_req_valid[Matrix]),
    .wr_req_ready_i(wr_req_ready[Matrix]),
    .wr_req_addr_o(wr_req_addr[Matrix]),
    .wr_req_bytes_o(wr_req_bytes[Matrix]),
    .wr_data_valid_o(wr_data_valid[Matrix]),
    .wr_data_ready_i(wr_data_ready[Matrix]),
    .wr_data_o(wr_data[Matrix]),
    .wr_strb_o(wr_strb[Matrix]),
    .wr_rsp_valid_i(wr_rsp_valid[Matrix]),
    .wr_rsp_err_i(wr_rsp_err[Matrix])
  );

  npu_move #(.BusBits(BusBits)) u_move (
    .clk_i, .rst_ni(engine_rst_n),
    .cmd_valid_i(move_valid), .cmd_ready_o(move_ready), .cmd_i(cmd),
    .done_o(move_done), .err_o(move_err), .stats_o(move_stats),
    .rd_req_valid_o(rd_req_valid[Move]),
    .rd_req_ready_i(rd_req_ready[Move]),
    .rd_req_addr_o(rd_req_addr[Move]),
    .rd_req_bytes_o(rd_req_bytes[Move]),
    .rd_rsp_valid_i(rd_rsp_valid[Move]),
    .rd_rsp_ready_o(rd_rsp_ready[Move]),
    .rd_rsp_data_i(rd_rsp_data), .rd_rsp_err_i(rd_rsp_err),
    .wr_req_valid_o(wr_req_valid[Move]),
    .wr_req_ready_i(wr_req_ready[Move]),
    .wr_req_addr_o(wr_req_addr[Move]),
    .wr_req_bytes_o(wr_req_bytes[Move]),
    .wr_data_valid_o(wr_data_valid[Move]),
    .wr_data_ready_i(wr_data_ready[Move]),
    .wr_data_o(wr_data[Move]),
    .wr_strb_o(wr_strb[Move]),
    .wr_rsp_valid_i(wr_rsp_valid[Move]),
    .wr_rsp_err_i(wr_rsp_err[Move])
  );

  npu_vector #(
    .VectorLanes(VectorLanes), .BusBits(BusBits), .FmaLatency(FmaLatency)
  ) u_vector (
    .clk_i, .rst_ni(engine_rst_n),
    .cmd_valid_i(vector_valid), .cmd_ready_o(vector_ready), .cmd_i(cmd),
    .done_o(vector_done), .err_o(vector_err), .stats_o(vector_stats),
    .rd_req_valid_o(rd_req_valid[VectorSource +: MAX_SOURCES]),
    .rd_req_ready_i(rd_req_ready[VectorSource +: MAX_SOURCES]),
    .rd_req_addr_o(rd_req_addr[VectorSource +: MAX_SOURCES]),
    .rd_req_bytes_o(rd_req_bytes[VectorSource +: MAX_SOURCES]),
    .rd_rsp_valid_i(rd_rsp_valid[VectorSource +: MAX_SOURCES]),
    .rd_rsp_ready_o(rd_rsp_ready[VectorSource +: MAX_SOURCES]),
    .rd_rsp_data_i(rd_rsp_data), .rd_rsp_err_i(rd_rsp_err),
    .wr_req_valid_o(wr_req_valid[Vector]),
    .wr_req_ready_i(wr_req_ready[Vector]),
    .wr_req_addr_o(wr_req_addr[Vector]),
    .wr_req_bytes_o(wr_req_bytes[Vector]),
    .wr_data_valid_o(wr_data_valid[Vector]),
    .wr_data_ready_i(wr_data_ready[Vector]),
    .wr_data_o(wr_data[Vector]),
    .wr_strb_o(wr_strb[Vector]),
    .wr_rsp_valid_i(wr_rsp_valid[Vector]),
    .wr_rsp_err_i(wr_rsp_err[Vector])
  );

  npu_gather #(.BusBits(BusBits), .FmaLatency(FmaLatency)) u_gather (
    .clk_i, .rst_ni(engine_rst_n),
    .cmd_valid_i(gather_valid), .cmd_ready_o(gather_ready), .cmd_i(cmd),
    .done_o(gather_done), .err_o(gather_err), .stats_o(gather_stats),
    .rd_req_valid_o(rd_req_valid[GatherData:GatherIndex]),
    .rd_req_ready_i(rd_req_ready[GatherData:GatherIndex]),
    .rd_req_addr_o(rd_req_addr[GatherData:GatherIndex]),
    .rd_req_bytes_o(rd_req_bytes[GatherData:GatherIndex]),
    .rd_rsp_valid_i(rd_rsp_valid[GatherData:GatherIndex]),
    .rd_rsp_ready_o(rd_rsp_ready[GatherData:GatherIndex]),
    .rd_rsp_data_i(rd_rsp_data), .rd_rsp_err_i(rd_rsp_err),
    .wr_req_valid_o(wr_req_valid[Gather]),
    .wr_req_ready_i(wr_req_ready[Gather]),
    .wr_req_addr_o(wr_req_addr[Gather]),
    .wr_req_bytes_o(wr_req_bytes[Gather]),
    .wr_data_valid_o(wr_data_valid[Gather]),
    .wr_data_ready_i(wr_data_ready[Gather]),
    .wr_data_o(wr_data[Gather]),
    .wr_strb_o(wr_strb[Gather]),
    .wr_rsp_valid_i(wr_rsp_valid[Gather]),
    .wr_rsp_err_i(wr_rsp_err[Gather])
  );

  npu_mem_ctrl #(
    .BusBits(BusBits), .NumReadClients(Readers), .NumWriteClients(Writers), .MemBase(MemBase),
    .MemLimit(MemLimit)
  ) u_mem_ctrl (
    .clk_i, .rst_ni,
    .rd_req_valid_i(rd_req_valid),
    .rd_req_ready_o(rd_req_ready),
    .rd_req_addr_i(rd_req_addr),
    .rd_req_bytes_i(rd_req_bytes),
    .rd_rsp_valid_o(rd_rsp_valid),
    .rd_rsp_ready_i(rd_rsp_ready),
    .rd_rsp_data_o(rd_rsp_data),
    .rd_rsp_err_o(rd_rsp_err),
    .wr_req_valid_i(wr_req_valid),
    .wr_req_ready_o(wr_req_ready),
    .wr_req_addr_i(wr_req_addr),
    .wr_req_bytes_i(wr_req_bytes),
    .wr_data_valid_i(wr_data_valid),
    .wr_data_ready_o(wr_data_ready),
    .wr_data_i(wr_data),
    .wr_strb_i(wr_strb),
    .wr_rsp_valid_o(wr_rsp_valid),
    .wr_rsp_err_o(wr_rsp_err),
    .host_ar_valid_i, .host_ar_ready_o, .host_ar_i, .host_r_valid_o,
    .host_r_ready_i, .host_r_id_o, .host_r_data_o, .host_r_resp_o,
    .host_r_last_o, .host_aw_valid_i, .host_aw_ready_o, .host_aw_i,
    .host_w_valid_i, .host_w_ready_o, .host_w_data_i, .host_w_strb_i,
    .host_w_last_i, .host_b_valid_o, .host_b_ready_i, .host_b_id_o,
    .host_b_resp_o, .axi_ar_valid_o, .axi_ar_ready_i, .axi_ar_o,
    .axi_r_valid_i, .axi_r_ready_o, .axi_r_id_i, .axi_r_data_i,
    .axi_r_resp_i, .axi_r_last_i, .axi_aw_valid_o, .axi_aw_ready_i,
    .axi_aw_o, .axi_w_valid_o, .axi_w_ready_i, .axi_w_data_o,
    .axi_w_strb_o, .axi_w_last_o, .axi_b_valid_i, .axi_b_ready_o,
    .axi_b_id_i, .axi_b_resp_i,
    .rd_beat_o(rd_beat), .wr_beat_o(wr_beat)
  );
endmodule
