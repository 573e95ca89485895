// SPDX-License-Identifier: Apache-2.0
/// The memory controller with the GATHER/SCATTER engine on read clients 0 and 1 and on write client
/// 0, and plain pins on the others.
module gather_bench
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_mem_pkg::*;
#(
  parameter int unsigned BusBits  = 256,
  parameter logic [63:0] MemBase  = 64'h3_0010_0640,
  parameter logic [63:0] MemLimit = 64'h3_002f_f9c0,
  localparam int unsigned StrbW   = BusBits / 8,
  localparam int unsigned NumRead = 4,
  localparam int unsigned NumWrite = 2
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // Engine command; the indices' sizes are those of the other side but for the table's dimension
  input  logic                    cmd_valid,
  output logic                    cmd_ready,
  input  logic                    cmd_scatter,
  input  logic                    cmd_add,
  input  logic [3:0]              cmd_dtype,
  input  logic                    cmd_wide,
  input  logic [2:0]              cmd_dim,
  input  logic [63:0]             cmd_table_base,
  input  logic [MAX_RANK*32-1:0]  cmd_table_size,
  input  logic [MAX_RANK*32-1:0]  cmd_table_stride,
  input  logic [63:0]             cmd_index_base,
  input  logic [MAX_RANK*32-1:0]  cmd_index_stride,
  input  logic [63:0]             cmd_plain_base,
  input  logic [MAX_RANK*32-1:0]  cmd_plain_stride,
  input  logic [MAX_RANK*32-1:0]  cmd_size,
  output logic                    done,
  output logic [3:0]              err,
  output logic [2:0]              stats,

  // Read clients 2 and 3
  input  logic [1:0]              rd_req_valid,
  output logic [1:0]              rd_req_ready,
  input  logic [63:0]             rd_req_addr0,
  input  logic [63:0]             rd_req_addr1,
  input  logic [16:0]             rd_req_bytes0,
  input  logic [16:0]             rd_req_bytes1,
  output logic [1:0]              rd_rsp_valid,
  input  logic [1:0]              rd_rsp_ready,
  output logic [BusBits-1:0]      rd_rsp_data,
  output logic                    rd_rsp_err,

  // Write client 1
  input  logic                    wr_req_valid,
  output logic                    wr_req_ready,
  input  logic [63:0]             wr_req_addr,
  input  logic [16:0]             wr_req_bytes,
  input  logic                    wr_data_valid,
  output logic                    wr_data_ready,
  input  logic [BusBits-1:0]      wr_data,
  input  logic [StrbW-1:0]        wr_strb,
  output logic                    wr_rsp_valid,
  output logic                    wr_rsp_err,

  // Host window
  input  logic                    s_arvalid,
  output logic                    s_arready,
  input  logic [3:0]              s_arid,
  input  logic [63:0]             s_araddr,
  input  logic [7:0]              s_arlen,
  input  logic [2:0]              s_arsize,
  input  logic [1:0]              s_arburst,
  output logic                    s_rvalid,
  input  logic                    s_rready,
  output logic [3:0]              s_rid,
  output logic [BusBits-1:0]      s_rdata,
  output logic [1:0]              s_rresp,
  output logic                    s_rlast,
  input  logic                    s_awvalid,
  output logic                    s_awready,
  input  logic [3:0]              s_awid,
  input  logic [63:0]             s_awaddr,
  input  logic [7:0]              s_awlen,
  input  logic [2:0]              s_awsize,
  input  logic [1:0]              s_awburst,
  input  logic                    s_wvalid,
  output logic                    s_wready,
  input  logic [BusBits-1:0]      s_wdata,
  input  logic [StrbW-1:0]        s_wstrb,
  input  logic                    s_wlast,
  output logic                    s_bvalid,
  input  logic                    s_bready,
  output logic [3:0]              s_bid,
  output logic [1:0]              s_bresp,

  // DRAM port
  output logic                    m_arvalid,
  input  logic                    m_arready,
  output logic [7:0]              m_arid,
  output logic [63:0]             m_araddr,
  output logic [7:0]              m_arlen,
  output logic [2:0]              m_arsize,
  output logic [1:0]              m_arburst,
  input  logic                    m_rvalid,
  output logic                    m_rready,
  input  logic [7:0]              m_rid,
  input  logic [BusBits-1:0]      m_rdata,
  input  logic [1:0]              m_rresp,
  input  logic                    m_rlast,
  output logic                    m_awvalid,
  input  logic                    m_awready,
  output logic [7:0]              m_awid,
  output logic [63:0]             m_awaddr,
  output logic [7:0]              m_awlen,
  output logic [2:0]              m_awsize,
  output logic [1:0]              m_awburst,
  output logic                    m_wvalid,
  input  logic                    m_wready,
  output logic [BusBits-1:0]      m_wdata,
  output logic [StrbW-1:0]        m_wstrb,
  output logic                    m_wlast,
  input  logic                    m_bvalid,
  output logic                    m_bready,
  input  logic [7:0]              m_bid,
  input  logic [1:0]              m_bresp,
  output logic                    rd_beat,
  output logic                    wr_beat
);
  npu_engine_cmd_t cmd;
  error_e          engine_err;
  npu_stats_t      engine_stats;
  resp_e           host_r_resp, host_b_resp;
  axi_addr_t       axi_ar, axi_aw;
  host_addr_t      host_ar, host_aw;

  logic [1:0]                      e_rd_req_valid, e_rd_req_ready, e_rd_rsp_valid, e_rd_rsp_ready;
  logic [1:0][ADDR_WIDTH-1:0]      e_rd_req_addr;
  logic [1:0][REQ_BYTES_WIDTH-1:0] e_rd_req_bytes;
  logic                            e_wr_req_valid, e_wr_req_ready, e_wr_data_valid;
  logic                            e_wr_data_ready, e_wr_rsp_valid, e_wr_rsp_err;
  logic [ADDR_WIDTH-1:0]           e_wr_req_addr;
  logic [REQ_BYTES_WIDTH-1:0]      e_wr_req_bytes;
  logic [BusBits-1:0]              e_wr_data;
  logic [StrbW-1:0]                e_wr_strb;
  npu_tensor_t                     table_view, plain_view;

  always_comb begin
    table_view = '{base: cmd_table_base, size: cmd_table_size, stride: cmd_table_stride};
    plain_view = '{base: cmd_plain_base, size: cmd_size, stride: cmd_plain_stride};

    cmd            = '0;
    cmd.opcode     = cmd_scatter ? OPCODE_SCATTER : OPCODE_GATHER;
    cmd.accumulate = cmd_add;
    cmd.src_dtype  = dtype_e'(cmd_dtype);
    cmd.dst_dtype  = dtype_e'(cmd_dtype);
    cmd.src2_dtype = cmd_wide ? DTYPE_INT64 : DTYPE_INT32;
    cmd.dim        = cmd_dim;
    cmd.src1       = cmd_scatter ? plain_view : table_view;
    cmd.src2       = '{base: cmd_index_base, size: cmd_size, stride: cmd_index_stride};
    cmd.dst        = cmd_scatter ? table_view : plain_view;
  end

  assign host_ar = {s_arid, s_araddr, s_arlen, s_arsize, s_arburst};
  assign host_aw = {s_awid, s_awaddr, s_awlen, s_awsize, s_awburst};

  assign err   = engine_err;
  assign stats = engine_stats;

  npu_gather #(.BusBits(BusBits)) u_gather (
    .clk_i, .rst_ni,
    .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_i(cmd),
    .done_o(done), .err_o(engine_err), .stats_o(engine_stats),
    .rd_req_valid_o(e_rd_req_valid), .rd_req_ready_i(e_rd_req_ready),
    .rd_req_addr_o(e_rd_req_addr), .rd_req_bytes_o(e_rd_req_bytes),
    .rd_rsp_valid_i(e_rd_rsp_valid), .rd_rsp_ready_o(e_rd_rsp_ready),
    .rd_rsp_data_i(rd_rsp_data), .rd_rsp_err_i(rd_rsp_err),
    .wr_req_valid_o(e_wr_req_valid), .wr_req_ready_i(e_wr_req_ready),
    .wr_req_addr_o(e_wr_req_addr), .wr_req_bytes_o(e_wr_req_bytes),
    .wr_data_valid_o(e_wr_data_valid), .wr_data_ready_i(e_wr_data_ready),
    .wr_data_o(e_wr_data), .wr_strb_o(e_wr_strb),
    .wr_rsp_valid_i(e_wr_rsp_valid), .wr_rsp_err_i(e_wr_rsp_err)
  );

  npu_mem_ctrl #(
    .BusBits(BusBits), .NumReadClients(NumRead), .NumWriteClients(NumWrite),
    .MemBase(MemBase), .MemLimit(MemLimit)
  ) u_mem (
    .clk_i, .rst_ni,
    .rd_req_valid_i({rd_req_valid, e_rd_req_valid}),
    .rd_req_ready_o({rd_req_ready, e_rd_req_ready}),
    .rd_req_addr_i({rd_req_addr1, rd_req_addr0, e_rd_req_addr}),
    .rd_req_bytes_i({rd_req_bytes1, rd_req_bytes0, e_rd_req_bytes}),
    .rd_rsp_valid_o({rd_rsp_valid, e_rd_rsp_valid}),
    .rd_rsp_ready_i({rd_rsp_ready, e_rd_rsp_ready}),
    .rd_rsp_data_o(rd_rsp_data), .rd_rsp_err_o(rd_rsp_err),
    .wr_req_valid_i({wr_req_valid, e_wr_req_valid}),
    .wr_req_ready_o({wr_req_ready, e_wr_req_ready}),
    .wr_req_addr_i({wr_req_addr, e_wr_req_addr}),
    .wr_req_bytes_i({wr_req_bytes, e_wr_req_bytes}),
    .wr_data_valid_i({wr_data_valid, e_wr_data_valid}),
    .wr_data_ready_o({wr_data_ready, e_wr_data_ready}),
    .wr_data_i({wr_data, e_wr_data}), .wr_strb_i({wr_strb, e_wr_strb}),
    .wr_rsp_valid_o({wr_rsp_valid, e_wr_rsp_valid}), .wr_rsp_err_o({wr_rsp_err, e_wr_rsp_err}),
    .host_ar_valid_i(s_arvalid), .host_ar_ready_o(s_arready),
    .host_ar_i(host_ar),
    .host_r_valid_o(s_rvalid), .host_r_ready_i(s_rready), .host_r_id_o(s_rid),
    .host_r_data_o(s_rdata), .host_r_resp_o(host_r_resp), .host_r_last_o(s_rlast),
    .host_aw_valid_i(s_awvalid), .host_aw_ready_o(s_awready),
    .host_aw_i(host_aw),
    .host_w_valid_i(s_wvalid), .host_w_ready_o(s_wready), .host_w_data_i(s_wdata),
    .host_w_strb_i(s_wstrb), .host_w_last_i(s_wlast),
    .host_b_valid_o(s_bvalid), .host_b_ready_i(s_bready), .host_b_id_o(s_bid),
    .host_b_resp_o(host_b_resp),
    .axi_ar_valid_o(m_arvalid), .axi_ar_ready_i(m_arready), .axi_ar_o(axi_ar),
    .axi_r_valid_i(m_rvalid), .axi_r_ready_o(m_rready), .axi_r_id_i(m_rid),
    .axi_r_data_i(m_rdata), .axi_r_resp_i(resp_e'(m_rresp)), .axi_r_last_i(m_rlast),
    .axi_aw_valid_o(m_awvalid), .axi_aw_ready_i(m_awready), .axi_aw_o(axi_aw),
    .axi_w_valid_o(m_wvalid), .axi_w_ready_i(m_wready), .axi_w_data_o(m_wdata),
    .axi_w_strb_o(m_wstrb), .axi_w_last_o(m_wlast),
    .axi_b_valid_i(m_bvalid), .axi_b_ready_o(m_bready), .axi_b_id_i(m_bid),
    .axi_b_resp_i(resp_e'(m_bresp)),
    .rd_beat_o(rd_beat), .wr_beat_o(wr_beat)
  );

  assign s_rresp = host_r_resp;
  assign s_bresp = host_b_resp;
  assign {m_arid, m_araddr, m_arlen, m_arsize} = {axi_ar.id, axi_ar.addr, axi_ar.len, axi_ar.size};
  assign {m_awid, m_awaddr, m_awlen, m_awsize} = {axi_aw.id, axi_aw.addr, axi_aw.len, axi_aw.size};
  assign m_arburst = axi_ar.burst;
  assign m_awburst = axi_aw.burst;
endmodule
