// SPDX-License-Identifier: Apache-2.0
/// AXI4 slave in front of the memory that C++ and Python share (simulation only).
///
/// Behaviour: INCR, WRAP and FIXED bursts of any length and size, in order on each side but for
/// stalls; a read burst's first beat is offered `latency_i` cycles after its address was accepted
/// (at least two), then one beat per cycle; up to ReadDepth bursts wait at once. Write beats reach
/// the memory in the cycle they are accepted, read beats leave it in the cycle before they are
/// offered, so a read issued after a write's response sees the write. Writes are posted, as memory
/// controllers do: the answer is offered WriteLatency cycles after the last beat, whatever the
/// latency of reads. With SinglePort it serves one burst at a time, a read to its last beat or a
/// write to its answer, and where both are offered one in turn.
///
/// Odd input: an address outside the window is answered DECERR, one in a poisoned range SLVERR or
/// DECERR as the range says; an unwritten byte reads as zero. `stall_i` is the chance out of 256
/// that a channel holds back for a cycle, drawn from a generator that restarts from `seed_i` at
/// reset; besides, every PauseCycles one of the five channels may be drawn that holds back until
/// the next time, so that what is behind it fills up. Read bursts of different ids then overtake
/// each other, between their beats too, and so do answers to writes: while the channel holds back,
/// neighbours change places. What has one id keeps its order. 0 costs nothing.
///
/// Cost: one DPI call per beat, none when idle.
module npu_dram #(
  parameter int unsigned BusBits = 256,
  parameter int unsigned IdBits = 8,
  parameter int unsigned ReadDepth = 256,
  parameter int unsigned WriteDepth = 64,
  parameter int unsigned WriteLatency = 8,
  parameter int unsigned PauseCycles = 512,
  parameter bit          SinglePort = 1'b0
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic [15:0]          latency_i,
  input  logic [7:0]           stall_i,
  input  logic [31:0]          seed_i,

  input  logic                 arvalid,
  output logic                 arready,
  input  logic [IdBits-1:0]    arid,
  input  logic [63:0]          araddr,
  input  logic [7:0]           arlen,
  input  logic [2:0]           arsize,
  input  logic [1:0]           arburst,
  output logic                 rvalid,
  input  logic                 rready,
  output logic [IdBits-1:0]    rid,
  output logic [BusBits-1:0]   rdata,
  output logic [1:0]           rresp,
  output logic                 rlast,

  input  logic                 awvalid,
  output logic                 awready,
  input  logic [IdBits-1:0]    awid,
  input  logic [63:0]          awaddr,
  input  logic [7:0]           awlen,
  input  logic [2:0]           awsize,
  input  logic [1:0]           awburst,
  input  logic                 wvalid,
  output logic                 wready,
  input  logic [BusBits-1:0]   wdata,
  input  logic [BusBits/8-1:0] wstrb,
  input  logic                 wlast,
  output logic                 bvalid,
  input  logic                 bready,
  output logic [IdBits-1:0]    bid,
  output logic [1:0]           bresp
);
  // Both return an AXI response code; `addr` is that of the beat, before alignment to the bus.
  import "DPI-C" function int npu_dram_read(
    input longint unsigned addr, input int unsigned size_bytes, input int unsigned bus_bytes,
    output bit [BusBits-1:0] data);
  import "DPI-C" function int npu_dram_write(
    input longint unsigned addr, input int unsigned size_bytes, input int unsigned bus_bytes,
    input bit [BusBits-1:0] data, input bit [BusBits/8-1:0] strb);

  localparam int unsigned BusBytes = BusBits / 8;
  localparam int unsigned RPtrW = $clog2(ReadDepth);
  localparam int unsigned WPtrW = $clog2(WriteDepth);
  localparam logic [1:0] BURST_FIXED = 2'd0;
  localparam logic [1:0] BURST_WRAP = 2'd2;

  typedef struct packed {
    logic [IdBits-1:0] id;
    logic [63:0]       addr;
    logic [7:0]        len;
    logic [2:0]        size;
    logic [1:0]        burst;
    logic [31:0]       due;  // first cycle in which the burst may be served
    logic [7:0]        beat; // the next one, which is at `addr`
  } burst_t;

  typedef struct packed {
    logic [IdBits-1:0] id;
    logic [1:0]        resp;
    logic [31:0]       due;
  } answer_t;

  /// Address of the beat after `addr`.
  function automatic logic [63:0] next_addr(logic [63:0] addr, burst_t b);
    logic [63:0] step, incremented, container;
    step = 64'd1 << b.size;
    incremented = (addr & ~(step - 64'd1)) + step;
    container = (64'(b.len) + 64'd1) << b.size;
    if (b.burst == BURST_FIXED) return addr;
    if (b.burst == BURST_WRAP) begin
      return (addr & ~(container - 64'd1)) | (incremented & (container - 64'd1));
    end
    return incremented;
  endfunction

  logic [31:0] now_q, rand_q;
  logic        hold_ar, hold_r, hold_aw, hold_w, hold_b;
  logic [3:0]  pause_q;  // the channel's number, if it is one

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      now_q   <= '0;
      rand_q  <= scrambled(seed_i);
      pause_q <= '1;
    end else begin
      now_q <= now_q + 32'd1;
      if (stall_i != '0) begin
        rand_q <= xorshift(rand_q);
        if (now_q % PauseCycles == '0) pause_q <= rand_q[31:28];
      end
    end
  end

  /// Neighbouring seeds far apart, none of them zero.
  function automatic logic [31:0] scrambled(logic [31:0] seed);
    logic [31:0] product;
    product = (seed + 32'd1) * 32'h9E37_79B1;
    return (product == '0) ? 32'd1 : product;
  endfunction

  /// Marsaglia's 32-bit generator; never reaches zero from a non-zero state.
  function automatic logic [31:0] xorshift(logic [31:0] x);
    logic [31:0] a, b;
    a = x ^ (x << 13);
    b = a ^ (a >> 17);
    return b ^ (b << 5);
  endfunction

  /// One draw per channel from overlapping windows of the state.
  function automatic logic held(logic [31:0] state, int unsigned shift, logic [7:0] chance,
                                logic pause);
    return chance != '0 && (pause || 8'(state >> shift) < chance);
  endfunction

  assign hold_ar = held(rand_q, 0, stall_i, pause_q == 4'd0);
  assign hold_r  = held(rand_q, 5, stall_i, pause_q == 4'd1);
  assign hold_aw = held(rand_q, 11, stall_i, pause_q == 4'd2);
  assign hold_w  = held(rand_q, 17, stall_i, pause_q == 4'd3);
  assign hold_b  = held(rand_q, 24, stall_i, pause_q == 4'd4);

  // Whether the port is free for a read, and for a write.
  logic free_ar, free_aw;

  // Reads
  burst_t            ar_mem_q [ReadDepth]; // assigned with =: one process alone uses it
  burst_t            ar_head, ar_new;
  logic [RPtrW:0]    ar_wr_q, ar_rd_q, ar_count, r_pair;
  logic              ar_empty, ar_full, r_load, r_swap;

  assign ar_count = ar_wr_q - ar_rd_q;
  assign ar_empty = ar_count == '0;
  assign ar_full  = ar_count[RPtrW];
  assign ar_head  = ar_mem_q[ar_rd_q[RPtrW-1:0]];
  assign ar_new   = '{id: arid, addr: araddr, len: arlen, size: arsize, burst: arburst,
                      due: now_q + 32'(latency_i) - 32'd1, beat: '0};
  assign arready  = !ar_full && !hold_ar && free_ar;
  assign r_load   = !ar_empty && !hold_r && (!rvalid || rready)
                    && ($signed(now_q - ar_head.due) >= 0);
  assign r_pair   = (RPtrW + 1)'(rand_q[15:13]);
  assign r_swap   = hold_r && r_pair + (RPtrW + 1)'(1) < ar_count;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_wr_q <= '0;
      ar_rd_q <= '0;
      rvalid  <= 1'b0;
    end else begin
      if (r_load) begin
        automatic logic [BusBits-1:0] beat;
        rresp  <= 2'(npu_dram_read(ar_head.addr, 32'd1 << ar_head.size, BusBytes, beat));
        rdata  <= beat;
        rid    <= ar_head.id;
        rlast  <= ar_head.beat == ar_head.len;
        rvalid <= 1'b1;
        if (ar_head.beat == ar_head.len) ar_rd_q <= ar_rd_q + (RPtrW + 1)'(1);
        ar_mem_q[ar_rd_q[RPtrW-1:0]].beat = ar_head.beat + 8'd1;
        ar_mem_q[ar_rd_q[RPtrW-1:0]].addr = next_addr(ar_head.addr, ar_head);
      end else if (rready) begin
        rvalid <= 1'b0;
      end
      if (r_swap) begin
        automatic logic [RPtrW-1:0] first, second;
        automatic burst_t           overtaken;
        first     = RPtrW'(ar_rd_q + r_pair);
        second    = first + RPtrW'(1);
        overtaken = ar_mem_q[first];
        if (overtaken.id != ar_mem_q[second].id) begin
          ar_mem_q[first]  = ar_mem_q[second];
          ar_mem_q[second] = overtaken;
        end
      end
      if (arvalid && arready) begin
        ar_mem_q[ar_wr_q[RPtrW-1:0]] = ar_new;
        ar_wr_q                     <= ar_wr_q + (RPtrW + 1)'(1);
      end
    end
  end

  // Writes
  burst_t            aw_mem_q [WriteDepth];
  answer_t           b_mem_q [WriteDepth]; // as ar_mem_q
  burst_t            aw_head, aw_new;
  answer_t           b_head;
  logic [WPtrW:0]    aw_wr_q, aw_rd_q, b_wr_q, b_rd_q, b_count, b_pair;
  logic [7:0]        w_beat_q;
  logic [63:0]       w_addr_q, w_addr;
  logic [1:0]        w_resp_q;
  logic              aw_empty, aw_full, b_full, b_load, b_swap;

  assign aw_empty = aw_wr_q == aw_rd_q;
  assign aw_full  = (aw_wr_q ^ aw_rd_q) == {1'b1, {WPtrW{1'b0}}};
  assign aw_head  = aw_mem_q[aw_rd_q[WPtrW-1:0]];
  assign b_head   = b_mem_q[b_rd_q[WPtrW-1:0]];
  assign b_count  = b_wr_q - b_rd_q;
  assign b_full   = b_count[WPtrW];
  assign aw_new   = '{id: awid, addr: awaddr, len: awlen, size: awsize, burst: awburst, due: now_q,
                      beat: '0};
  assign awready  = !aw_full && !hold_aw && free_aw;
  assign wready   = !aw_empty && !b_full && !hold_w;
  assign w_addr   = (w_beat_q == '0) ? aw_head.addr : w_addr_q;
  assign b_load   = b_count != '0 && !hold_b && (!bvalid || bready)
                    && ($signed(now_q - b_head.due) >= 0);
  assign b_pair   = (WPtrW + 1)'(rand_q[9:8]);
  assign b_swap   = hold_b && b_pair + (WPtrW + 1)'(1) < b_count;

  always_ff @(posedge clk_i) begin
    if (awvalid && awready) aw_mem_q[aw_wr_q[WPtrW-1:0]] <= aw_new;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_wr_q  <= '0;
      aw_rd_q  <= '0;
      b_wr_q   <= '0;
      b_rd_q   <= '0;
      w_beat_q <= '0;
      w_resp_q <= '0;
      bvalid   <= 1'b0;
    end else begin
      if (awvalid && awready) aw_wr_q <= aw_wr_q + (WPtrW + 1)'(1);
      if (wvalid && wready) begin
        automatic logic [1:0] resp;
        resp = 2'(npu_dram_write(w_addr, 32'd1 << aw_head.size, BusBytes, wdata, wstrb));
        resp = (resp > w_resp_q) ? resp : w_resp_q;
        w_resp_q <= resp;
        w_addr_q <= next_addr(w_addr, aw_head);
        w_beat_q <= w_beat_q + 8'd1;
        if (w_beat_q == aw_head.len) begin
          b_mem_q[b_wr_q[WPtrW-1:0]] = '{id: aw_head.id, resp: resp,
                                         due: now_q + WriteLatency - 32'd1};
          b_wr_q   <= b_wr_q + (WPtrW + 1)'(1);
          aw_rd_q  <= aw_rd_q + (WPtrW + 1)'(1);
          w_beat_q <= '0;
          w_resp_q <= '0;
        end
      end
      if (b_swap) begin
        automatic logic [WPtrW-1:0] first, second;
        automatic answer_t          overtaken;
        first     = WPtrW'(b_rd_q + b_pair);
        second    = first + WPtrW'(1);
        overtaken = b_mem_q[first];
        if (overtaken.id != b_mem_q[second].id) begin
          b_mem_q[first]  = b_mem_q[second];
          b_mem_q[second] = overtaken;
        end
      end
      if (b_load) begin
        bid    <= b_head.id;
        bresp  <= b_head.resp;
        bvalid <= 1'b1;
        b_rd_q <= b_rd_q + (WPtrW + 1)'(1);
      end else if (bready) begin
        bvalid <= 1'b0;
      end
    end
  end

  if (SinglePort) begin : gen_single_port
    logic busy_q, write_turn_q, took, ended;

    assign took    = (arvalid && arready) || (awvalid && awready);
    assign ended   = (rvalid && rready && rlast) || (bvalid && bready);
    assign free_ar = !busy_q && !(awvalid && write_turn_q);
    assign free_aw = !busy_q && !(arvalid && !write_turn_q);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        busy_q       <= 1'b0;
        write_turn_q <= 1'b0;
      end else if (took) begin
        busy_q       <= 1'b1;
        write_turn_q <= !write_turn_q;
      end else if (ended) begin
        busy_q <= 1'b0;
      end
    end
  end else begin : gen_two_ports
    assign free_ar = 1'b1;
    assign free_aw = 1'b1;
  end

  // Immediate: a concurrent assertion would sample the whole queue of addresses in every cycle.
  always_ff @(posedge clk_i) begin
    if (rst_ni && wvalid && wready) begin
      WlastMatchesLength: assert (wlast == (w_beat_q == aw_head.len))
        else $error("npu_dram: wlast=%0b on beat %0d of a burst of %0d", wlast, w_beat_q,
                    32'(aw_head.len) + 1);
    end
  end
endmodule
