// SPDX-License-Identifier: Apache-2.0
/// Memory controller: turns the requests of its clients and of the host into legal AXI4 bursts.
///
/// npu_pkg states what clients ask for and what they get. A read client that refuses a beat delays
/// every client, and one that waits for its own writes before it takes one can block for ever:
/// another client's write may be before them that needs data from behind the beat. So a client asks
/// only for what it has room for; the matrix engine refuses a beat while lines of its operand
/// buffer go before it, one cycle each. A write client that supplies data late delays every writer.
///
/// The host port cannot delay the engines: its writes wait for all their data and its reads for
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
  parameter logic [63:0] MemBase,
  parameter logic [63:0] MemLimit,  // first byte beyond the memory
  /// Read beats that the engines together may have in flight: covers the latency of the DRAM, and
  /// bounds how long a host read waits behind them.
  parameter int unsigned MaxReadBeats    = 1024,
  /// Client beside whose reads the others have few beats in flight, see npu_read_path.
  parameter int unsigned CriticalReader  = 0,
  /// Whether a write is asked for only when all its data is here, see npu_write_buffer.
  parameter bit          WholeWrites     = 1'b0,
  localparam int unsigned StrbW          = BusBits / 8
) (
  input  logic                                            clk_i,
  input  logic                                            rst_ni,

  // Clients
  input  mem_rd_req_t [NumReadClients-1:0]                rd_req_i,
  output mem_rd_rsp_t [NumReadClients-1:0]                rd_rsp_o,
  output logic [BusBits-1:0]                              rd_data_o,
  input  mem_wr_req_t [NumWriteClients-1:0]               wr_req_i,
  output mem_wr_rsp_t [NumWriteClients-1:0]               wr_rsp_o,
  input  logic [NumWriteClients-1:0][BusBits-1:0]         wr_data_i,
  input  logic [NumWriteClients-1:0][StrbW-1:0]           wr_strb_i,

  // Host port (s_axi)
  input  host_req_t                                       host_req_i,
  output host_rsp_t                                       host_rsp_o,
  input  logic [BusBits-1:0]                              host_w_data_i,
  input  logic [StrbW-1:0]                                host_w_strb_i,
  output logic [BusBits-1:0]                              host_r_data_o,

  // DRAM port (m_axi)
  output axi_req_t                                        axi_req_o,
  input  axi_rsp_t                                        axi_rsp_i,
  output logic [BusBits-1:0]                              axi_w_data_o,
  output logic [StrbW-1:0]                                axi_w_strb_o,
  input  logic [BusBits-1:0]                              axi_r_data_i,

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
  logic                     aw_valid, aw_ready, w_valid, w_ready, w_last;
  axi_addr_t                aw;
  logic [BusBits-1:0]       w_data;
  logic [StrbW-1:0]         w_strb;

  npu_host_read #(.BusBits(BusBits), .MemBase(MemBase), .MemLimit(MemLimit)) u_host_read (
    .clk_i, .rst_ni,
    .ar_valid_i(host_req_i.ar_valid), .ar_ready_o(host_rsp_o.ar_ready), .ar_i(host_req_i.ar),
    .r_valid_o(host_rsp_o.r_valid), .r_ready_i(host_req_i.r_ready), .r_id_o(host_rsp_o.r_id),
    .r_data_o(host_r_data_o), .r_resp_o(host_rsp_o.r_resp), .r_last_o(host_rsp_o.r_last),
    .burst_valid_o(hr_valid), .burst_ready_i(hr_ready), .burst_o(hr_burst),
    .beat_valid_i(hr_beat), .beat_id_i(beat_id), .beat_data_i(rd_data_o),
    .beat_resp_i(beat_resp), .beat_last_i(beat_last)
  );

  npu_host_write #(.BusBits(BusBits), .MemBase(MemBase), .MemLimit(MemLimit)) u_host_write (
    .clk_i, .rst_ni,
    .aw_valid_i(host_req_i.aw_valid), .aw_ready_o(host_rsp_o.aw_ready), .aw_i(host_req_i.aw),
    .w_valid_i(host_req_i.w_valid), .w_ready_o(host_rsp_o.w_ready), .w_data_i(host_w_data_i),
    .w_strb_i(host_w_strb_i), .w_last_i(host_req_i.w_last),
    .b_valid_o(host_rsp_o.b_valid), .b_ready_i(host_req_i.b_ready), .b_id_o(host_rsp_o.b_id),
    .b_resp_o(host_rsp_o.b_resp),
    .burst_valid_o(hw_valid), .burst_ready_i(hw_ready), .burst_o(hw_burst),
    .data_valid_o(hw_data_valid), .data_ready_i(hw_data_ready), .data_o(hw_data),
    .strb_o(hw_strb),
    .ack_valid_i(hw_ack_valid), .ack_id_i(hw_ack_id), .ack_resp_i(hw_ack_resp)
  );

  npu_read_path #(
    .BusBits(BusBits), .NumClients(NumReadClients), .MaxReadBeats(MaxReadBeats),
    .Critical(CriticalReader)
  ) u_read (
    .clk_i, .rst_ni,
    .req_i(rd_req_i), .rsp_o(rd_rsp_o),
    .host_valid_i(hr_valid), .host_ready_o(hr_ready), .host_i(hr_burst), .host_beat_o(hr_beat),
    .beat_id_o(beat_id), .beat_data_o(rd_data_o), .beat_resp_o(beat_resp),
    .beat_last_o(beat_last),
    .ar_valid_o(axi_req_o.ar_valid), .ar_ready_i(axi_rsp_i.ar_ready), .ar_o(axi_req_o.ar),
    .r_valid_i(axi_rsp_i.r_valid), .r_ready_o(axi_req_o.r_ready), .r_id_i(axi_rsp_i.r_id),
    .r_data_i(axi_r_data_i), .r_resp_i(axi_rsp_i.r_resp), .r_last_i(axi_rsp_i.r_last)
  );

  npu_write_path #(.BusBits(BusBits), .NumClients(NumWriteClients)) u_write (
    .clk_i, .rst_ni,
    .req_i(wr_req_i), .rsp_o(wr_rsp_o), .data_i(wr_data_i), .strb_i(wr_strb_i),
    .host_valid_i(hw_valid), .host_ready_o(hw_ready), .host_i(hw_burst),
    .host_data_valid_i(hw_data_valid), .host_data_ready_o(hw_data_ready),
    .host_data_i(hw_data), .host_strb_i(hw_strb),
    .host_ack_valid_o(hw_ack_valid), .host_ack_id_o(hw_ack_id), .host_ack_resp_o(hw_ack_resp),
    .aw_valid_o(aw_valid), .aw_ready_i(aw_ready), .aw_o(aw),
    .w_valid_o(w_valid), .w_ready_i(w_ready), .w_data_o(w_data), .w_strb_o(w_strb),
    .w_last_o(w_last),
    .b_valid_i(axi_rsp_i.b_valid), .b_ready_o(axi_req_o.b_ready), .b_id_i(axi_rsp_i.b_id),
    .b_resp_i(axi_rsp_i.b_resp)
  );

  if (WholeWrites) begin : gen_store
    npu_write_buffer #(.BusBits(BusBits)) u_store (
      .clk_i, .rst_ni,
      .aw_valid_i(aw_valid), .aw_ready_o(aw_ready), .aw_i(aw),
      .w_valid_i(w_valid), .w_ready_o(w_ready), .w_data_i(w_data), .w_strb_i(w_strb),
      .w_last_i(w_last),
      .aw_valid_o(axi_req_o.aw_valid), .aw_ready_i(axi_rsp_i.aw_ready), .aw_o(axi_req_o.aw),
      .w_valid_o(axi_req_o.w_valid), .w_ready_i(axi_rsp_i.w_ready), .w_data_o(axi_w_data_o),
      .w_strb_o(axi_w_strb_o), .w_last_o(axi_req_o.w_last)
    );
  end else begin : gen_direct
    assign axi_req_o.aw_valid = aw_valid;
    assign axi_req_o.aw       = aw;
    assign aw_ready           = axi_rsp_i.aw_ready;
    assign axi_req_o.w_valid  = w_valid;
    assign axi_req_o.w_last   = w_last;
    assign axi_w_data_o       = w_data;
    assign axi_w_strb_o       = w_strb;
    assign w_ready            = axi_rsp_i.w_ready;
  end

  assign rd_beat_o = axi_rsp_i.r_valid && axi_req_o.r_ready;
  assign wr_beat_o = axi_req_o.w_valid && axi_rsp_i.w_ready;
endmodule
