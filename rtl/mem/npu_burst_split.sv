// SPDX-License-Identifier: Apache-2.0
/// Splits a byte range into AXI bursts of whole bus beats that never cross a page boundary.
///
/// A page holds at most 256 beats for every bus of 128 bits and more, so the page also bounds the
/// length. Latency one cycle, then one burst per cycle; a request of one burst per cycle is
/// sustained. `out_last_o` marks the last burst of a request. Requests have 1 to 65536 bytes.
///
/// The length of a burst is computed when it is loaded, not while it waits: a splitter without a
/// request costs neither hardware a toggle nor the simulator an addition.
module npu_burst_split
  import npu_pkg::*;
  import npu_mem_pkg::*;
#(
  parameter int unsigned BusBits = 256
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       in_valid_i,
  output logic                       in_ready_o,
  input  logic [ADDR_WIDTH-1:0]      in_addr_i,
  input  logic [REQ_BYTES_WIDTH-1:0] in_bytes_i,

  output logic                       out_valid_o,
  input  logic                       out_ready_i,
  output logic [ADDR_WIDTH-1:0]      out_addr_o,
  output logic [7:0]                 out_len_o,
  output logic                       out_last_o
);
  localparam int unsigned OffW = $clog2(BusBits / 8);
  localparam int unsigned PageW = $clog2(PAGE_BYTES) - OffW;
  // 65536 bytes at the worst alignment are one beat more than 65536 / bus bytes.
  localparam int unsigned BeatsW = REQ_BYTES_WIDTH - OffW;

  localparam logic [BeatsW-1:0] PageBeats = BeatsW'(1 << PageW);

  logic                       valid_q, last_q, in_fire, out_fire;
  logic [ADDR_WIDTH-1:OffW]   addr_q;
  logic [7:0]                 len_q;
  logic [BeatsW-1:0]          left_q;   // beats of the request after this burst

  assign out_valid_o = valid_q;
  assign out_addr_o  = {addr_q, OffW'(0)};
  assign out_len_o   = len_q;
  assign out_last_o  = last_q;
  assign in_ready_o  = !valid_q || (out_ready_i && last_q);
  assign in_fire     = in_valid_i && in_ready_o;
  assign out_fire    = valid_q && out_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)       valid_q <= 1'b0;
    else if (in_fire)  valid_q <= 1'b1;
    else if (out_fire) valid_q <= !last_q;
  end

  always_ff @(posedge clk_i) begin
    if (in_fire || out_fire) begin
      automatic logic [BeatsW-1:0] left, room, beats;
      automatic logic              fits;
      if (in_fire) begin
        // Bytes from the start of the first beat, rounded up to whole beats.
        left   = BeatsW'((in_bytes_i + REQ_BYTES_WIDTH'(in_addr_i[OffW-1:0])
                          + REQ_BYTES_WIDTH'(BusBits / 8 - 1)) >> OffW);
        room   = PageBeats - BeatsW'(in_addr_i[OffW+PageW-1:OffW]);
        addr_q <= in_addr_i[ADDR_WIDTH-1:OffW];
      end else begin  // every burst but the last ends at a page
        left   = left_q;
        room   = PageBeats;
        addr_q <= {addr_q[ADDR_WIDTH-1:OffW+PageW] + 1'b1, PageW'(0)};
      end
      fits   = left <= room;
      beats  = fits ? left : room;
      last_q <= fits;
      len_q  <= 8'(beats - BeatsW'(1));
      left_q <= left - beats;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && in_valid_i) begin
      BytesInRange: assert (in_bytes_i != '0 && in_bytes_i <= REQ_BYTES_WIDTH'(65536))
        else $error("npu_burst_split: request of %0d bytes", in_bytes_i);
    end
  end
endmodule
