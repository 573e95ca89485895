// SPDX-License-Identifier: Apache-2.0
/// Decides whether a burst of the host port may go to the DRAM. Combinational.
///
/// It may when it is legal AXI4 (size within the bus, FIXED of at most 16 beats, WRAP of 2, 4, 8 or
/// 16 aligned beats, nothing across a page) and every byte lane it covers is inside [MemBase,
/// MemLimit). `ok_o` is low without `valid_i`, which keeps the arithmetic still in a simulation.
module npu_host_check
  import npu_pkg::*;
  import npu_mem_pkg::*;
#(
  parameter int unsigned BusBits  = 256,
  parameter logic [63:0] MemBase,
  parameter logic [63:0] MemLimit
) (
  input  logic                  valid_i,
  input  logic [ADDR_WIDTH-1:0] addr_i,
  input  logic [7:0]            len_i,
  input  logic [2:0]            size_i,
  input  burst_e                burst_i,
  output logic                  ok_o
);
  localparam int unsigned PageW = $clog2(PAGE_BYTES);
  // Up to the longest burst of beats of 128 bytes, the largest size that can be encoded.
  localparam int unsigned SpanW = $clog2(MAX_BURST_BEATS * 128 + 1);

  logic [SpanW-1:0]      beat, span, mask, offset, first, last;
  logic [ADDR_WIDTH-1:0] first_addr, last_addr;
  logic                  shape_ok;

  always_comb begin
    ok_o       = 1'b0;
    shape_ok   = 1'b1;
    beat       = '0;
    span       = '0;
    mask       = '0;
    offset     = '0;
    first      = '0;
    last       = '0;
    first_addr = '0;
    last_addr  = '0;
    if (valid_i) begin
      beat     = SpanW'(1) << size_i;
      span     = (SpanW'(len_i) + SpanW'(1)) << size_i;
      offset   = SpanW'(addr_i[PageW-1:0]);
      mask     = (burst_i == BURST_WRAP) ? span - SpanW'(1) : beat - SpanW'(1);
      first    = offset & ~mask;
      last     = first + ((burst_i == BURST_FIXED) ? beat : span) - SpanW'(1);
      unique case (burst_i)
        BURST_INCR:  shape_ok = 1'b1;
        BURST_FIXED: shape_ok = len_i < 8'd16;
        BURST_WRAP:  shape_ok = (len_i inside {8'd1, 8'd3, 8'd7, 8'd15})
                             && (offset & (beat - SpanW'(1))) == '0;
        default:     shape_ok = 1'b0;
      endcase
      first_addr = {addr_i[ADDR_WIDTH-1:PageW], first[PageW-1:0]};
      last_addr  = {addr_i[ADDR_WIDTH-1:PageW], last[PageW-1:0]};
      ok_o = shape_ok
          && size_i <= 3'($clog2(BusBits / 8))
          && last < SpanW'(PAGE_BYTES)
          && first_addr - MemBase < MemLimit - MemBase
          && last_addr - MemBase < MemLimit - MemBase;
    end
  end
endmodule
