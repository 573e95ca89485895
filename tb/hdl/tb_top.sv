// SPDX-License-Identifier: Apache-2.0
/// The device under test, its memory and nothing else (simulation only).
///
/// Behaviour: every pin of npu_top is a signal of the same name here, driven by C++ (the server
/// and the clock) or by cocotb. `dram_on` = 1 connects m_axi_* to the shared memory (npu_dram);
/// 0 connects it to ext_axi_*, where a bench puts a memory model of its own; the idle side sees no
/// valid, and a bench's memory sees zeros. `dram_latency`, `dram_stall` and `dram_seed` are
/// npu_dram's settings. Inputs take effect when `changed` changes. Without cocotb the shared memory
/// is the only one: `dram_on` is ignored. `moved` counts the cycles in which a channel of any port
/// transferred; `waiting`, `open_reads` and `open_writes` are those of npu_port_watch for {m_axi,
/// s_axi, s_axil}.
///
/// Odd input: change `dram_on` only in reset, or answers are lost.
module tb_top #(
  parameter int unsigned ArraySize = 16,
  parameter int unsigned BusBits = 256,
  parameter int unsigned FmaLatency = 4,
  parameter int unsigned AccTiles = 4,
  parameter int unsigned RowTiles = 4,
  parameter int unsigned WeightSlots = 2,
  parameter int unsigned VectorLanes = 4,
  parameter bit WholeWrites = 1'b0,
  parameter logic [63:0] MemBase = 64'h0,
  parameter logic [63:0] MemLimit = 64'h2000_0000,
  parameter bit DramSinglePort = 1'b0
) (
  input  logic                 clk,
  input  logic                 changed,
  input  logic                 rst_n,
  output logic                 irq,

  input  logic                 dram_on,
  input  logic [15:0]          dram_latency,
  input  logic [7:0]           dram_stall,
  input  logic [31:0]          dram_seed,

  output logic [31:0]          moved,
  output logic [14:0]          waiting,
  output logic [47:0]          open_reads,
  output logic [47:0]          open_writes,

  input  logic [15:0]                s_axil_awaddr,
  input  logic [2:0]                 s_axil_awprot,
  input  logic                       s_axil_awvalid,
  output logic                       s_axil_awready,
  input  logic [31:0]                s_axil_wdata,
  input  logic [3:0]                 s_axil_wstrb,
  input  logic                       s_axil_wvalid,
  output logic                       s_axil_wready,
  output logic [1:0]                 s_axil_bresp,
  output logic                       s_axil_bvalid,
  input  logic                       s_axil_bready,
  input  logic [15:0]                s_axil_araddr,
  input  logic [2:0]                 s_axil_arprot,
  input  logic                       s_axil_arvalid,
  output logic                       s_axil_arready,
  output logic [31:0]                s_axil_rdata,
  output logic [1:0]                 s_axil_rresp,
  output logic                       s_axil_rvalid,
  input  logic                       s_axil_rready,

  input  logic [3:0]                 s_axi_awid,
  input  logic [63:0]                s_axi_awaddr,
  input  logic [7:0]                 s_axi_awlen,
  input  logic [2:0]                 s_axi_awsize,
  input  logic [1:0]                 s_axi_awburst,
  input  logic                       s_axi_awvalid,
  output logic                       s_axi_awready,
  input  logic [BusBits-1:0]         s_axi_wdata,
  input  logic [BusBits/8-1:0]       s_axi_wstrb,
  input  logic                       s_axi_wlast,
  input  logic                       s_axi_wvalid,
  output logic                       s_axi_wready,
  output logic [3:0]                 s_axi_bid,
  output logic [1:0]                 s_axi_bresp,
  output logic                       s_axi_bvalid,
  input  logic                       s_axi_bready,
  input  logic [3:0]                 s_axi_arid,
  input  logic [63:0]                s_axi_araddr,
  input  logic [7:0]                 s_axi_arlen,
  input  logic [2:0]                 s_axi_arsize,
  input  logic [1:0]                 s_axi_arburst,
  input  logic                       s_axi_arvalid,
  output logic                       s_axi_arready,
  output logic [3:0]                 s_axi_rid,
  output logic [BusBits-1:0]         s_axi_rdata,
  output logic [1:0]                 s_axi_rresp,
  output logic                       s_axi_rlast,
  output logic                       s_axi_rvalid,
  input  logic                       s_axi_rready,

  output logic [7:0]                 ext_axi_awid,
  output logic [63:0]                ext_axi_awaddr,
  output logic [7:0]                 ext_axi_awlen,
  output logic [2:0]                 ext_axi_awsize,
  output logic [1:0]                 ext_axi_awburst,
  output logic [3:0]                 ext_axi_awcache,
  output logic [2:0]                 ext_axi_awprot,
  output logic                       ext_axi_awvalid,
  input  logic                       ext_axi_awready,
  output logic [BusBits-1:0]         ext_axi_wdata,
  output logic [BusBits/8-1:0]       ext_axi_wstrb,
  output logic                       ext_axi_wlast,
  output logic                       ext_axi_wvalid,
  input  logic                       ext_axi_wready,
  input  logic [7:0]                 ext_axi_bid,
  input  logic [1:0]                 ext_axi_bresp,
  input  logic                       ext_axi_bvalid,
  output logic                       ext_axi_bready,
  output logic [7:0]                 ext_axi_arid,
  output logic [63:0]                ext_axi_araddr,
  output logic [7:0]                 ext_axi_arlen,
  output logic [2:0]                 ext_axi_arsize,
  output logic [1:0]                 ext_axi_arburst,
  output logic [3:0]                 ext_axi_arcache,
  output logic [2:0]                 ext_axi_arprot,
  output logic                       ext_axi_arvalid,
  input  logic                       ext_axi_arready,
  input  logic [7:0]                 ext_axi_rid,
  input  logic [BusBits-1:0]         ext_axi_rdata,
  input  logic [1:0]                 ext_axi_rresp,
  input  logic                       ext_axi_rlast,
  input  logic                       ext_axi_rvalid,
  output logic                       ext_axi_rready
);
  // The inputs as everything below sees them. Verilator evaluates all that depends on an input of
  // its model whenever the clock changes. Inputs change only now and then: the server toggles
  // `changed` then, and cocotb's main loop when Python has run.
  typedef struct packed {
    logic                 dram_on;
    logic [15:0]          dram_latency;
    logic [7:0]           dram_stall;
    logic [31:0]          dram_seed;
    logic [15:0]          s_axil_awaddr;
    logic [2:0]           s_axil_awprot;
    logic                 s_axil_awvalid;
    logic [31:0]          s_axil_wdata;
    logic [3:0]           s_axil_wstrb;
    logic                 s_axil_wvalid;
    logic                 s_axil_bready;
    logic [15:0]          s_axil_araddr;
    logic [2:0]           s_axil_arprot;
    logic                 s_axil_arvalid;
    logic                 s_axil_rready;
    logic [3:0]           s_axi_awid;
    logic [63:0]          s_axi_awaddr;
    logic [7:0]           s_axi_awlen;
    logic [2:0]           s_axi_awsize;
    logic [1:0]           s_axi_awburst;
    logic                 s_axi_awvalid;
    logic [BusBits-1:0]   s_axi_wdata;
    logic [BusBits/8-1:0] s_axi_wstrb;
    logic                 s_axi_wlast;
    logic                 s_axi_wvalid;
    logic                 s_axi_bready;
    logic [3:0]           s_axi_arid;
    logic [63:0]          s_axi_araddr;
    logic [7:0]           s_axi_arlen;
    logic [2:0]           s_axi_arsize;
    logic [1:0]           s_axi_arburst;
    logic                 s_axi_arvalid;
    logic                 s_axi_rready;
    logic                 ext_axi_awready;
    logic                 ext_axi_wready;
    logic [7:0]           ext_axi_bid;
    logic [1:0]           ext_axi_bresp;
    logic                 ext_axi_bvalid;
    logic                 ext_axi_arready;
    logic [7:0]           ext_axi_rid;
    logic [BusBits-1:0]   ext_axi_rdata;
    logic [1:0]           ext_axi_rresp;
    logic                 ext_axi_rlast;
    logic                 ext_axi_rvalid;
  } pins_t;

  pins_t now, pins;

  assign now = '{
    dram_on, dram_latency, dram_stall, dram_seed, s_axil_awaddr, s_axil_awprot,
    s_axil_awvalid, s_axil_wdata, s_axil_wstrb, s_axil_wvalid, s_axil_bready, s_axil_araddr,
    s_axil_arprot, s_axil_arvalid, s_axil_rready, s_axi_awid, s_axi_awaddr, s_axi_awlen,
    s_axi_awsize, s_axi_awburst, s_axi_awvalid, s_axi_wdata, s_axi_wstrb, s_axi_wlast,
    s_axi_wvalid, s_axi_bready, s_axi_arid, s_axi_araddr, s_axi_arlen, s_axi_arsize,
    s_axi_arburst, s_axi_arvalid, s_axi_rready, ext_axi_awready, ext_axi_wready, ext_axi_bid,
    ext_axi_bresp, ext_axi_bvalid, ext_axi_arready, ext_axi_rid, ext_axi_rdata, ext_axi_rresp,
    ext_axi_rlast, ext_axi_rvalid
  };

  // On its own, as it is read everywhere: a bit of the structure would be taken out each time.
  logic reset_n;

  // The server has no other memory than the shared one: pins of another would cost it time.
  logic shared;
`ifdef NPU_SHARED_MEMORY_ONLY
  assign shared = 1'b1;
`else
  assign shared = pins.dram_on;
`endif

  always @(posedge changed or negedge changed) begin
    pins    <= now;
    reset_n <= rst_n;
  end

  logic [7:0]                 m_axi_awid;
  logic [63:0]                m_axi_awaddr;
  logic [7:0]                 m_axi_awlen;
  logic [2:0]                 m_axi_awsize;
  logic [1:0]                 m_axi_awburst;
  logic [3:0]                 m_axi_awcache;
  logic [2:0]                 m_axi_awprot;
  logic                       m_axi_awvalid;
  logic                       m_axi_awready;
  logic [BusBits-1:0]         m_axi_wdata;
  logic [BusBits/8-1:0]       m_axi_wstrb;
  logic                       m_axi_wlast;
  logic                       m_axi_wvalid;
  logic                       m_axi_wready;
  logic [7:0]                 m_axi_bid;
  logic [1:0]                 m_axi_bresp;
  logic                       m_axi_bvalid;
  logic                       m_axi_bready;
  logic [7:0]                 m_axi_arid;
  logic [63:0]                m_axi_araddr;
  logic [7:0]                 m_axi_arlen;
  logic [2:0]                 m_axi_arsize;
  logic [1:0]                 m_axi_arburst;
  logic [3:0]                 m_axi_arcache;
  logic [2:0]                 m_axi_arprot;
  logic                       m_axi_arvalid;
  logic                       m_axi_arready;
  logic [7:0]                 m_axi_rid;
  logic [BusBits-1:0]         m_axi_rdata;
  logic [1:0]                 m_axi_rresp;
  logic                       m_axi_rlast;
  logic                       m_axi_rvalid;
  logic                       m_axi_rready;

  npu_top #(
    .ArraySize   (ArraySize),
    .BusBits     (BusBits),
    .FmaLatency  (FmaLatency),
    .AccTiles    (AccTiles),
    .RowTiles    (RowTiles),
    .WeightSlots (WeightSlots),
    .VectorLanes (VectorLanes),
    .WholeWrites (WholeWrites),
    .MemBase     (MemBase), .MemLimit(MemLimit)
  ) u_npu (
    .clk, .rst_n(reset_n), .irq,
    .s_axil_awaddr(pins.s_axil_awaddr), .s_axil_awprot(pins.s_axil_awprot),
    .s_axil_awvalid(pins.s_axil_awvalid), .s_axil_awready,
    .s_axil_wdata(pins.s_axil_wdata), .s_axil_wstrb(pins.s_axil_wstrb),
    .s_axil_wvalid(pins.s_axil_wvalid), .s_axil_wready,
    .s_axil_bresp, .s_axil_bvalid, .s_axil_bready(pins.s_axil_bready),
    .s_axil_araddr(pins.s_axil_araddr), .s_axil_arprot(pins.s_axil_arprot),
    .s_axil_arvalid(pins.s_axil_arvalid), .s_axil_arready,
    .s_axil_rdata, .s_axil_rresp, .s_axil_rvalid, .s_axil_rready(pins.s_axil_rready),
    .s_axi_awid(pins.s_axi_awid), .s_axi_awaddr(pins.s_axi_awaddr),
    .s_axi_awlen(pins.s_axi_awlen), .s_axi_awsize(pins.s_axi_awsize),
    .s_axi_awburst(pins.s_axi_awburst), .s_axi_awvalid(pins.s_axi_awvalid), .s_axi_awready,
    .s_axi_wdata(pins.s_axi_wdata), .s_axi_wstrb(pins.s_axi_wstrb),
    .s_axi_wlast(pins.s_axi_wlast), .s_axi_wvalid(pins.s_axi_wvalid), .s_axi_wready,
    .s_axi_bid, .s_axi_bresp, .s_axi_bvalid, .s_axi_bready(pins.s_axi_bready),
    .s_axi_arid(pins.s_axi_arid), .s_axi_araddr(pins.s_axi_araddr),
    .s_axi_arlen(pins.s_axi_arlen), .s_axi_arsize(pins.s_axi_arsize),
    .s_axi_arburst(pins.s_axi_arburst), .s_axi_arvalid(pins.s_axi_arvalid), .s_axi_arready,
    .s_axi_rid, .s_axi_rdata, .s_axi_rresp, .s_axi_rlast, .s_axi_rvalid,
    .s_axi_rready(pins.s_axi_rready),
    .m_axi_awid, .m_axi_awaddr, .m_axi_awlen, .m_axi_awsize, .m_axi_awburst, .m_axi_awcache,
    .m_axi_awprot, .m_axi_awvalid, .m_axi_awready,
    .m_axi_wdata, .m_axi_wstrb, .m_axi_wlast, .m_axi_wvalid, .m_axi_wready,
    .m_axi_bid, .m_axi_bresp, .m_axi_bvalid, .m_axi_bready,
    .m_axi_arid, .m_axi_araddr, .m_axi_arlen, .m_axi_arsize, .m_axi_arburst, .m_axi_arcache,
    .m_axi_arprot, .m_axi_arvalid, .m_axi_arready,
    .m_axi_rid, .m_axi_rdata, .m_axi_rresp, .m_axi_rlast, .m_axi_rvalid, .m_axi_rready
  );

  logic [2:0] port_moved;
  npu_port_watch u_s_axil_watch (
    .clk_i (clk), .rst_ni (reset_n),
    .aw_valid_i (pins.s_axil_awvalid), .aw_ready_i (s_axil_awready),
    .w_valid_i (pins.s_axil_wvalid), .w_ready_i (s_axil_wready),
    .b_valid_i (s_axil_bvalid), .b_ready_i (pins.s_axil_bready),
    .ar_valid_i (pins.s_axil_arvalid), .ar_ready_i (s_axil_arready),
    .r_valid_i (s_axil_rvalid), .r_ready_i (pins.s_axil_rready), .r_last_i (1'b1),
    .moved_o (port_moved[0]), .waiting_o (waiting[0 +: 5]),
    .reads_o (open_reads[0 +: 16]), .writes_o (open_writes[0 +: 16])
  );
  npu_port_watch u_s_axi_watch (
    .clk_i (clk), .rst_ni (reset_n),
    .aw_valid_i (pins.s_axi_awvalid), .aw_ready_i (s_axi_awready),
    .w_valid_i (pins.s_axi_wvalid), .w_ready_i (s_axi_wready),
    .b_valid_i (s_axi_bvalid), .b_ready_i (pins.s_axi_bready),
    .ar_valid_i (pins.s_axi_arvalid), .ar_ready_i (s_axi_arready),
    .r_valid_i (s_axi_rvalid), .r_ready_i (pins.s_axi_rready), .r_last_i (s_axi_rlast),
    .moved_o (port_moved[1]), .waiting_o (waiting[5 +: 5]),
    .reads_o (open_reads[16 +: 16]), .writes_o (open_writes[16 +: 16])
  );
  npu_port_watch u_m_axi_watch (
    .clk_i (clk), .rst_ni (reset_n),
    .aw_valid_i (m_axi_awvalid), .aw_ready_i (m_axi_awready),
    .w_valid_i (m_axi_wvalid), .w_ready_i (m_axi_wready),
    .b_valid_i (m_axi_bvalid), .b_ready_i (m_axi_bready),
    .ar_valid_i (m_axi_arvalid), .ar_ready_i (m_axi_arready),
    .r_valid_i (m_axi_rvalid), .r_ready_i (m_axi_rready), .r_last_i (m_axi_rlast),
    .moved_o (port_moved[2]), .waiting_o (waiting[10 +: 5]),
    .reads_o (open_reads[32 +: 16]), .writes_o (open_writes[32 +: 16])
  );
  always_ff @(posedge clk) begin
    if (!reset_n)              moved <= '0;
    else if (port_moved != '0) moved <= moved + 32'd1;
  end

  // The answers of the selected memory; the names of the other side of the choice.
  logic                       dram_awready;
  logic                       dram_wready;
  logic [7:0]                 dram_bid;
  logic [1:0]                 dram_bresp;
  logic                       dram_bvalid;
  logic                       dram_arready;
  logic [7:0]                 dram_rid;
  logic [BusBits-1:0]         dram_rdata;
  logic [1:0]                 dram_rresp;
  logic                       dram_rlast;
  logic                       dram_rvalid;

  assign m_axi_awready  = shared ? dram_awready : pins.ext_axi_awready;
  assign m_axi_wready   = shared ? dram_wready : pins.ext_axi_wready;
  assign m_axi_bid      = shared ? dram_bid : pins.ext_axi_bid;
  assign m_axi_bresp    = shared ? dram_bresp : pins.ext_axi_bresp;
  assign m_axi_bvalid   = shared ? dram_bvalid : pins.ext_axi_bvalid;
  assign m_axi_arready  = shared ? dram_arready : pins.ext_axi_arready;
  assign m_axi_rid      = shared ? dram_rid : pins.ext_axi_rid;
  assign m_axi_rdata    = shared ? dram_rdata : pins.ext_axi_rdata;
  assign m_axi_rresp    = shared ? dram_rresp : pins.ext_axi_rresp;
  assign m_axi_rlast    = shared ? dram_rlast : pins.ext_axi_rlast;
  assign m_axi_rvalid   = shared ? dram_rvalid : pins.ext_axi_rvalid;

  assign ext_axi_awid     = shared ? '0 : m_axi_awid;
  assign ext_axi_awaddr   = shared ? '0 : m_axi_awaddr;
  assign ext_axi_awlen    = shared ? '0 : m_axi_awlen;
  assign ext_axi_awsize   = shared ? '0 : m_axi_awsize;
  assign ext_axi_awburst  = shared ? '0 : m_axi_awburst;
  assign ext_axi_awcache  = shared ? '0 : m_axi_awcache;
  assign ext_axi_awprot   = shared ? '0 : m_axi_awprot;
  assign ext_axi_awvalid  = m_axi_awvalid && !shared;
  assign ext_axi_wdata    = shared ? '0 : m_axi_wdata;
  assign ext_axi_wstrb    = shared ? '0 : m_axi_wstrb;
  assign ext_axi_wlast    = shared ? '0 : m_axi_wlast;
  assign ext_axi_wvalid   = m_axi_wvalid && !shared;
  assign ext_axi_bready   = shared ? '0 : m_axi_bready;
  assign ext_axi_arid     = shared ? '0 : m_axi_arid;
  assign ext_axi_araddr   = shared ? '0 : m_axi_araddr;
  assign ext_axi_arlen    = shared ? '0 : m_axi_arlen;
  assign ext_axi_arsize   = shared ? '0 : m_axi_arsize;
  assign ext_axi_arburst  = shared ? '0 : m_axi_arburst;
  assign ext_axi_arcache  = shared ? '0 : m_axi_arcache;
  assign ext_axi_arprot   = shared ? '0 : m_axi_arprot;
  assign ext_axi_arvalid  = m_axi_arvalid && !shared;
  assign ext_axi_rready   = shared ? '0 : m_axi_rready;

  npu_dram #(.BusBits(BusBits), .SinglePort(DramSinglePort)) u_dram (
    .clk_i     (clk),
    .rst_ni    (reset_n),
    .latency_i (pins.dram_latency),
    .stall_i   (pins.dram_stall),
    .seed_i    (pins.dram_seed),
    .awid      (m_axi_awid),
    .awaddr    (m_axi_awaddr),
    .awlen     (m_axi_awlen),
    .awsize    (m_axi_awsize),
    .awburst   (m_axi_awburst),
    .awvalid   (m_axi_awvalid && shared),
    .awready   (dram_awready),
    .wdata     (m_axi_wdata),
    .wstrb     (m_axi_wstrb),
    .wlast     (m_axi_wlast),
    .wvalid    (m_axi_wvalid && shared),
    .wready    (dram_wready),
    .bid       (dram_bid),
    .bresp     (dram_bresp),
    .bvalid    (dram_bvalid),
    .bready    (m_axi_bready),
    .arid      (m_axi_arid),
    .araddr    (m_axi_araddr),
    .arlen     (m_axi_arlen),
    .arsize    (m_axi_arsize),
    .arburst   (m_axi_arburst),
    .arvalid   (m_axi_arvalid && shared),
    .arready   (dram_arready),
    .rid       (dram_rid),
    .rdata     (dram_rdata),
    .rresp     (dram_rresp),
    .rlast     (dram_rlast),
    .rvalid    (dram_rvalid),
    .rready    (m_axi_rready)
  );
endmodule
