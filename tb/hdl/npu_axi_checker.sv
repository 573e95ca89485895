// SPDX-License-Identifier: Apache-2.0
/// Protocol assertions of one AXI4 port, manager or subordinate (simulation only).
///
/// Sections in brackets are those of Arm IHI 0022H. Master rules: payload held until accepted
/// [A3.2.1], bursts within 4 KiB and of legal length, size and alignment [A3.4.1], WLAST where
/// AWLEN says [A3.4.1], no strobe outside the beat's lanes [A3.4.3], valid low in the first cycle
/// after reset [A3.1.2]. Slave rules: payload held, B only after its last W [A3.3.1], R only for
/// an open read, RLAST where ARLEN says. W data may come before its address: its length is checked
/// when the address comes, its strobes are not.
///
/// Cost: one question in a cycle in which the port rests. All assertions are immediate ones in a
/// clocked process: a concurrent assertion samples what it reads in every cycle, and samples a
/// whole memory where it reads one element of it.
module npu_axi_checker #(
  parameter int unsigned BusBits = 256,
  parameter int unsigned IdBits  = 8,
  parameter              Port    = "axi",
  localparam int unsigned StrbW  = BusBits / 8
) (
  input logic               clk_i,
  input logic               rst_ni,

  input logic               awvalid,
  input logic               awready,
  input logic [IdBits-1:0]  awid,
  input logic [63:0]        awaddr,
  input logic [7:0]         awlen,
  input logic [2:0]         awsize,
  input logic [1:0]         awburst,
  input logic               wvalid,
  input logic               wready,
  input logic [BusBits-1:0] wdata,
  input logic [StrbW-1:0]   wstrb,
  input logic               wlast,
  input logic               bvalid,
  input logic               bready,
  input logic [IdBits-1:0]  bid,
  input logic [1:0]         bresp,
  input logic               arvalid,
  input logic               arready,
  input logic [IdBits-1:0]  arid,
  input logic [63:0]        araddr,
  input logic [7:0]         arlen,
  input logic [2:0]         arsize,
  input logic [1:0]         arburst,
  input logic               rvalid,
  input logic               rready,
  input logic [IdBits-1:0]  rid,
  input logic [BusBits-1:0] rdata,
  input logic [1:0]         rresp,
  input logic               rlast
);
  localparam int unsigned LaneW = $clog2(StrbW);
  localparam int unsigned Ids   = 2 ** IdBits;
  localparam int unsigned Depth = 1024;  // bursts open at once; more is an error of its own
  localparam logic [1:0] Fixed = 2'd0;
  localparam logic [1:0] Incr  = 2'd1;
  localparam logic [1:0] Wrap  = 2'd2;

  typedef logic [$clog2(Depth)-1:0] slot_t;

  // ---- addresses ----
  function automatic logic legal(logic [63:0] addr, logic [7:0] len, logic [2:0] size,
                                 logic [1:0] burst);
    logic [63:0] first, last;
    if ((1 << size) > StrbW || burst == 2'd3) return 1'b0;
    if (burst == Fixed) return len < 8'd16;
    if (burst == Wrap) begin
      return (len == 8'd1 || len == 8'd3 || len == 8'd7 || len == 8'd15) &&
             (addr & ((64'd1 << size) - 64'd1)) == 64'd0;
    end
    first = (addr >> size) << size;
    last  = first + ((64'(len) + 64'd1) << size) - 64'd1;
    return (first ^ last) < 64'd4096;
  endfunction

  /// Byte lanes of a beat of an INCR burst.
  function automatic logic [StrbW-1:0] lanes(logic [63:0] addr, logic [2:0] size,
                                             logic [7:0] beat);
    logic [63:0] first, last;
    first = ((addr >> size) + 64'(beat)) << size;
    last  = first + (64'd1 << size) - 64'd1;
    if (beat == 8'd0) first = addr;
    lanes = ({StrbW{1'b1}} << LaneW'(first)) &
            ({StrbW{1'b1}} >> (LaneW'(StrbW - 1) - LaneW'(last)));
  endfunction

  // ---- writes: lengths of addresses and of data in the order of the port ----
  logic [7:0]  aw_len_q [Depth];
  logic [63:0] aw_addr_q [Depth];
  logic [2:0]  aw_size_q [Depth];
  logic [1:0]  aw_burst_q [Depth];
  logic [7:0]  w_len_q [Depth];
  logic [31:0] aw_count_q, w_count_q;   // addresses accepted, bursts of data finished
  logic [31:0] compared_q;  // bursts whose length of data was compared with that of the address
  logic [7:0]  w_beat_q;
  logic [31:0] b_open_q [Ids];          // addresses accepted and not answered
  logic [31:0] b_count_q;
  slot_t       w_slot, compared_slot;
  logic        fits;

  // ---- reads: open bursts of each id in order ----
  logic [7:0]  ar_len_q [Ids][Depth];
  logic [31:0] ar_count_q [Ids];
  logic [31:0] r_count_q [Ids];
  logic [7:0]  r_beat_q [Ids];

  // ---- payloads ----
  // A payload is kept only while it waits; `waited_q` has the channels that did in the last cycle.
  typedef logic [IdBits+76:0] addr_payload_t;  // id, address 64, len 8, size 3, burst 2

  logic [4:0]                waits, waited_q;  // R, AR, B, W, AW
  addr_payload_t             aw_held_q, ar_held_q;
  logic [BusBits+StrbW:0]    w_held_q;         // data, strobes, last
  logic [IdBits+1:0]         b_held_q;         // id, response 2
  logic [IdBits+BusBits+2:0] r_held_q;         // id, data, response 2, last
  logic                      first_q;          // the first cycle after reset

  `define NPU_STABLE(name, bit_number, valid, held, payload) \
    if (waited_q[bit_number]) begin \
      name: assert (valid && held == payload) \
        else $error("%s %s: valid or payload changed before it was accepted", Port, `"name`"); \
    end \
    if (waits[bit_number]) held = payload;

  // One process: first the rules, then the new state, with blocking assignments, as nothing else
  // reads it. Non-blocking ones to memories cost a queue of updates.
  always @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_count_q = '0;
      w_count_q  = '0;
      compared_q = '0;
      w_beat_q   = '0;
      b_count_q  = '0;
      waited_q   = '0;
      for (int i = 0; i < Ids; i++) begin
        b_open_q[i]   = '0;
        ar_count_q[i] = '0;
        r_count_q[i]  = '0;
        r_beat_q[i]   = '0;
      end
    end else if (awvalid || wvalid || bvalid || arvalid || rvalid || waited_q != '0 ||
                 compared_q != aw_count_q) begin
      QuietAfterReset: assert (!first_q)
        else $error("%s: a valid is high in the first cycle after reset", Port);

      waits = {rvalid && !rready, arvalid && !arready, bvalid && !bready, wvalid && !wready,
               awvalid && !awready};
      if ((waits | waited_q) != '0) begin
        `NPU_STABLE(AwStable, 0, awvalid, aw_held_q, {awid, awaddr, awlen, awsize, awburst})
        `NPU_STABLE(WStable, 1, wvalid, w_held_q, {wdata, wstrb, wlast})
        `NPU_STABLE(BStable, 2, bvalid, b_held_q, {bid, bresp})
        `NPU_STABLE(ArStable, 3, arvalid, ar_held_q, {arid, araddr, arlen, arsize, arburst})
        `NPU_STABLE(RStable, 4, rvalid, r_held_q, {rid, rdata, rresp, rlast})
        waited_q = waits;
      end

      // Writes. Data against address: whichever comes second is compared.
      if (compared_q != aw_count_q && compared_q != w_count_q) begin
        compared_slot = slot_t'(compared_q);
        WLastPlace: assert (aw_len_q[compared_slot] == w_len_q[compared_slot])
          else $error("%s: WLAST after %0d beats of a burst of %0d", Port,
                      w_len_q[compared_slot] + 1, aw_len_q[compared_slot] + 1);
        compared_q = compared_q + 32'd1;
      end
      w_slot = slot_t'(w_count_q);
      // Data that run ahead of their address have no lanes yet.
      if (wvalid && $signed(aw_count_q - w_count_q) > 0 && aw_burst_q[w_slot] == Incr) begin
        fits = (wstrb & ~lanes(aw_addr_q[w_slot], aw_size_q[w_slot], w_beat_q)) == '0;
        WStrbLanes: assert (fits)
          else $error("%s: strobes %h outside the lanes of beat %0d of the burst at %h", Port,
                      wstrb, w_beat_q, aw_addr_q[w_slot]);
      end
      if (bvalid) begin
        BHasAddress: assert (b_open_q[bid] != '0)
          else $error("%s: write response with id %h that has no open write", Port, bid);
        BAfterData: assert (b_count_q < w_count_q)
          else $error("%s: write response before the last beat of its data", Port);
      end
      if (awvalid) begin
        AwLegal: assert (legal(awaddr, awlen, awsize, awburst))
          else $error("%s: illegal write burst at %h: len %0d size %0d burst %0d", Port, awaddr,
                      awlen, awsize, awburst);
        if (awready) begin
          NotTooManyWrites: assert (aw_count_q - b_count_q < Depth)
            else $error("%s: more open writes than the checker can follow", Port);
          aw_len_q[slot_t'(aw_count_q)]   = awlen;
          aw_addr_q[slot_t'(aw_count_q)]  = awaddr;
          aw_size_q[slot_t'(aw_count_q)]  = awsize;
          aw_burst_q[slot_t'(aw_count_q)] = awburst;
          aw_count_q                      = aw_count_q + 32'd1;
          b_open_q[awid]                  = b_open_q[awid] + 32'd1;
        end
      end
      if (wvalid && wready) begin
        w_beat_q = w_beat_q + 8'd1;
        if (wlast) begin
          w_len_q[w_slot] = w_beat_q - 8'd1;
          w_count_q       = w_count_q + 32'd1;
          w_beat_q        = '0;
        end
      end
      if (bvalid && bready) begin
        b_count_q     = b_count_q + 32'd1;
        b_open_q[bid] = b_open_q[bid] - 32'd1;
      end

      // Reads
      if (rvalid) begin
        RHasAddress: assert (r_count_q[rid] != ar_count_q[rid])
          else $error("%s: read data with id %h that has no open read", Port, rid);
        RLastPlace: assert (r_count_q[rid] == ar_count_q[rid] ||
                            rlast == (r_beat_q[rid] == ar_len_q[rid][slot_t'(r_count_q[rid])]))
          else $error("%s: RLAST is %0d on beat %0d of a burst with id %h", Port, rlast,
                      r_beat_q[rid], rid);
      end
      if (arvalid) begin
        ArLegal: assert (legal(araddr, arlen, arsize, arburst))
          else $error("%s: illegal read burst at %h: len %0d size %0d burst %0d", Port, araddr,
                      arlen, arsize, arburst);
        if (arready) begin
          NotTooManyReads: assert (ar_count_q[arid] - r_count_q[arid] < Depth)
            else $error("%s: more open reads than the checker can follow", Port);
          ar_len_q[arid][slot_t'(ar_count_q[arid])] = arlen;
          ar_count_q[arid]                          = ar_count_q[arid] + 32'd1;
        end
      end
      if (rvalid && rready) begin
        r_beat_q[rid] = r_beat_q[rid] + 8'd1;
        if (rlast) begin
          r_count_q[rid] = r_count_q[rid] + 32'd1;
          r_beat_q[rid]  = '0;
        end
      end
    end
    first_q = !rst_ni;
  end
  `undef NPU_STABLE
endmodule
