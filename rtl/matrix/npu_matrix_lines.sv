// SPDX-License-Identifier: Apache-2.0
/// Turns tiles into read requests, one per line (or per element where no direction has unit
/// stride), each with a `pending_t` that tells the unpacker what its beats are.
///
/// Up to one request per cycle. A tile is accepted with its last request.
module npu_matrix_lines
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned BusBits = 256
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  npu_engine_cmd_t cmd_i,

  input  logic            tile_valid_i,
  output logic            tile_ready_o,
  input  tile_t           tile_i,

  output logic            req_valid_o,
  input  logic            req_ready_i,
  output mem_range_t      req_range_o,

  output logic            pending_valid_o,  // pushed together with the request
  input  logic            pending_ready_i,
  output pending_t        pending_o
);
  localparam int unsigned BeatW = $clog2(BusBits / 8);

  logic        first_q;              // the next request is the tile's first
  lane_t       line_q, elem_q;
  logic [63:0] line_addr_q, addr_q;  // of the current line and request
  logic [63:0] line_addr, addr;
  logic        last_elem, last_line, step;
  logic [1:0]  log2_bytes;
  logic [8:0]  bytes;                // at most 32 elements of 4 bytes

  assign log2_bytes = dtype_log2_bytes(
      (tile_i.operand == OPERAND_C) ? cmd_i.dst_dtype : cmd_i.src_dtype);
  assign line_addr  = first_q ? tile_i.addr : line_addr_q;
  assign addr       = first_q ? tile_i.addr : addr_q;
  assign bytes      = tile_i.single ? (9'd1 << log2_bytes) : (9'(tile_i.elems) << log2_bytes);
  assign last_elem  = !tile_i.single || 6'(elem_q) + 6'd1 == tile_i.elems;
  assign last_line  = 6'(line_q) + 6'd1 == tile_i.lines;

  assign req_valid_o     = tile_valid_i && pending_ready_i;
  assign req_range_o     = '{addr: addr, bytes: REQ_BYTES_WIDTH'(bytes)};
  assign step            = req_valid_o && req_ready_i;
  assign pending_valid_o = step;
  assign tile_ready_o    = step && last_elem && last_line;

  always_comb begin
    pending_o.operand = tile_i.operand;
    pending_o.half    = tile_i.half;
    pending_o.place   = tile_i.place;
    pending_o.along_k = tile_i.along_k;
    pending_o.single  = tile_i.single;
    pending_o.last    = last_elem && last_line;
    pending_o.line    = line_q;
    pending_o.elem    = elem_q;
    pending_o.elems   = tile_i.single ? 6'd1 : tile_i.elems;
    pending_o.offset  = 6'(addr[BeatW-1:0]);
    // At most 63 + 128 bytes over 16-byte beats: 12.
    pending_o.beats   = 4'((9'(addr[BeatW-1:0]) + bytes + 9'(BusBits / 8 - 1)) >> BeatW);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q <= 1'b1;
      line_q  <= '0;
      elem_q  <= '0;
    end else if (step) begin
      first_q <= last_elem && last_line;
      if (last_elem) begin
        elem_q <= '0;
        line_q <= last_line ? '0 : line_q + lane_t'(1);
      end else begin
        elem_q <= elem_q + lane_t'(1);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (step) begin
      if (last_elem) begin
        line_addr_q <= line_addr + tile_i.line_step;
        addr_q      <= line_addr + tile_i.line_step;
      end else begin
        line_addr_q <= line_addr;
        addr_q      <= addr + tile_i.elem_step;
      end
    end
  end
endmodule
