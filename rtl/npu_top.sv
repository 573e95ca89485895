// SPDX-License-Identifier: Apache-2.0
/// The NPU's pins, in AMBA's names; nothing but wiring.
///
/// s_axil: registers (docs/registers.md). s_axi: the host's window into device memory, addresses as
/// the device sees them. m_axi: the DRAM. irq: level, high while an enabled cause is pending.
///
/// What m_axi is connected to must serve reads and writes independently of each other: engines ask
/// for a write when its first data is here, and may need further reads for the rest of it. One that
/// serves a burst at a time takes WholeWrites: a write is asked for when all its data is here. A
/// write response must come from where every other manager reads, for completion records and
/// interrupts follow it.
module npu_top
  import npu_mem_pkg::*;
  import npu_ctrl_pkg::*;
#(
  parameter int unsigned ArraySize   = 16,              // 8, 16, 32
  parameter int unsigned BusBits     = 256,             // 128, 256, 512: s_axi and m_axi
  parameter int unsigned FmaLatency  = 4,               // cycles of one multiply-add
  parameter int unsigned AccTiles    = 64,              // tiles in each accumulator half
  parameter int unsigned RowTiles    = 8,               // row tiles of a block
  parameter int unsigned WeightSlots = 16,              // weight tiles waiting in the array
  parameter int unsigned VectorLanes = 16,              // 4, 8, 16: of the vector engine
  parameter bit          WholeWrites = 1'b0,            // for a memory of one port, see above
  parameter logic [63:0] MemBase     = 64'h0000_0000,   // device memory: first byte
  parameter logic [63:0] MemLimit    = 64'h2000_0000,   // and the first byte beyond
  localparam int unsigned StrbW      = BusBits / 8
) (
  input  logic        clk,
  input  logic        rst_n,
  output logic        irq,

  input  logic s_axil_awvalid,
  output logic s_axil_awready,
  input  logic [15:0] s_axil_awaddr,
  input  logic [2:0] s_axil_awprot,
  input  logic s_axil_wvalid,
  output logic s_axil_wready,
  input  logic [31:0] s_axil_wdata,
  input  logic [3:0] s_axil_wstrb,
  output logic s_axil_bvalid,
  input  logic s_axil_bready,
  output logic [1:0] s_axil_bresp,
  input  logic s_axil_arvalid,
  output logic s_axil_arready,
  input  logic [15:0] s_axil_araddr,
  input  logic [2:0] s_axil_arprot,
  output logic s_axil_rvalid,
  input  logic s_axil_rready,
  output logic [31:0] s_axil_rdata,
  output logic [1:0] s_axil_rresp,

  input  logic s_axi_awvalid,
  output logic s_axi_awready,
  input  logic [HOST_ID_WIDTH-1:0] s_axi_awid,
  input  logic [63:0] s_axi_awaddr,
  input  logic [7:0] s_axi_awlen,
  input  logic [2:0] s_axi_awsize,
  input  logic [1:0] s_axi_awburst,
  input  logic s_axi_wvalid,
  output logic s_axi_wready,
  input  logic [BusBits-1:0] s_axi_wdata,
  input  logic [StrbW-1:0] s_axi_wstrb,
  input  logic s_axi_wlast,
  output logic s_axi_bvalid,
  input  logic s_axi_bready,
  output logic [HOST_ID_WIDTH-1:0] s_axi_bid,
  output logic [1:0] s_axi_bresp,
  input  logic s_axi_arvalid,
  output logic s_axi_arready,
  input  logic [HOST_ID_WIDTH-1:0] s_axi_arid,
  input  logic [63:0] s_axi_araddr,
  input  logic [7:0] s_axi_arlen,
  input  logic [2:0] s_axi_arsize,
  input  logic [1:0] s_axi_arburst,
  output logic s_axi_rvalid,
  input  logic s_axi_rready,
  output logic [HOST_ID_WIDTH-1:0] s_axi_rid,
  output logic [BusBits-1:0] s_axi_rdata,
  output logic [1:0] s_axi_rresp,
  output logic s_axi_rlast,

  output logic m_axi_awvalid,
  input  logic m_axi_awready,
  output logic [AXI_ID_WIDTH-1:0] m_axi_awid,
  output logic [63:0] m_axi_awaddr,
  output logic [7:0] m_axi_awlen,
  output logic [2:0] m_axi_awsize,
  output logic [1:0] m_axi_awburst,
  output logic [3:0] m_axi_awcache,
  output logic [2:0] m_axi_awprot,
  output logic m_axi_wvalid,
  input  logic m_axi_wready,
  output logic [BusBits-1:0] m_axi_wdata,
  output logic [StrbW-1:0] m_axi_wstrb,
  output logic m_axi_wlast,
  input  logic m_axi_bvalid,
  output logic m_axi_bready,
  input  logic [AXI_ID_WIDTH-1:0] m_axi_bid,
  input  logic [1:0] m_axi_bresp,
  output logic m_axi_arvalid,
  input  logic m_axi_arready,
  output logic [AXI_ID_WIDTH-1:0] m_axi_arid,
  output logic [63:0] m_axi_araddr,
  output logic [7:0] m_axi_arlen,
  output logic [2:0] m_axi_arsize,
  output logic [1:0] m_axi_arburst,
  output logic [3:0] m_axi_arcache,
  output logic [2:0] m_axi_arprot,
  input  logic m_axi_rvalid,
  output logic m_axi_rready,
  input  logic [AXI_ID_WIDTH-1:0] m_axi_rid,
  input  logic [BusBits-1:0] m_axi_rdata,
  input  logic [1:0] m_axi_rresp,
  input  logic m_axi_rlast
);
  axil_req_t axil_req;
  axil_rsp_t axil_rsp;
  host_req_t host_req;
  host_rsp_t host_rsp;
  axi_req_t  dram_req;
  axi_rsp_t  dram_rsp;

  assign axil_req = '{
    aw_valid: s_axil_awvalid, aw_addr: s_axil_awaddr, aw_prot: s_axil_awprot,
    w_valid: s_axil_wvalid, w_data: s_axil_wdata, w_strb: s_axil_wstrb, b_ready: s_axil_bready,
    ar_valid: s_axil_arvalid, ar_addr: s_axil_araddr, ar_prot: s_axil_arprot,
    r_ready: s_axil_rready
  };
  assign s_axil_awready = axil_rsp.aw_ready;
  assign s_axil_wready  = axil_rsp.w_ready;
  assign s_axil_bvalid  = axil_rsp.b_valid;
  assign s_axil_bresp   = axil_rsp.b_resp;
  assign s_axil_arready = axil_rsp.ar_ready;
  assign s_axil_rvalid  = axil_rsp.r_valid;
  assign s_axil_rdata   = axil_rsp.r_data;
  assign s_axil_rresp   = axil_rsp.r_resp;

  assign host_req = '{
    ar_valid: s_axi_arvalid,
    ar: '{id: s_axi_arid, addr: s_axi_araddr, len: s_axi_arlen, size: s_axi_arsize,
          burst: burst_e'(s_axi_arburst)},
    r_ready: s_axi_rready, aw_valid: s_axi_awvalid,
    aw: '{id: s_axi_awid, addr: s_axi_awaddr, len: s_axi_awlen, size: s_axi_awsize,
          burst: burst_e'(s_axi_awburst)},
    w_valid: s_axi_wvalid, w_last: s_axi_wlast, b_ready: s_axi_bready
  };
  assign s_axi_arready = host_rsp.ar_ready;
  assign s_axi_rvalid  = host_rsp.r_valid;
  assign s_axi_rid     = host_rsp.r_id;
  assign s_axi_rresp   = host_rsp.r_resp;
  assign s_axi_rlast   = host_rsp.r_last;
  assign s_axi_awready = host_rsp.aw_ready;
  assign s_axi_wready  = host_rsp.w_ready;
  assign s_axi_bvalid  = host_rsp.b_valid;
  assign s_axi_bid     = host_rsp.b_id;
  assign s_axi_bresp   = host_rsp.b_resp;

  assign dram_rsp = '{
    ar_ready: m_axi_arready, r_valid: m_axi_rvalid, r_id: m_axi_rid, r_resp: resp_e'(m_axi_rresp),
    r_last: m_axi_rlast, aw_ready: m_axi_awready, w_ready: m_axi_wready, b_valid: m_axi_bvalid,
    b_id: m_axi_bid, b_resp: resp_e'(m_axi_bresp)
  };
  assign m_axi_arvalid = dram_req.ar_valid;
  assign m_axi_arid    = dram_req.ar.id;
  assign m_axi_araddr  = dram_req.ar.addr;
  assign m_axi_arlen   = dram_req.ar.len;
  assign m_axi_arsize  = dram_req.ar.size;
  assign m_axi_arburst = dram_req.ar.burst;
  assign m_axi_rready  = dram_req.r_ready;
  assign m_axi_awvalid = dram_req.aw_valid;
  assign m_axi_awid    = dram_req.aw.id;
  assign m_axi_awaddr  = dram_req.aw.addr;
  assign m_axi_awlen   = dram_req.aw.len;
  assign m_axi_awsize  = dram_req.aw.size;
  assign m_axi_awburst = dram_req.aw.burst;
  assign m_axi_wvalid  = dram_req.w_valid;
  assign m_axi_wlast   = dram_req.w_last;
  assign m_axi_bready  = dram_req.b_ready;
  // Normal, non-cacheable, not bufferable memory; unprivileged, secure data.
  assign m_axi_awcache = 4'b0010;
  assign m_axi_arcache = 4'b0010;
  assign m_axi_awprot  = 3'b000;
  assign m_axi_arprot  = 3'b000;

  // Other values elaborate, and then hang or address too little.
  if (!(ArraySize inside {8, 16, 32})) begin : gen_bad_array_size
    $error("npu_top: ArraySize %0d", ArraySize);
  end
  if (!(BusBits inside {128, 256, 512})) begin : gen_bad_bus_bits
    $error("npu_top: BusBits %0d", BusBits);
  end
  if (!(VectorLanes inside {4, 8, 16})) begin : gen_bad_vector_lanes
    $error("npu_top: VectorLanes %0d", VectorLanes);
  end
  if (!(FmaLatency inside {[1:8]})) begin : gen_bad_fma_latency
    $error("npu_top: FmaLatency %0d", FmaLatency);
  end
  if (!(WeightSlots inside {[2:32]})) begin : gen_bad_weight_slots
    $error("npu_top: WeightSlots %0d", WeightSlots);
  end
  if (!(AccTiles inside {[1:128]}) || $countones(AccTiles) != 1) begin : gen_bad_acc_tiles
    $error("npu_top: AccTiles %0d", AccTiles);
  end
  if (!(RowTiles inside {[1:16]}) || $countones(RowTiles) != 1 || RowTiles > AccTiles)
  begin : gen_bad_row_tiles
    $error("npu_top: RowTiles %0d", RowTiles);
  end
  if ((MemBase | MemLimit) % 64 != 0 || MemLimit <= MemBase) begin : gen_bad_memory
    $error("npu_top: memory from %0h to %0h", MemBase, MemLimit);
  end

  npu_core #(
    .ArraySize(ArraySize), .BusBits(BusBits), .FmaLatency(FmaLatency), .AccTiles(AccTiles),
    .RowTiles(RowTiles), .WeightSlots(WeightSlots), .VectorLanes(VectorLanes),
    .WholeWrites(WholeWrites), .MemBase(MemBase), .MemLimit(MemLimit)
  ) u_core (
    .clk_i(clk),
    .rst_ni(rst_n),
    .irq_o(irq),
    .axil_req_i(axil_req),
    .axil_rsp_o(axil_rsp),
    .host_req_i(host_req),
    .host_rsp_o(host_rsp),
    .host_w_data_i(s_axi_wdata),
    .host_w_strb_i(s_axi_wstrb),
    .host_r_data_o(s_axi_rdata),
    .axi_req_o(dram_req),
    .axi_rsp_i(dram_rsp),
    .axi_w_data_o(m_axi_wdata),
    .axi_w_strb_o(m_axi_wstrb),
    .axi_r_data_i(m_axi_rdata)
  );
endmodule
