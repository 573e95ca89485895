// SPDX-License-Identifier: Apache-2.0
/// Turns tiles into read requests, each with a `pending_t` that tells the unpacker what its beats
/// are: one per line, one per run where the line crosses the end of a digit, one per element where
/// elements are not adjacent. A request through the operand buffer is of no more beats than it has
/// banks, but of up to three runs where each beat holds an element: those of adjacent rows of a
/// narrow image, which are the windows of a convolution.
///
/// Up to one request per cycle. A tile is accepted with its last request; `line_next_o` and
/// `elem_next_o` are then the places behind the tile in both directions.
module npu_matrix_lines
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize = 16,
  parameter int unsigned BusBits   = 256
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  npu_engine_cmd_t cmd_i,

  input  logic            tile_valid_i,
  output logic            tile_ready_o,
  input  tile_t           tile_i,
  output position_t       line_next_o,
  output position_t       elem_next_o,

  output logic            req_valid_o,
  input  logic            req_ready_i,
  output mem_range_t      req_range_o,

  output pending_t        pending_o         // goes with the request
);
  localparam int unsigned BeatW = $clog2(BusBits / 8);
  // A line may cover more beats than the operand buffer has banks.
  localparam bit LongLines = ArraySize * 32 > (REUSE_BANKS - 1) * BusBits;

  lane_t       line_q, elem_q;
  position_t   line_pos_q, elem_pos_q;  // of the line and of the request, when not the first
  position_t   line_pos, elem_pos;
  npu_axis_t   line_axis, elem_axis;
  logic        last_elem, last_line, step;
  logic [1:0]  log2_bytes;
  logic [63:0] addr;
  extent_t     left, count;
  logic [8:0]  bytes;                   // at most 256
  // Runs of one request, in elements. room: what lies within the banks' beats, gaps included.
  logic        joins, join2, join3;
  logic [63:0] gap;
  logic [8:0]  room, first, size, upto2, upto3, span2, span3, earlier, skipped;
  position_t   last_run;

  always_comb begin
    unique case (tile_i.operand)
      MATRIX_A: {line_axis, elem_axis} = tile_i.along_k ? {cmd_i.a.row, cmd_i.a.col}
                                                         : {cmd_i.a.col, cmd_i.a.row};
      MATRIX_B: {line_axis, elem_axis} = tile_i.along_k ? {cmd_i.b.col, cmd_i.b.row}
                                                         : {cmd_i.b.row, cmd_i.b.col};
      MATRIX_S: {line_axis, elem_axis} = {cmd_i.scales.row, cmd_i.scales.col};
      default:   {line_axis, elem_axis} = {cmd_i.init.row, cmd_i.init.col};
    endcase
  end

  assign log2_bytes = dtype_log2_bytes(operand_dtype(tile_i.operand, cmd_i.int4_group != '0,
                                                     cmd_i.src_dtype, cmd_i.dst_dtype));
  assign line_pos   = (line_q == '0) ? tile_i.line : line_pos_q;
  assign elem_pos   = (elem_q == '0) ? tile_i.elem : elem_pos_q;
  assign addr       = tile_i.base + ((line_pos.offset + elem_pos.offset) << log2_bytes);

  assign left  = tile_i.elems - 6'(elem_q);
  assign room  = (9'(REUSE_BANKS * BusBits / 8) - 9'(addr[BeatW-1:0])) >> log2_bytes;

  // A gap shorter than a beat leaves an element in every beat: nothing else is read.
  assign gap   = elem_axis.step[1] - 64'd1;
  assign joins = tile_i.reuse && tile_i.run == RUN_UNIT && elem_pos.inner < 32'(left) &&
                 gap < 64'(BusBits / 8) >> log2_bytes;
  assign first = 9'(elem_pos.inner[5:0]);
  assign size  = (elem_axis.inner < 32'(ArraySize)) ? 9'(elem_axis.inner[5:0]) : 9'(ArraySize);
  assign upto2 = (first + size < 9'(left)) ? first + size : 9'(left);
  assign upto3 = (first + 2 * size < 9'(left)) ? first + 2 * size : 9'(left);
  assign span2 = upto2 + 9'(gap[5:0]);
  assign span3 = upto3 + 2 * 9'(gap[5:0]);
  assign join2 = joins && elem_pos.middle > 32'd1 && span2 <= room;
  assign join3 = join2 && first + size < 9'(left) && elem_pos.middle > 32'd2 && span3 <= room;

  always_comb begin
    count = (elem_pos.inner < 32'(left)) ? elem_pos.inner[5:0] : left;
    if (tile_i.run == RUN_SINGLE) count = extent_t'(1);
    if (LongLines && tile_i.reuse && tile_i.run == RUN_UNIT && 9'(count) > room) begin
      count = extent_t'(room);
    end
    earlier   = '0;
    skipped  = '0;
    last_run = elem_pos;
    if (join2) begin
      count    = extent_t'(join3 ? upto3 : upto2);
      earlier   = join3 ? first + size : first;
      skipped  = join3 ? 2 * 9'(gap[5:0]) : 9'(gap[5:0]);
      last_run = '{offset: elem_pos.offset + 64'(earlier + skipped), inner: elem_axis.inner,
                   middle: elem_pos.middle - (join3 ? 32'd2 : 32'd1)};
    end
  end
  assign bytes      = (tile_i.run == RUN_REPEAT) ? 9'd1 << log2_bytes
                                                 : (9'(count) + skipped) << log2_bytes;
  assign last_elem  = count == left;
  assign last_line  = 6'(line_q) + 6'd1 == tile_i.lines;

  npu_matrix_walk u_line_walk (
    .axis_i(line_axis), .run_i(RUN_SINGLE), .here_i(line_pos), .count_i(extent_t'(1)),
    .next_o(line_next_o)
  );
  npu_matrix_walk u_elem_walk (
    .axis_i(elem_axis), .run_i(tile_i.run), .here_i(last_run),
    .count_i(count - extent_t'(earlier)), .next_o(elem_next_o)
  );

  assign req_valid_o     = tile_valid_i;
  assign req_range_o     = '{addr: addr, bytes: REQ_BYTES_WIDTH'(bytes)};
  assign step            = req_valid_o && req_ready_i;
  assign tile_ready_o    = step && last_elem && last_line;

  always_comb begin
    pending_o         = '0;
    pending_o.operand = tile_i.operand;
    pending_o.reuse   = tile_i.reuse;
    pending_o.half    = tile_i.half;
    pending_o.place   = tile_i.place;
    pending_o.along_k = tile_i.along_k;
    pending_o.same    = tile_i.run == RUN_REPEAT;
    pending_o.last    = last_elem && last_line;
    pending_o.line    = line_q;
    pending_o.elem    = elem_q;
    pending_o.elems   = count;
    pending_o.cut     = join2 ? 8'((9'(elem_q) + first) << log2_bytes) : '1;
    pending_o.cut2    = join3 ? 8'((9'(elem_q) + first + size) << log2_bytes) : '1;
    pending_o.gap     = 6'(gap[5:0] << log2_bytes);
    pending_o.skew    = 8'(addr[BeatW-1:0]);
    if (!pending_o.same) pending_o.skew = pending_o.skew - 8'(8'(elem_q) << log2_bytes);
    // At most 9: 128 bytes from the last of a beat of 16 on.
    pending_o.beats   = 4'((9'(addr[BeatW-1:0]) + bytes + 9'(BusBits / 8 - 1)) >> BeatW);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      line_q <= '0;
      elem_q <= '0;
    end else if (step) begin
      elem_q <= last_elem ? '0 : elem_q + lane_t'(count);
      if (last_elem) line_q <= last_line ? '0 : line_q + lane_t'(1);
    end
  end

  always_ff @(posedge clk_i) begin
    if (step) begin
      elem_pos_q <= elem_next_o;
      if (last_elem) line_pos_q <= line_next_o;
    end
  end
endmodule
