// SPDX-License-Identifier: Apache-2.0
/// The NPU without its pins: command processor, engines and memory controller, wired.
module npu_core
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_pkg::MAX_SOURCES;
  import npu_vector_pkg::MAX_RESULTS;
  import npu_mem_pkg::*;
  import npu_ctrl_pkg::*;
#(
  parameter int unsigned ArraySize   = 16,
  parameter int unsigned BusBits     = 256,
  parameter int unsigned FmaLatency  = 4,
  parameter int unsigned AccTiles    = 64,
  parameter int unsigned RowTiles    = 8,
  parameter int unsigned WeightSlots = 16,
  parameter int unsigned VectorLanes = 16,
  parameter bit          WholeWrites = 1'b0,
  parameter logic [63:0] MemBase,
  parameter logic [63:0] MemLimit,
  localparam int unsigned StrbW      = BusBits / 8
) (
  input  logic clk_i,
  input  logic rst_ni,
  output logic irq_o,

  // AXI4-Lite, registers
  input  axil_req_t axil_req_i,
  output axil_rsp_t axil_rsp_o,

  // Host port
  input  host_req_t host_req_i,
  output host_rsp_t host_rsp_o,
  input  logic [BusBits-1:0] host_w_data_i,
  input  logic [StrbW-1:0] host_w_strb_i,
  output logic [BusBits-1:0] host_r_data_o,

  // DRAM port
  output axi_req_t axi_req_o,
  input  axi_rsp_t axi_rsp_i,
  output logic [BusBits-1:0] axi_w_data_o,
  output logic [StrbW-1:0] axi_w_strb_o,
  input  logic [BusBits-1:0] axi_r_data_i
);
  // Clients of the memory controller; vector and gather have several.
  localparam int unsigned Readers      = 6 + MAX_SOURCES;
  localparam int unsigned Writers      = NUM_CHANNELS + MAX_RESULTS;
  localparam int unsigned Ctrl         = 0;
  localparam int unsigned Copy         = 1 + ENGINE_COPY;
  localparam int unsigned Matrix       = 1 + ENGINE_MATRIX;
  localparam int unsigned VectorSource = 3;  // src1 and the next ones
  localparam int unsigned GatherSource = VectorSource + MAX_SOURCES;  // indices, old values; data
  localparam int unsigned VectorResult = 3;  // the first result and the next ones
  localparam int unsigned Gather       = VectorResult + MAX_RESULTS;
  localparam int unsigned Copy1Source  = GatherSource + 2;
  localparam int unsigned Copy1Result  = Gather + 1;

  mem_rd_req_t [Readers-1:0]       rd_req;
  mem_rd_rsp_t [Readers-1:0]       rd_rsp;
  logic [BusBits-1:0]              rd_data;
  mem_wr_req_t [Writers-1:0]       wr_req;
  mem_wr_rsp_t [Writers-1:0]       wr_rsp;
  logic [Writers-1:0][BusBits-1:0] wr_data;
  logic [Writers-1:0][StrbW-1:0]   wr_strb;
  logic [Readers-1:0]              reader_beat;
  logic [Writers-1:0]              writer_beat;
  logic                            rd_beat, wr_beat, soft_rst, engine_rst_n;
  logic [31:0]                     program_line;
  program_info_t                   program_info;
  logic [NUM_CHANNELS-1:0]         engine_rd_beat, engine_wr_beat;
  engine_req_t                     engine_req [NUM_CHANNELS];
  engine_rsp_t                     engine_rsp [NUM_CHANNELS];
  copy_pending_t                   copy_pending, copy1_pending;

  logic [NUM_CHANNELS-1:0]         channel_on, engine_on, ready;
  logic                            engine_clk [NUM_CHANNELS];

  assign engine_rst_n = rst_ni && !soft_rst;

  // A channel and its part of the command processor are clocked in reset, and from the start of a
  // command until its end has been noted. An engine is ready again in the cycle after its `done`.
  for (genvar e = 0; e < NUM_CHANNELS; e++) begin : gen_engine_clock
    assign engine_on[e] = !engine_rst_n || channel_on[e];
    assign ready[e]     = engine_rsp[e].ready;
    npu_clock_gate u_gate (.clk_i, .en_i(engine_on[e]), .clk_o(engine_clk[e]));
  end

  npu_ctrl #(
    .ArraySize(ArraySize), .BusBits(BusBits), .FmaLatency(FmaLatency), .MemBase(MemBase),
    .MemLimit(MemLimit)
  ) u_ctrl (
    .clk_i, .rst_ni,
    .axil_req_i, .axil_rsp_o, .irq_o, .soft_rst_o(soft_rst),
    .rd_req_o(rd_req[Ctrl]), .rd_rsp_i(rd_rsp[Ctrl]), .rd_data_i(rd_data),
    .wr_req_o(wr_req[Ctrl]), .wr_rsp_i(wr_rsp[Ctrl]), .wr_data_o(wr_data[Ctrl]),
    .wr_strb_o(wr_strb[Ctrl]),
    .program_line_o(program_line), .program_info_i(program_info),
    .engine_clk_i(engine_clk), .engine_on_o(channel_on),
    .engine_req_o(engine_req), .engine_rsp_i(engine_rsp),
    .rd_beat_i(rd_beat), .wr_beat_i(wr_beat),
    .engine_rd_beat_i(engine_rd_beat), .engine_wr_beat_i(engine_wr_beat)
  );

  npu_matrix #(
    .ArraySize(ArraySize), .BusBits(BusBits), .FmaLatency(FmaLatency), .AccTiles(AccTiles),
    .RowTiles(RowTiles), .WeightSlots(WeightSlots)
  ) u_matrix (
    .clk_i(engine_clk[ENGINE_MATRIX]), .rst_ni(engine_rst_n),
    .req_i(engine_req[ENGINE_MATRIX]), .rsp_o(engine_rsp[ENGINE_MATRIX]),
    .rd_req_o(rd_req[Matrix]), .rd_rsp_i(rd_rsp[Matrix]), .rd_data_i(rd_data),
    .wr_req_o(wr_req[Matrix]), .wr_rsp_i(wr_rsp[Matrix]), .wr_data_o(wr_data[Matrix]),
    .wr_strb_o(wr_strb[Matrix])
  );

  npu_copy #(.BusBits(BusBits)) u_copy (
    .clk_i(engine_clk[ENGINE_COPY]), .rst_ni(engine_rst_n),
    .req_i(engine_req[ENGINE_COPY]), .rsp_o(engine_rsp[ENGINE_COPY]),
    .pending_o(copy_pending), .other_i(copy1_pending),
    .rd_req_o(rd_req[Copy]), .rd_rsp_i(rd_rsp[Copy]), .rd_data_i(rd_data),
    .wr_req_o(wr_req[Copy]), .wr_rsp_i(wr_rsp[Copy]), .wr_data_o(wr_data[Copy]),
    .wr_strb_o(wr_strb[Copy])
  );

  npu_copy #(.BusBits(BusBits)) u_copy1 (
    .clk_i(engine_clk[CHANNEL_COPY1]), .rst_ni(engine_rst_n),
    .req_i(engine_req[CHANNEL_COPY1]), .rsp_o(engine_rsp[CHANNEL_COPY1]),
    .pending_o(copy1_pending), .other_i(copy_pending),
    .rd_req_o(rd_req[Copy1Source]), .rd_rsp_i(rd_rsp[Copy1Source]), .rd_data_i(rd_data),
    .wr_req_o(wr_req[Copy1Result]), .wr_rsp_i(wr_rsp[Copy1Result]),
    .wr_data_o(wr_data[Copy1Result]), .wr_strb_o(wr_strb[Copy1Result])
  );

  npu_vector #(
    .VectorLanes(VectorLanes), .BusBits(BusBits), .FmaLatency(FmaLatency)
  ) u_vector (
    .clk_i(engine_clk[ENGINE_VECTOR]), .rst_ni(engine_rst_n),
    .req_i(engine_req[ENGINE_VECTOR]), .rsp_o(engine_rsp[ENGINE_VECTOR]),
    .program_line_i(program_line), .program_info_o(program_info),
    .rd_req_o(rd_req[VectorSource +: MAX_SOURCES]),
    .rd_rsp_i(rd_rsp[VectorSource +: MAX_SOURCES]), .rd_data_i(rd_data),
    .wr_req_o(wr_req[VectorResult +: MAX_RESULTS]), .wr_rsp_i(wr_rsp[VectorResult +: MAX_RESULTS]),
    .wr_data_o(wr_data[VectorResult +: MAX_RESULTS]),
    .wr_strb_o(wr_strb[VectorResult +: MAX_RESULTS])
  );

  npu_gather #(.BusBits(BusBits), .FmaLatency(FmaLatency)) u_gather (
    .clk_i(engine_clk[ENGINE_GATHER]), .rst_ni(engine_rst_n),
    .req_i(engine_req[ENGINE_GATHER]), .rsp_o(engine_rsp[ENGINE_GATHER]),
    .rd_req_o(rd_req[GatherSource +: 2]), .rd_rsp_i(rd_rsp[GatherSource +: 2]), .rd_data_i(rd_data),
    .wr_req_o(wr_req[Gather]), .wr_rsp_i(wr_rsp[Gather]), .wr_data_o(wr_data[Gather]),
    .wr_strb_o(wr_strb[Gather])
  );

  npu_mem_ctrl #(
    .BusBits(BusBits), .NumReadClients(Readers), .NumWriteClients(Writers), .MemBase(MemBase),
    .MemLimit(MemLimit), .CriticalReader(Matrix), .WholeWrites(WholeWrites)
  ) u_mem_ctrl (
    .clk_i, .rst_ni,
    .rd_req_i(rd_req), .rd_rsp_o(rd_rsp), .rd_data_o(rd_data),
    .wr_req_i(wr_req), .wr_rsp_o(wr_rsp), .wr_data_i(wr_data), .wr_strb_i(wr_strb),
    .host_req_i, .host_rsp_o, .host_w_data_i, .host_w_strb_i, .host_r_data_o,
    .axi_req_o, .axi_rsp_i, .axi_w_data_o, .axi_w_strb_o, .axi_r_data_i,
    .rd_beat_o(rd_beat), .wr_beat_o(wr_beat)
  );

  // Beats of each channel
  for (genvar c = 0; c < Readers; c++) begin : gen_reader_beat
    assign reader_beat[c] = rd_rsp[c].data_valid && rd_req[c].data_ready;
  end
  for (genvar c = 0; c < Writers; c++) begin : gen_writer_beat
    assign writer_beat[c] = wr_req[c].data_valid && wr_rsp[c].data_ready;
  end
  assign engine_wr_beat[ENGINE_COPY]   = writer_beat[Copy];
  assign engine_wr_beat[ENGINE_MATRIX] = writer_beat[Matrix];
  assign engine_wr_beat[ENGINE_VECTOR] = writer_beat[VectorResult+:MAX_RESULTS] != '0;
  assign engine_wr_beat[ENGINE_GATHER] = writer_beat[Gather];
  assign engine_wr_beat[CHANNEL_COPY1] = writer_beat[Copy1Result];
  assign engine_rd_beat[ENGINE_COPY]   = reader_beat[Copy];
  assign engine_rd_beat[ENGINE_MATRIX] = reader_beat[Matrix];
  assign engine_rd_beat[ENGINE_VECTOR] = reader_beat[VectorSource+:MAX_SOURCES] != '0;
  assign engine_rd_beat[ENGINE_GATHER] = reader_beat[GatherSource+:2] != '0;
  assign engine_rd_beat[CHANNEL_COPY1] = reader_beat[Copy1Source];

  // Responses that an engine without a clock would miss
  logic [NUM_CHANNELS-1:0] answered;
  always_comb begin
    answered                = '0;
    answered[ENGINE_COPY]   = rd_rsp[Copy].data_valid || wr_rsp[Copy].done;
    answered[CHANNEL_COPY1] = rd_rsp[Copy1Source].data_valid || wr_rsp[Copy1Result].done;
    answered[ENGINE_MATRIX] = rd_rsp[Matrix].data_valid || wr_rsp[Matrix].done;
    answered[ENGINE_GATHER] = rd_rsp[GatherSource].data_valid || rd_rsp[GatherSource+1].data_valid
                            || wr_rsp[Gather].done;
    for (int unsigned s = 0; s < MAX_SOURCES; s++) begin
      if (rd_rsp[VectorSource+s].data_valid) answered[ENGINE_VECTOR] = 1'b1;
    end
    for (int unsigned n = 0; n < MAX_RESULTS; n++) begin
      if (wr_rsp[VectorResult+n].done) answered[ENGINE_VECTOR] = 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      AnsweredEngineHasClock: assert ((answered & ~engine_on) == '0)
        else $error("npu_core: a response for an engine without a clock (channels %05b)", answered);
    end
    ReadyWithoutClock: assert ((ready | engine_on) == '1)
      else $error("npu_core: not ready after a command (ready channels %05b)", ready);
  end
endmodule
