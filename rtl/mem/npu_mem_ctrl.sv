// SPDX-License-Identifier: Apache-2.0
/// Memory controller: turns the requests of the engines and the host window into legal AXI4 bursts.
///
/// Read client c asks for [addr, addr + bytes), 1 to 65536 bytes at any alignment, and gets one
/// response beat per bus-aligned beat that covers the range, unshifted and in request order. All
/// clients share `rd_rsp_data_o` and `rd_rsp_err_o`; `rd_rsp_valid_o[c]` says whose beat it is. A
/// client that refuses a beat holds up every client, so it must not wait for anything but its own
/// earlier beats and its own writes before it takes one.
///
/// Write client c asks in the same way and supplies one beat per covering beat in request order,
/// during or after the request; `wr_rsp_valid_o[c]` pulses once per request when all its bursts are
/// acknowledged, with the OR of their errors. A client that supplies data late holds up every
/// writer.
///
/// The host window cannot hold up the engines: its writes wait for all their data and its reads for
/// room to land. Illegal host bursts and those that leave [MemBase, MemLimit) are answered DECERR.
///
/// Latency from request to address channel 2 cycles, from read data to client 1 cycle.
module npu_mem_ctrl
  import npu_pkg::*;
  import npu_mem_pkg::*;
#(
  parameter int unsigned BusBits         = 256,
  parameter int unsigned NumReadClients  = 3,
  parameter int unsigned NumWriteClients = 3,
  parameter logic [63:0] MemBase         = 64'h0000_0000,
  parameter logic [63:0] MemLimit        = 64'h2000_0000,  // first byte beyond the memory
  /// Read beats that the engines together may have in flight: covers the latency of the DRAM, and
  /// bounds how long a host read waits behind them.
  parameter int unsigned MaxReadBeats    = 1024,
  localparam int unsigned StrbW          = BusBits / 8
) (
  input  logic                                            clk_i,
  input  logic                                            rst_ni,

  // Read clients
  input  logic [NumReadClients-1:0]                       rd_req_valid_i,
  output logic [NumReadClients-1:0]                       rd_req_ready_o,
  input  logic [NumReadClients-1:0][ADDR_WIDTH-1:0]       rd_req_addr_i,
  input  logic [NumReadClients-1:0][REQ_BYTES_WIDTH-1:0]  rd_req_bytes_i,
  output logic [NumReadClients-1:0]                       rd_rsp_valid_o,
  input  logic [NumReadClients-1:0]                       rd_rsp_ready_i,
  output logic [BusBits-1:0]                              rd_rsp_data_o,
  output logic                                            rd_rsp_err_o,

  // Write clients
  input  logic [NumWriteClients-1:0]                      wr_req_valid_i,
  output logic [NumWriteClients-1:0]                      wr_req_ready_o,
  input  logic [NumWriteClients-1:0][ADDR_WIDTH-1:0]      wr_req_addr_i,
  input  logic [NumWriteClients-1:0][REQ_BYTES_WIDTH-1:0] wr_req_bytes_i,
  input  logic [NumWriteClients-1:0]                      wr_data_valid_i,
  output logic [NumWriteClients-1:0]                      wr_data_ready_o,
  input  logic [NumWriteClients-1:0][BusBits-1:0]         wr_data_i,
  input  logic [NumWriteClients-1:0][StrbW-1:0]           wr_strb_i,
  output logic [NumWriteClients-1:0]                      wr_rsp_valid_o,
  output logic [NumWriteClients-1:0]                      wr_rsp_err_o,

  // Host window (s_axi)
  input  logic                                            host_ar_valid_i,
  output logic                                            host_ar_ready_o,
  input  host_addr_t                                      host_ar_i,
  output logic                                            host_r_valid_o,
  input  logic                                            host_r_ready_i,
  output logic [HOST_ID_WIDTH-1:0]                        host_r_id_o,
  output logic [BusBits-1:0]                              host_r_data_o,
  output resp_e                                           host_r_resp_o,
  output logic                                            host_r_last_o,
  input  logic                                            host_aw_valid_i,
  output logic                                            host_aw_ready_o,
  input  host_addr_t                                      host_aw_i,
  input  logic                                            host_w_valid_i,
  output logic                                            host_w_ready_o,
  input  logic [BusBits-1:0]                              host_w_data_i,
  input  logic [StrbW-1:0]                                host_w_strb_i,
  input  logic                                            host_w_last_i,
  output logic                                            host_b_valid_o,
  input  logic                                            host_b_ready_i,
  output logic [HOST_ID_WIDTH-1:0]                        host_b_id_o,
  output resp_e                                           host_b_resp_o,

  // DRAM port (m_axi)
  output logic                                            axi_ar_valid_o,
  input  logic                                            axi_ar_ready_i,
  output axi_addr_t                                       axi_ar_o,
  input  logic                                            axi_r_valid_i,
  output logic                                            axi_r_ready_o,
  input  logic [AXI_ID_WIDTH-1:0]                         axi_r_id_i,
  input  logic [BusBits-1:0]                              axi_r_data_i,
  input  resp_e                                           axi_r_resp_i,
  input  logic                                            axi_r_last_i,
  output logic                                            axi_aw_valid_o,
  input  logic                                            axi_aw_ready_i,
  output axi_addr_t                                       axi_aw_o,
  output logic                                            axi_w_valid_o,
  input  logic                                            axi_w_ready_i,
  output logic [BusBits-1:0]                              axi_w_data_o,
  output logic [StrbW-1:0]                                axi_w_strb_o,
  output logic                                            axi_w_last_o,
  input  logic                                            axi_b_valid_i,
  output logic                                            axi_b_ready_o,
  input  logic [AXI_ID_WIDTH-1:0]                         axi_b_id_i,
  input  resp_e                                           axi_b_resp_i,

  // One bit per beat on the R and W channels of the DRAM port
  output logic                                            rd_beat_o,
  output logic                                            wr_beat_o
);
  logic                     hr_valid, hr_ready, hr_beat, hw_valid, hw_ready;
  logic                     hw_data_valid, hw_data_ready, hw_ack_valid, beat_last;
  host_addr_t               hr_burst, hw_burst;
  logic [BusBits-1:0]       hw_data;
  logic [StrbW-1:0]         hw_strb;
  logic [HOST_ID_WIDTH-1:0] beat_id, hw_ack_id;
  resp_e                    beat_resp, hw_ack_resp;

  npu_host_read #(.BusBits(BusBits), .MemBase(MemBase), .MemLimit(MemLimit)) u_host_read (
    .clk_i, .rst_ni,
    .ar_valid_i(host_ar_valid_i), .ar_ready_o(host_ar_ready_o), .ar_i(host_ar_i),
    .r_valid_o(host_r_valid_o), .r_ready_i(host_r_ready_i), .r_id_o(host_r_id_o),
    .r_data_o(host_r_data_o), .r_resp_o(host_r_resp_o), .r_last_o(host_r_last_o),
    .burst_valid_o(hr_valid), .burst_ready_i(hr_ready), .burst_o(hr_burst),
    .beat_valid_i(hr_beat), .beat_id_i(beat_id), .beat_data_i(rd_rsp_data_o),
    .beat_resp_i(beat_resp), .beat_last_i(beat_last)
  );

  npu_host_write #(.BusBits(BusBits), .MemBase(MemBase), .MemLimit(MemLimit)) u_host_write (
    .clk_i, .rst_ni,
    .aw_valid_i(host_aw_valid_i), .aw_ready_o(host_aw_ready_o), .aw_i(host_aw_i),
    .w_valid_i(host_w_valid_i), .w_ready_o(host_w_ready_o), .w_data_i(host_w_data_i),
    .w_strb_i(host_w_strb_i), .w_last_i(host_w_last_i),
    .b_valid_o(host_b_valid_o), .b_ready_i(host_b_ready_i), .b_id_o(host_b_id_o),
    .b_resp_o(host_b_resp_o),
    .burst_valid_o(hw_valid), .burst_ready_i(hw_ready), .burst_o(hw_burst),
    .data_valid_o(hw_data_valid), .data_ready_i(hw_data_ready), .data_o(hw_data),
    .strb_o(hw_strb),
    .ack_valid_i(hw_ack_valid), .ack_id_i(hw_ack_id), .ack_resp_i(hw_ack_resp)
  );

  npu_read_path #(
    .BusBits(BusBits), .NumClients(NumReadClients), .MaxReadBeats(MaxReadBeats)
  ) u_read (
    .clk_i, .rst_ni,
    .req_valid_i(rd_req_valid_i), .req_ready_o(rd_req_ready_o),
    .req_addr_i(rd_req_addr_i), .req_bytes_i(rd_req_bytes_i),
    .rsp_valid_o(rd_rsp_valid_o), .rsp_ready_i(rd_rsp_ready_i),
    .host_valid_i(hr_valid), .host_ready_o(hr_ready), .host_i(hr_burst), .host_beat_o(hr_beat),
    .beat_id_o(beat_id), .beat_data_o(rd_rsp_data_o), .beat_resp_o(beat_resp),
    .beat_last_o(beat_last),
    .axi_ar_valid_o, .axi_ar_ready_i, .axi_ar_o,
    .axi_r_valid_i, .axi_r_ready_o, .axi_r_id_i, .axi_r_data_i, .axi_r_resp_i, .axi_r_last_i
  );

  npu_write_path #(.BusBits(BusBits), .NumClients(NumWriteClients)) u_write (
    .clk_i, .rst_ni,
    .req_valid_i(wr_req_valid_i), .req_ready_o(wr_req_ready_o),
    .req_addr_i(wr_req_addr_i), .req_bytes_i(wr_req_bytes_i),
    .data_valid_i(wr_data_valid_i), .data_ready_o(wr_data_ready_o),
    .data_i(wr_data_i), .strb_i(wr_strb_i),
    .rsp_valid_o(wr_rsp_valid_o), .rsp_err_o(wr_rsp_err_o),
    .host_valid_i(hw_valid), .host_ready_o(hw_ready), .host_i(hw_burst),
    .host_data_valid_i(hw_data_valid), .host_data_ready_o(hw_data_ready),
    .host_data_i(hw_data), .host_strb_i(hw_strb),
    .host_ack_valid_o(hw_ack_valid), .host_ack_id_o(hw_ack_id), .host_ack_resp_o(hw_ack_resp),
    .axi_aw_valid_o, .axi_aw_ready_i, .axi_aw_o,
    .axi_w_valid_o, .axi_w_ready_i, .axi_w_data_o, .axi_w_strb_o, .axi_w_last_o,
    .axi_b_valid_i, .axi_b_ready_o, .axi_b_id_i, .axi_b_resp_i
  );

  assign rd_rsp_err_o = beat_resp[1];  // SLVERR and DECERR
  assign rd_beat_o    = axi_r_valid_i && axi_r_ready_o;
  assign wr_beat_o    = axi_w_valid_o && axi_w_ready_i;
endmodule
