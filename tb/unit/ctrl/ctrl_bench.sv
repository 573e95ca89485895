// SPDX-License-Identifier: Apache-2.0
/// The command processor with plain pins: its structures taken apart for C++.
///
/// `engine_*` have one element per channel, as npu_pkg numbers them. Inputs take effect when
/// `changed_i` changes, `program_info_i` when `info_changed_i` does, and the clock at once:
/// Verilator evaluates what depends on an input of its model whenever another one changes, too.
module ctrl_bench
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
#(
  parameter int unsigned BusBits  = 256,
  parameter logic [63:0] MemBase,
  parameter logic [63:0] MemLimit,
  localparam int unsigned StrbW   = BusBits / 8
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  logic                       changed_i,

  // Rising: so many commands have been completed in each queue, and each counter is there.
  input  logic                       age_i,
  input  logic [31:0]                age_commands_i,
  input  logic [63:0]                age_count_i,

  input  logic                       s_axil_awvalid_i,
  output logic                       s_axil_awready_o,
  input  logic [15:0]                s_axil_awaddr_i,
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
  output logic                       s_axil_rvalid_o,
  input  logic                       s_axil_rready_i,
  output logic [31:0]                s_axil_rdata_o,
  output logic [1:0]                 s_axil_rresp_o,

  output logic                       irq_o,
  output logic                       soft_rst_o,

  output logic                       rd_req_valid_o,
  input  logic                       rd_req_ready_i,
  output logic [ADDR_WIDTH-1:0]      rd_req_addr_o,
  output logic [REQ_BYTES_WIDTH-1:0] rd_req_bytes_o,
  input  logic                       rd_rsp_valid_i,
  output logic                       rd_rsp_ready_o,
  input  logic [BusBits-1:0]         rd_rsp_data_i,
  input  logic                       rd_rsp_err_i,

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

  output logic [31:0]                program_line_o,
  input  logic                       info_changed_i,
  input  logic [$bits(program_info_t)-1:0] program_info_i,

  output npu_engine_cmd_t            engine_cmd_o [NUM_CHANNELS],
  output logic                       engine_valid_o [NUM_CHANNELS],
  input  logic                       engine_ready_i [NUM_CHANNELS],
  input  logic                       engine_done_i [NUM_CHANNELS],
  input  logic [3:0]                 engine_err_i [NUM_CHANNELS],
  input  logic [2:0]                 engine_stats_i [NUM_CHANNELS],

  input  logic                       rd_beat_i,
  input  logic                       wr_beat_i,
  input  logic [NUM_CHANNELS-1:0]    engine_rd_beat_i,
  input  logic [NUM_CHANNELS-1:0]    engine_wr_beat_i
);
  logic        rst_n;
  axil_req_t   axil_req;
  axil_rsp_t   axil_rsp;
  mem_rd_req_t rd_req;
  mem_rd_rsp_t rd_rsp;
  mem_wr_req_t wr_req;
  mem_wr_rsp_t wr_rsp;
  logic [BusBits-1:0] rd_data;
  logic [$bits(program_info_t)-1:0] program_info;
  logic        rd_beat;
  logic        wr_beat;
  engine_req_t engine_req [NUM_CHANNELS];
  engine_rsp_t engine_rsp [NUM_CHANNELS];
  logic        engine_clk [NUM_CHANNELS];
  logic [NUM_CHANNELS-1:0] engine_on;
  logic [NUM_CHANNELS-1:0] engine_rd_beat;
  logic [NUM_CHANNELS-1:0] engine_wr_beat;

  always @(posedge changed_i or negedge changed_i) begin
    rst_n    <= rst_ni;
    axil_req <= '{
      aw_valid: s_axil_awvalid_i, aw_addr: s_axil_awaddr_i, aw_prot: '0,
      w_valid: s_axil_wvalid_i, w_data: s_axil_wdata_i, w_strb: s_axil_wstrb_i,
      b_ready: s_axil_bready_i, ar_valid: s_axil_arvalid_i, ar_addr: s_axil_araddr_i, ar_prot: '0,
      r_ready: s_axil_rready_i
    };
    rd_rsp  <= '{ready: rd_req_ready_i, data_valid: rd_rsp_valid_i, data_err: rd_rsp_err_i};
    rd_data <= rd_rsp_data_i;
    wr_rsp  <= '{ready: wr_req_ready_i, data_ready: wr_data_ready_i, done: wr_rsp_valid_i,
                 err: wr_rsp_err_i};
    rd_beat        <= rd_beat_i;
    wr_beat        <= wr_beat_i;
    engine_rd_beat <= engine_rd_beat_i;
    engine_wr_beat <= engine_wr_beat_i;
  end
  always @(posedge info_changed_i or negedge info_changed_i) program_info <= program_info_i;

  assign s_axil_awready_o = axil_rsp.aw_ready;
  assign s_axil_wready_o  = axil_rsp.w_ready;
  assign s_axil_bvalid_o  = axil_rsp.b_valid;
  assign s_axil_bresp_o   = axil_rsp.b_resp;
  assign s_axil_arready_o = axil_rsp.ar_ready;
  assign s_axil_rvalid_o  = axil_rsp.r_valid;
  assign s_axil_rdata_o   = axil_rsp.r_data;
  assign s_axil_rresp_o   = axil_rsp.r_resp;

  assign rd_req_valid_o  = rd_req.valid;
  assign rd_req_addr_o   = rd_req.range.addr;
  assign rd_req_bytes_o  = rd_req.range.bytes;
  assign rd_rsp_ready_o  = rd_req.data_ready;
  assign wr_req_valid_o  = wr_req.valid;
  assign wr_req_addr_o   = wr_req.range.addr;
  assign wr_req_bytes_o  = wr_req.range.bytes;
  assign wr_data_valid_o = wr_req.data_valid;

  for (genvar e = 0; e < NUM_CHANNELS; e++) begin : gen_channel
    // As in npu_core
    npu_clock_gate u_gate (
      .clk_i, .en_i(!rst_n || soft_rst_o || engine_on[e] || !engine_rsp[e].ready),
      .clk_o(engine_clk[e])
    );
    assign engine_valid_o[e] = engine_req[e].valid;
    assign engine_cmd_o[e]   = engine_req[e].cmd;
    always @(posedge changed_i or negedge changed_i) begin
      engine_rsp[e] <= '{ready: engine_ready_i[e], done: engine_done_i[e],
                         err: error_e'(engine_err_i[e]), stats: engine_stats_i[e]};
    end
  end

  npu_ctrl #(.BusBits(BusBits), .MemBase(MemBase), .MemLimit(MemLimit)) u_ctrl (
    .clk_i, .rst_ni(rst_n), .axil_req_i(axil_req), .axil_rsp_o(axil_rsp), .irq_o, .soft_rst_o,
    .rd_req_o(rd_req),
    .rd_rsp_i(rd_rsp), .rd_data_i(rd_data),
    .wr_req_o(wr_req), .wr_rsp_i(wr_rsp), .wr_data_o, .wr_strb_o,
    .program_line_o, .program_info_i(program_info),
    .engine_clk_i(engine_clk), .engine_on_o(engine_on),
    .engine_req_o(engine_req), .engine_rsp_i(engine_rsp),
    .rd_beat_i(rd_beat), .wr_beat_i(wr_beat), .engine_rd_beat_i(engine_rd_beat),
    .engine_wr_beat_i(engine_wr_beat)
  );

  always @(posedge age_i) begin
    u_ctrl.u_csr_wrap.u_perf_counters.counts_q <= {($bits(perf_counts_t) / 64){age_count_i}};
    u_ctrl.u_cmd_inflight.u_retire.completed_q <= {QUEUES{age_commands_i}};
    u_ctrl.u_cmd_inflight.gen_queue[0].u_table.next_seq_q <= age_commands_i;
    u_ctrl.u_cmd_inflight.gen_queue[1].u_table.next_seq_q <= age_commands_i;
  end
endmodule
