// SPDX-License-Identifier: Apache-2.0
/// A few registers and a copy engine behind the pins of npu_top: what the tests of the simulator
/// need, and small enough to build in seconds.
///
/// Registers: 0x000 ID, 0x020 cycles since reset, 0x030 IRQ_STATUS (bit 0, write 1 to clear),
/// 0x034 IRQ_ENABLE, 0x040 source, 0x048 destination, 0x050 beats per burst minus one,
/// 0x054 bursts to copy (writing starts), 0x058 read answers that were errors in [15:0], write
/// answers that were errors in [31:16], 0x05C any write: never answer again, 0x060 any write: fail
/// an assertion, 0x064 a register that nothing resets, 0x068 any write: $finish, 0x06C busy cycles.
///
/// Odd input: an unknown offset reads as zero; a copy must not cross 4 KiB within a burst.
module npu_top #(
  parameter int unsigned ArraySize = 16,
  parameter int unsigned BusBits = 256,
  parameter int unsigned FmaLatency = 4,
  parameter int unsigned AccTiles = 4,
  parameter int unsigned RowTiles = 4,
  parameter int unsigned WeightSlots = 2,
  parameter int unsigned VectorLanes = 4,
  parameter bit WholeWrites = 1'b0,
  parameter logic [63:0] MemBase = 64'h0,
  parameter logic [63:0] MemLimit = 64'h2000_0000
) (
  input  logic                 clk,
  input  logic                 rst_n,
  output logic                 irq,

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

  output logic [7:0]                 m_axi_awid,
  output logic [63:0]                m_axi_awaddr,
  output logic [7:0]                 m_axi_awlen,
  output logic [2:0]                 m_axi_awsize,
  output logic [1:0]                 m_axi_awburst,
  output logic [3:0]                 m_axi_awcache,
  output logic [2:0]                 m_axi_awprot,
  output logic                       m_axi_awvalid,
  input  logic                       m_axi_awready,
  output logic [BusBits-1:0]         m_axi_wdata,
  output logic [BusBits/8-1:0]       m_axi_wstrb,
  output logic                       m_axi_wlast,
  output logic                       m_axi_wvalid,
  input  logic                       m_axi_wready,
  input  logic [7:0]                 m_axi_bid,
  input  logic [1:0]                 m_axi_bresp,
  input  logic                       m_axi_bvalid,
  output logic                       m_axi_bready,
  output logic [7:0]                 m_axi_arid,
  output logic [63:0]                m_axi_araddr,
  output logic [7:0]                 m_axi_arlen,
  output logic [2:0]                 m_axi_arsize,
  output logic [1:0]                 m_axi_arburst,
  output logic [3:0]                 m_axi_arcache,
  output logic [2:0]                 m_axi_arprot,
  output logic                       m_axi_arvalid,
  input  logic                       m_axi_arready,
  input  logic [7:0]                 m_axi_rid,
  input  logic [BusBits-1:0]         m_axi_rdata,
  input  logic [1:0]                 m_axi_rresp,
  input  logic                       m_axi_rlast,
  input  logic                       m_axi_rvalid,
  output logic                       m_axi_rready
);
  localparam int unsigned BusBytes = BusBits / 8;

  logic        hang_q, irq_status_q, irq_enable_q, fail_q;
  logic [31:0] source_q, target_q, cycles_q, busy_q, unset_q;
  logic [7:0]  len_q;
  logic [15:0] ar_left_q, aw_left_q, b_left_q, read_errors_q, write_errors_q;
  logic [31:0] burst_bytes;
  logic        write_now, read_now, done;

  assign irq = irq_status_q && irq_enable_q;

  // Registers
  assign write_now      = s_axil_awvalid && s_axil_wvalid && !s_axil_bvalid && !hang_q;
  assign read_now       = s_axil_arvalid && !s_axil_rvalid && !hang_q;
  assign s_axil_awready = write_now;
  assign s_axil_wready  = write_now;
  assign s_axil_arready = read_now;
  assign s_axil_bresp   = '0;
  assign s_axil_rresp   = '0;
  assign burst_bytes    = (32'(len_q) + 32'd1) * BusBytes;
  assign done           = m_axi_bvalid && b_left_q == 16'd1;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      s_axil_bvalid  <= 1'b0;
      s_axil_rvalid  <= 1'b0;
      hang_q         <= 1'b0;
      fail_q         <= 1'b0;
      irq_status_q   <= 1'b0;
      irq_enable_q   <= 1'b0;
      cycles_q       <= '0;
      busy_q         <= '0;
      ar_left_q      <= '0;
      aw_left_q      <= '0;
      b_left_q       <= '0;
      read_errors_q  <= '0;
      write_errors_q <= '0;
    end else begin
      cycles_q <= cycles_q + 32'd1;
      if (b_left_q != '0) busy_q <= busy_q + 32'd1;
      if (s_axil_bready) s_axil_bvalid <= 1'b0;
      if (s_axil_rready) s_axil_rvalid <= 1'b0;
      if (m_axi_arvalid && m_axi_arready) begin
        ar_left_q <= ar_left_q - 16'd1;
        source_q  <= source_q + burst_bytes;
      end
      if (m_axi_awvalid && m_axi_awready) begin
        aw_left_q <= aw_left_q - 16'd1;
        target_q  <= target_q + burst_bytes;
      end
      if (m_axi_rvalid && m_axi_rready && m_axi_rresp != '0) read_errors_q <= read_errors_q + 16'd1;
      if (m_axi_bvalid) begin
        b_left_q <= b_left_q - 16'd1;
        if (m_axi_bresp != '0) write_errors_q <= write_errors_q + 16'd1;
      end
      if (write_now) begin
        s_axil_bvalid <= 1'b1;
        unique case (s_axil_awaddr)
          16'h030: if (s_axil_wdata[0]) irq_status_q <= 1'b0;
          16'h034: irq_enable_q <= s_axil_wdata[0];
          16'h040: source_q <= s_axil_wdata;
          16'h048: target_q <= s_axil_wdata;
          16'h050: len_q <= s_axil_wdata[7:0];
          16'h054: begin
            ar_left_q <= s_axil_wdata[15:0];
            aw_left_q <= s_axil_wdata[15:0];
            b_left_q  <= s_axil_wdata[15:0];
            busy_q    <= '0;
          end
          16'h05C: hang_q <= 1'b1;
          16'h060: fail_q <= 1'b1;
          16'h068: $finish;
          default: ;
        endcase
      end
      if (read_now) begin
        s_axil_rvalid <= 1'b1;
        unique case (s_axil_araddr)
          16'h000: s_axil_rdata <= 32'h4E50_5530;
          16'h020: s_axil_rdata <= cycles_q;
          16'h030: s_axil_rdata <= 32'(irq_status_q);
          16'h034: s_axil_rdata <= 32'(irq_enable_q);
          16'h058: s_axil_rdata <= {write_errors_q, read_errors_q};
          16'h064: s_axil_rdata <= unset_q;
          16'h06C: s_axil_rdata <= busy_q;
          default: s_axil_rdata <= '0;
        endcase
      end
      if (done) irq_status_q <= 1'b1;
    end
  end

  // Holds whatever it had at power-up.
  always_ff @(posedge clk) begin
    if (fail_q) unset_q <= cycles_q;
  end

  // Copy engine: what is read is written, beat by beat.
  logic [7:0] w_beat_q;

  always_ff @(posedge clk) begin
    if (!rst_n) w_beat_q <= '0;
    else if (m_axi_wvalid && m_axi_wready) w_beat_q <= m_axi_wlast ? '0 : w_beat_q + 8'd1;
  end

  assign m_axi_arvalid = ar_left_q != '0;
  assign m_axi_araddr  = 64'(source_q);
  assign m_axi_arlen   = len_q;
  assign m_axi_arsize  = 3'($clog2(BusBytes));
  assign m_axi_arburst = 2'd1;
  assign m_axi_arid    = '0;
  assign m_axi_arcache = '0;
  assign m_axi_arprot  = '0;
  assign m_axi_rready  = m_axi_wready;

  assign m_axi_awvalid = aw_left_q != '0;
  assign m_axi_awaddr  = 64'(target_q);
  assign m_axi_awlen   = len_q;
  assign m_axi_awsize  = 3'($clog2(BusBytes));
  assign m_axi_awburst = 2'd1;
  assign m_axi_awid    = 8'd1;
  assign m_axi_awcache = '0;
  assign m_axi_awprot  = '0;
  assign m_axi_wvalid  = m_axi_rvalid;
  assign m_axi_wdata   = m_axi_rdata;
  assign m_axi_wstrb   = '1;
  assign m_axi_wlast   = w_beat_q == len_q;
  assign m_axi_bready  = 1'b1;

  // The host port is closed: nothing is accepted.
  assign s_axi_awready = 1'b0;
  assign s_axi_wready  = 1'b0;
  assign s_axi_bid     = '0;
  assign s_axi_bresp   = '0;
  assign s_axi_bvalid  = 1'b0;
  assign s_axi_arready = 1'b0;
  assign s_axi_rid     = '0;
  assign s_axi_rdata   = '0;
  assign s_axi_rresp   = '0;
  assign s_axi_rlast   = 1'b0;
  assign s_axi_rvalid  = 1'b0;

  AskedToFail: assert property (@(posedge clk) disable iff (!rst_n) !fail_q)
    else $error("standin: asked to fail");
endmodule
