// SPDX-License-Identifier: Apache-2.0
/// Cuts a batched product into blocks: batch outermost, then rows, then columns.
///
/// `start_i` takes the command; from the next cycle on blocks follow at up to one per cycle. The
/// number of column tiles of a block is the largest power of two that fits the accumulators with
/// its row tiles, so a 16-row product gets wide blocks, and a square one square blocks.
module npu_matrix_blocks
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize = 16,
  parameter int unsigned AccTiles  = 64,
  parameter int unsigned RowTiles  = 8
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            start_i,
  input  npu_engine_cmd_t cmd_i,

  output logic            valid_o,
  input  logic            ready_i,
  output block_t          block_o
);
  localparam int unsigned LaneW   = $clog2(ArraySize);
  localparam int unsigned BlockRows = RowTiles * ArraySize;

  logic        active_q, active_d;
  logic        half_q;
  logic [31:0] batches_q, batches_d;
  logic [31:0] rows_q, rows_d;
  logic [31:0] cols_q, cols_d;

  logic [3:0]  log2_row_tiles;
  logic [31:0] col_limit;
  logic        last_col, last_row, last_batch;

  // ---- the block at the current position ----
  always_comb begin
    block_o.rows      = (rows_q > 32'(BlockRows)) ? 16'(BlockRows) : rows_q[15:0];
    block_o.row_tiles = 8'((block_o.rows + 16'(ArraySize - 1)) >> LaneW);
    log2_row_tiles    = 4'($clog2(RowTiles));
    for (int i = $clog2(RowTiles) - 1; i >= 0; i--) begin
      if (block_o.row_tiles <= 8'(1 << i)) log2_row_tiles = 4'(i);
    end
    col_limit         = 32'(AccTiles * ArraySize) >> log2_row_tiles;
    block_o.cols      = (cols_q > col_limit) ? col_limit[15:0] : cols_q[15:0];
    block_o.col_tiles = 8'((block_o.cols + 16'(ArraySize - 1)) >> LaneW);
    block_o.half      = half_q;
    last_col          = cols_q <= col_limit;
    last_row          = rows_q <= 32'(BlockRows);
    last_batch        = batches_q == 32'd1;
    block_o.last_col  = last_col;
    block_o.last_row  = last_row;
    block_o.last      = last_col && last_row && last_batch;
  end
  assign valid_o = active_q;

  // ---- step to the next ----
  always_comb begin
    active_d  = active_q;
    batches_d = batches_q;
    rows_d    = rows_q;
    cols_d    = cols_q;
    if (start_i) begin
      active_d  = 1'b1;
      batches_d = cmd_i.product.batch;
      rows_d    = cmd_i.product.m;
      cols_d    = cmd_i.product.n;
    end else if (valid_o && ready_i) begin
      if (!last_col) begin
        cols_d = cols_q - col_limit;
      end else if (!last_row) begin
        cols_d = cmd_i.product.n;
        rows_d = rows_q - 32'(BlockRows);
      end else begin
        active_d  = !last_batch;
        batches_d = batches_q - 32'd1;
        rows_d    = cmd_i.product.m;
        cols_d    = cmd_i.product.n;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) active_q <= 1'b0;
    else         active_q <= active_d;
  end

  always_ff @(posedge clk_i) begin
    if (start_i || (valid_o && ready_i)) begin
      half_q    <= !start_i && !half_q;
      batches_q <= batches_d;
      rows_q    <= rows_d;
      cols_q    <= cols_d;
    end
  end
endmodule
