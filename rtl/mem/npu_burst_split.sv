// SPDX-License-Identifier: Apache-2.0
/// Splits the byte ranges of each client into AXI bursts of whole bus beats that never cross a page
/// boundary.
///
/// A page holds at most MAX_BURST_BEATS for every bus of 128 bits and more, so the page also bounds
/// the length. Requests have 1 to MAX_REQ_BYTES. Latency one cycle, then one burst per cycle; a
/// request of one burst per cycle is sustained. `grant_i`, at most one bit, chooses the burst at
/// the ports behind it, which goes with `take_i`. `last_o` marks the last burst of a request.
///
/// The length of a burst is computed when it is loaded, not while it waits: a client without a
/// request costs neither hardware a toggle nor the simulator an addition. The handshakes are words
/// of one bit per client, which the simulator evaluates together.
module npu_burst_split
  import npu_pkg::*;
  import npu_mem_pkg::*;
#(
  parameter int unsigned BusBits    = 256,
  parameter int unsigned NumClients = 1
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic [NumClients-1:0]      valid_i,
  output logic [NumClients-1:0]      ready_o,
  input  mem_range_t                 range_i [NumClients],

  output logic [NumClients-1:0]      valid_o,
  input  logic [NumClients-1:0]      grant_i,
  input  logic                       take_i,
  output logic [ADDR_WIDTH-1:0]      addr_o,
  output logic [7:0]                 len_o,
  output logic                       last_o
);
  localparam int unsigned OffW = $clog2(BusBits / 8);
  localparam int unsigned PageW = $clog2(PAGE_BYTES) - OffW;
  // MAX_REQ_BYTES at the worst alignment are one beat more than they would fill.
  localparam int unsigned BeatsW = REQ_BYTES_WIDTH - OffW;

  localparam logic [BeatsW-1:0] PageBeats = BeatsW'(1 << PageW);

  logic [NumClients-1:0] valid_q, last_q, load, step;

  assign valid_o = valid_q;
  assign last_o  = (last_q & grant_i) != '0;
  assign step    = take_i ? grant_i : '0;
  assign ready_o = ~valid_q | (step & last_q);
  assign load    = valid_i & ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else         valid_q <= load | (valid_q & ~(step & last_q));
  end

  for (genvar c = 0; c < NumClients; c++) begin : gen_client
    logic [ADDR_WIDTH-1:OffW] addr_q;
    logic [7:0]               len_q;
    logic [BeatsW-1:0]        left_q;   // beats of the request after this burst

    // That of the client chosen among those up to this one
    logic [ADDR_WIDTH-1:OffW] addr;
    logic [7:0]               len;
    if (c == 0) begin : gen_first
      assign addr = addr_q;
      assign len  = len_q;
    end else begin : gen_behind
      assign addr = grant_i[c] ? addr_q : gen_client[c-1].addr;
      assign len  = grant_i[c] ? len_q : gen_client[c-1].len;
    end

    always_ff @(posedge clk_i) begin
      if (load[c] || step[c]) begin
        automatic logic [BeatsW-1:0] left, room, beats;
        automatic logic              fits;
        if (load[c]) begin
          // Bytes from the start of the first beat, rounded up to whole beats.
          left   = BeatsW'((range_i[c].bytes + REQ_BYTES_WIDTH'(range_i[c].addr[OffW-1:0])
                            + REQ_BYTES_WIDTH'(BusBits / 8 - 1)) >> OffW);
          room   = PageBeats - BeatsW'(range_i[c].addr[OffW+PageW-1:OffW]);
          addr_q <= range_i[c].addr[ADDR_WIDTH-1:OffW];
        end else begin  // every burst but the last ends at a page
          left   = left_q;
          room   = PageBeats;
          addr_q <= {addr_q[ADDR_WIDTH-1:OffW+PageW] + 1'b1, PageW'(0)};
        end
        fits      = left <= room;
        beats     = fits ? left : room;
        last_q[c] <= fits;
        len_q     <= 8'(beats - BeatsW'(1));
        left_q    <= left - beats;
      end
    end
  end

  assign addr_o = {gen_client[NumClients-1].addr, OffW'(0)};
  assign len_o  = gen_client[NumClients-1].len;

  always_ff @(posedge clk_i) begin
    if (rst_ni && valid_i != '0) begin
      for (int unsigned c = 0; c < NumClients; c++) begin
        if (valid_i[c]) begin
          BytesInRange: assert (range_i[c].bytes != '0 &&
                                range_i[c].bytes <= REQ_BYTES_WIDTH'(MAX_REQ_BYTES))
            else $error("npu_burst_split: request of %0d bytes", range_i[c].bytes);
        end
      end
    end
  end
endmodule
