// SPDX-License-Identifier: Apache-2.0
/// Reads finished column tiles from the accumulators, row by row, and hands each tile row on in
/// lines: runs of columns that are adjacent in memory, or single columns. A tile leaves while the
/// array still works on those behind it. A half is free again when its last line has been taken.
module npu_matrix_drain
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize = 16,
  parameter int unsigned AccTiles  = 64
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            start_i,
  input  npu_engine_cmd_t cmd_i,

  input  logic            block_valid_i,  // from when it is loaded
  output logic            block_ready_o,
  input  block_t          block_i,
  input  logic            tile_done_i,    // the array has written a column tile's last sum

  output logic            acc_valid_o,    // read this entry; data stays until the next read
  input  logic            acc_ready_i,
  output logic            acc_half_o,
  output entry_t          acc_entry_o,

  output logic            line_valid_o,   // the entry read last, with its place in memory
  input  logic            line_ready_i,
  output logic [63:0]     line_addr_o,
  output lane_t           line_first_o,   // first column in the entry
  output extent_t         line_elems_o,
  output logic            half_free_o,
  output logic            last_o          // line_* is the command's last
);
  localparam int unsigned LaneW = $clog2(ArraySize);
  localparam int unsigned DoneW = $clog2(2 * AccTiles + 1);  // of the tiles of both halves

  // A line on its way out.
  typedef struct packed {
    logic        block_end;
    logic        last;     // of the command
    lane_t       first;
    extent_t     elems;
    logic [63:0] addr;
  } drain_line_t;

  logic [DoneW-1:0] done_q;                 // column tiles finished and not yet drained
  logic [15:0] row_q;
  logic [7:0]  col_q;
  lane_t       elem_q;                      // first column of the next line in this tile
  entry_t      entry_q, tile_entry_q;       // of this row, and of row 0 of this tile
  logic [63:0] base_q;                      // of this batch
  position_t   row_pos_q, row_block_q;      // of this row; of the block's first
  position_t   col_pos_q, col_tile_q;       // of the next line; of the tile's first
  logic        line_valid_q;
  drain_line_t line_q;

  logic        step, last_row, last_col, last_elem, end_tile, end_block;
  logic [15:0] cols_left;
  logic [1:0]  dst_shift;
  run_e        run;
  extent_t     tile_cols, left, count;
  entry_t      next_tile;
  position_t   row_next, col_next;

  assign dst_shift    = dtype_log2_bytes(cmd_i.dst_dtype);
  assign run          = run_of(cmd_i.c.col);
  assign next_tile    = tile_entry_q + (entry_t'(block_i.row_tiles) << LaneW);
  assign last_row     = row_q + 16'd1 == block_i.rows;
  assign last_col     = col_q + 8'd1 == block_i.col_tiles;
  assign cols_left    = block_i.cols - (16'(col_q) << LaneW);
  assign tile_cols    = (cols_left > 16'(ArraySize)) ? extent_t'(ArraySize) : cols_left[5:0];

  assign left = tile_cols - 6'(elem_q);
  always_comb begin
    count = (col_pos_q.inner < 32'(left)) ? col_pos_q.inner[5:0] : left;
    if (run != RUN_UNIT) count = extent_t'(1);
  end
  assign last_elem = count == left;
  assign end_tile  = last_elem && last_row;
  assign end_block = end_tile && last_col;

  npu_matrix_walk u_row_walk (
    .axis_i(cmd_i.c.row), .run_i(RUN_SINGLE), .here_i(row_pos_q), .count_i(extent_t'(1)),
    .next_o(row_next)
  );
  npu_matrix_walk u_col_walk (
    .axis_i(cmd_i.c.col), .run_i(run), .here_i(col_pos_q), .count_i(count), .next_o(col_next)
  );

  assign step          = block_valid_i && done_q != '0 && (!line_valid_q || line_ready_i) &&
                         (elem_q != '0 || acc_ready_i);
  assign acc_valid_o   = step && elem_q == '0;
  assign acc_half_o    = block_i.half;
  assign acc_entry_o   = entry_q;
  assign block_ready_o = step && end_block;
  assign half_free_o   = line_valid_q && line_ready_i && line_q.block_end;

  assign line_valid_o = line_valid_q;
  assign line_addr_o  = line_q.addr;
  assign line_first_o = line_q.first;
  assign line_elems_o = line_q.elems;
  assign last_o       = line_q.last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      done_q       <= '0;
      line_valid_q <= 1'b0;
    end else begin
      done_q <= done_q + DoneW'(tile_done_i) - DoneW'(step && end_tile);
      if (step)              line_valid_q <= 1'b1;
      else if (line_ready_i) line_valid_q <= 1'b0;
    end
  end

  // ---- position in the block ----
  always_ff @(posedge clk_i) begin
    if (!rst_ni || (step && end_block)) begin
      row_q        <= '0;
      col_q        <= '0;
      elem_q       <= '0;
      entry_q      <= '0;
      tile_entry_q <= '0;
    end else if (step) begin
      elem_q <= last_elem ? '0 : elem_q + lane_t'(count);
      if (end_tile) begin
        row_q        <= '0;
        col_q        <= col_q + 8'd1;
        entry_q      <= next_tile;
        tile_entry_q <= next_tile;
      end else if (last_elem) begin
        row_q   <= row_q + 16'd1;
        entry_q <= entry_q + entry_t'(1);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (step) begin
      line_q <= '{addr: base_q + ((row_pos_q.offset + col_pos_q.offset) << dst_shift),
                  first: elem_q, elems: count, last: block_i.last && end_block,
                  block_end: end_block};
    end
  end

  // ---- position in memory: the end of a block is where its neighbour begins ----
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      base_q      <= cmd_i.c.base;
      row_pos_q   <= origin(cmd_i.c.row);
      row_block_q <= origin(cmd_i.c.row);
      col_pos_q   <= origin(cmd_i.c.col);
      col_tile_q  <= origin(cmd_i.c.col);
    end else if (step) begin
      col_pos_q <= (last_elem && !last_row) ? col_tile_q : col_next;
      if (last_elem) row_pos_q <= row_next;
      if (end_tile) begin
        col_tile_q <= col_next;
        row_pos_q  <= row_block_q;
      end
      if (end_block && block_i.last_col) begin
        col_pos_q   <= origin(cmd_i.c.col);
        col_tile_q  <= origin(cmd_i.c.col);
        row_pos_q   <= block_i.last_row ? origin(cmd_i.c.row) : row_next;
        row_block_q <= block_i.last_row ? origin(cmd_i.c.row) : row_next;
        if (block_i.last_row) base_q <= base_q + (64'(cmd_i.c.batch) << dst_shift);
      end
    end
  end
endmodule
