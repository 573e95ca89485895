// SPDX-License-Identifier: Apache-2.0
/// The memory controller with an engine on its first clients, and plain pins on the others. Each
/// bench has its own module `bench_engine`. Inputs take effect when `changed` changes, those of a
/// command when `cmd_changed` does, `program_line` and the clock at once: Verilator evaluates what
/// depends on an input of its model whenever another one changes, too.
module engine_bench
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_mem_pkg::*;
  import npu_vector_pkg::IMMEDIATES;
  import npu_vector_pkg::MAX_SOURCES;
  import npu_vector_pkg::MAX_RESULTS;
#(
  parameter int unsigned BusBits  = 256,
  /// Clients of the engine.
  parameter int unsigned Readers  = 1,
  parameter int unsigned Writers  = 1,
  /// Its array or lanes; 0: it has none.
  parameter int unsigned EngineSize = 0,
  parameter bit          WholeWrites = 1'b0,
  parameter logic [63:0] MemBase  = 64'h3_0010_0640,
  parameter logic [63:0] MemLimit = 64'h3_002f_f9c0,
  localparam int unsigned StrbW   = BusBits / 8,
  localparam int unsigned WindowBits = $bits(npu_window_t),
  localparam int unsigned NumRead = Readers + 2,
  localparam int unsigned NumWrite = Writers + 1,
  // An engine with one reader is the critical client, one with several runs beside it.
  localparam int unsigned CriticalReader = (Readers == 1) ? 0 : NumRead - 1,
  localparam int unsigned NumViews = MAX_SOURCES + MAX_RESULTS
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic                    changed,

  // Engine command; sources [0] to [3] and destinations [4] to [6]
  input  logic                    cmd_changed,
  input  logic                    cmd_valid,
  output logic                    cmd_ready,
  input  logic [31:0]             cmd_opcode,
  input  logic                    cmd_accumulate,
  input  logic [3:0]              cmd_int4_group,
  input  logic [31:0]             cmd_fill_value,
  input  logic [PROGRAM_LINE_WIDTH-1:0] cmd_program,
  input  logic [$bits(program_info_t)-1:0] cmd_info,
  input  image_lines_t            cmd_lines,
  input  logic [31:0]             cmd_imm [IMMEDIATES],
  input  logic [2:0]              cmd_dim,
  input  logic [3:0]              cmd_dtype [NumViews],
  input  logic [63:0]             cmd_base [NumViews],
  input  logic [MAX_RANK*32-1:0]  cmd_size [NumViews],
  input  logic [MAX_RANK*32-1:0]  cmd_stride [NumViews],
  // MATMUL: m, k, n, batch; a, b, init, c
  input  logic [31:0]             cmd_product [4],
  input  logic [WindowBits-1:0]   cmd_window [5],
  output logic                    done,
  output logic [3:0]              err,
  output logic [2:0]              stats,

  // Which program begins at a line
  input  logic [31:0]             program_line,
  output logic [$bits(program_info_t)-1:0] program_info,

  // The last two read clients
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

  // The last write client
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

  // Host port
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
  logic                       rst_n;
  logic                       valid;
  npu_engine_cmd_t            cmd;
  engine_rsp_t                engine_rsp;
  mem_rd_req_t [1:0]          plain_rd_req;
  mem_rd_req_t [NumRead-1:0]  rd_req;
  mem_rd_rsp_t [NumRead-1:0]  rd_rsp;
  mem_wr_req_t                plain_wr_req;
  logic [BusBits-1:0]         plain_data;
  logic [StrbW-1:0]           plain_strb;
  mem_wr_req_t [NumWrite-1:0] wr_reqs;
  mem_wr_rsp_t [NumWrite-1:0] wr_rsps;
  logic [Writers-1:0][BusBits-1:0] engine_data;
  logic [Writers-1:0][StrbW-1:0]   engine_strb;
  host_req_t                  host_req;
  host_rsp_t                  host_rsp;
  logic [BusBits-1:0]         host_data;
  logic [StrbW-1:0]           host_strb;
  axi_req_t                   axi_req;
  axi_rsp_t                   axi_rsp;
  logic [BusBits-1:0]         axi_data;

  always @(posedge cmd_changed or negedge cmd_changed) begin : take_command
    npu_tensor_t [NumViews-1:0]        views;
    logic        [IMMEDIATES-1:0][31:0] immediates;
    for (int unsigned i = 0; i < NumViews; i++) begin
      views[i] = '{base: cmd_base[i], size: cmd_size[i], stride: cmd_stride[i]};
    end
    for (int unsigned i = 0; i < IMMEDIATES; i++) immediates[i] = cmd_imm[i];
    cmd <= '{
      opcode: opcode_e'(cmd_opcode), accumulate: cmd_accumulate,
      int4_group: cmd_int4_group, fill_value: cmd_fill_value,
      prog: cmd_program, prog_info: cmd_info, load_lines: cmd_lines, imm: immediates, dim: cmd_dim,
      src_dtype: dtype_e'(cmd_dtype[0]), src2_dtype: dtype_e'(cmd_dtype[1]),
      src3_dtype: dtype_e'(cmd_dtype[2]), src4_dtype: dtype_e'(cmd_dtype[3]),
      dst_dtype: dtype_e'(cmd_dtype[4]), dst2_dtype: dtype_e'(cmd_dtype[5]),
      dst3_dtype: dtype_e'(cmd_dtype[6]),
      src1: views[0], src2: views[1], src3: views[2], src4: views[3],
      dst: views[4], dst2: views[5], dst3: views[6],
      product: '{
        m: cmd_product[0], k: cmd_product[1], n: cmd_product[2], batch: cmd_product[3]
      },
      a: cmd_window[0], b: cmd_window[1], init: cmd_window[2], c: cmd_window[3],
      scales: cmd_window[4]
    };
  end

  always @(posedge changed or negedge changed) begin
    rst_n <= rst_ni;
    valid <= cmd_valid;
    plain_rd_req <= {
      rd_req_valid[1], rd_req_addr1, rd_req_bytes1, rd_rsp_ready[1],
      rd_req_valid[0], rd_req_addr0, rd_req_bytes0, rd_rsp_ready[0]
    };
    plain_wr_req <= '{valid: wr_req_valid, range: '{wr_req_addr, wr_req_bytes},
                      data_valid: wr_data_valid};
    plain_data   <= wr_data;
    plain_strb   <= wr_strb;
    host_req     <= '{
      ar_valid: s_arvalid, ar: {s_arid, s_araddr, s_arlen, s_arsize, s_arburst}, r_ready: s_rready,
      aw_valid: s_awvalid, aw: {s_awid, s_awaddr, s_awlen, s_awsize, s_awburst},
      w_valid: s_wvalid, w_last: s_wlast, b_ready: s_bready
    };
    host_data    <= s_wdata;
    host_strb    <= s_wstrb;
    axi_rsp      <= '{
      ar_ready: m_arready, r_valid: m_rvalid, r_id: m_rid, r_resp: resp_e'(m_rresp),
      r_last: m_rlast, aw_ready: m_awready, w_ready: m_wready, b_valid: m_bvalid, b_id: m_bid,
      b_resp: resp_e'(m_bresp)
    };
    axi_data     <= m_rdata;
  end

  assign cmd_ready = engine_rsp.ready;
  assign done      = engine_rsp.done;
  assign err       = engine_rsp.err;
  assign stats     = engine_rsp.stats;

  assign rd_req[Readers+:2] = plain_rd_req;
  assign rd_req_ready = {rd_rsp[Readers+1].ready, rd_rsp[Readers].ready};
  assign rd_rsp_valid = {rd_rsp[Readers+1].data_valid, rd_rsp[Readers].data_valid};
  assign rd_rsp_err   = rd_rsp[0].data_err;

  assign wr_reqs[Writers] = plain_wr_req;
  assign wr_req_ready  = wr_rsps[Writers].ready;
  assign wr_data_ready = wr_rsps[Writers].data_ready;
  assign wr_rsp_valid  = wr_rsps[Writers].done;
  assign wr_rsp_err    = wr_rsps[Writers].err;

  assign {s_arready, s_rvalid, s_rid, s_rresp, s_rlast} = {
    host_rsp.ar_ready, host_rsp.r_valid, host_rsp.r_id, host_rsp.r_resp, host_rsp.r_last
  };
  assign {s_awready, s_wready, s_bvalid, s_bid, s_bresp} = {
    host_rsp.aw_ready, host_rsp.w_ready, host_rsp.b_valid, host_rsp.b_id, host_rsp.b_resp
  };

  assign {m_arvalid, m_rready, m_awvalid, m_wvalid, m_wlast, m_bready} = {
    axi_req.ar_valid, axi_req.r_ready, axi_req.aw_valid, axi_req.w_valid, axi_req.w_last,
    axi_req.b_ready
  };
  assign {m_arid, m_araddr, m_arlen, m_arsize, m_arburst} = axi_req.ar;
  assign {m_awid, m_awaddr, m_awlen, m_awsize, m_awburst} = axi_req.aw;

  bench_engine #(
    .BusBits(BusBits), .Readers(Readers), .Writers(Writers), .Size(EngineSize)
  ) u_engine (
    .clk_i, .rst_ni(rst_n), .req_i('{valid: valid, cmd: cmd}), .rsp_o(engine_rsp),
    .rd_req_o(rd_req[Readers-1:0]), .rd_rsp_i(rd_rsp[Readers-1:0]), .rd_data_i(rd_rsp_data),
    .program_line_i(program_line), .program_info_o(program_info),
    .wr_req_o(wr_reqs[Writers-1:0]), .wr_rsp_i(wr_rsps[Writers-1:0]), .wr_data_o(engine_data),
    .wr_strb_o(engine_strb)
  );

  npu_mem_ctrl #(
    .BusBits(BusBits), .NumReadClients(NumRead), .NumWriteClients(NumWrite),
    .MemBase(MemBase), .MemLimit(MemLimit), .CriticalReader(CriticalReader),
    .WholeWrites(WholeWrites)
  ) u_mem (
    .clk_i, .rst_ni(rst_n),
    .rd_req_i(rd_req), .rd_rsp_o(rd_rsp), .rd_data_o(rd_rsp_data),
    .wr_req_i(wr_reqs), .wr_rsp_o(wr_rsps), .wr_data_i({plain_data, engine_data}),
    .wr_strb_i({plain_strb, engine_strb}),
    .host_req_i(host_req), .host_rsp_o(host_rsp), .host_w_data_i(host_data),
    .host_w_strb_i(host_strb), .host_r_data_o(s_rdata),
    .axi_req_o(axi_req), .axi_rsp_i(axi_rsp), .axi_w_data_o(m_wdata), .axi_w_strb_o(m_wstrb),
    .axi_r_data_i(axi_data),
    .rd_beat_o(rd_beat), .wr_beat_o(wr_beat)
  );
endmodule
