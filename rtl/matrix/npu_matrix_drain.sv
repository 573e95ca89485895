// SPDX-License-Identifier: Apache-2.0
/// Reads finished blocks from the accumulators, row by row, and hands each tile row on with its
/// address. A half is free again when its last entry has been read.
module npu_matrix_drain
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize = 16
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  npu_engine_cmd_t cmd_i,

  input  logic            block_valid_i,
  output logic            block_ready_o,
  input  block_t          block_i,
  input  logic            block_done_i,   // the array has written a block's last sum

  output logic            acc_valid_o,    // read this entry; data stays until the next read
  output logic            acc_half_o,
  output entry_t          acc_entry_o,

  output logic            line_valid_o,   // the entry read last, with its place in memory
  input  logic            line_ready_i,
  output logic [63:0]     line_addr_o,
  output extent_t         line_elems_o,
  output logic            half_free_o,
  output logic            last_o          // line_* is the command's last
);
  localparam int unsigned LaneW = $clog2(ArraySize);

  logic [1:0]  done_q;                      // blocks finished and not yet drained
  logic        running_q;
  logic [15:0] row_q;
  logic [7:0]  col_q;
  entry_t      entry_q;
  logic [63:0] row_addr_q, addr_q;          // of column 0 of this row, of this tile
  logic        line_valid_q, line_last_q;
  logic [63:0] line_addr_q;
  extent_t     line_elems_q;

  logic        step, last_row, last_col;
  logic [15:0] cols_left;
  logic [1:0]  dst_shift;
  logic [63:0] row_step, tile_step;
  entry_t      tile_entries;

  assign dst_shift    = dtype_log2_bytes(cmd_i.dst_dtype);
  assign row_step     = 64'(cmd_i.dst.stride[DIM_ROW]) << dst_shift;
  assign tile_step    = (64'(cmd_i.dst.stride[DIM_COL]) << dst_shift) << LaneW;
  assign tile_entries = entry_t'(block_i.row_tiles) << LaneW;
  assign last_row     = row_q + 16'd1 == block_i.rows;
  assign last_col     = col_q + 8'd1 == block_i.col_tiles;
  assign cols_left    = block_i.cols - (16'(col_q) << LaneW);

  assign step          = running_q && (!line_valid_q || line_ready_i);
  assign acc_valid_o   = step;
  assign acc_half_o    = block_i.half;
  assign acc_entry_o   = entry_q;
  assign half_free_o   = step && last_row && last_col;
  assign block_ready_o = half_free_o;

  assign line_valid_o = line_valid_q;
  assign line_addr_o  = line_addr_q;
  assign line_elems_o = line_elems_q;
  assign last_o       = line_last_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      done_q       <= '0;
      running_q    <= 1'b0;
      line_valid_q <= 1'b0;
    end else begin
      done_q <= done_q + 2'(block_done_i) - 2'(half_free_o);
      if (!running_q)       running_q <= block_valid_i && done_q != '0;
      else if (half_free_o) running_q <= 1'b0;
      if (step)              line_valid_q <= 1'b1;
      else if (line_ready_i) line_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!running_q) begin
      row_q      <= '0;
      col_q      <= '0;
      entry_q    <= '0;
      row_addr_q <= block_i.c_addr;
      addr_q     <= block_i.c_addr;
    end else if (step) begin
      line_addr_q  <= addr_q;
      line_elems_q <= (cols_left > 16'(ArraySize)) ? extent_t'(ArraySize) : cols_left[5:0];
      line_last_q  <= block_i.last && last_row && last_col;
      if (last_col) begin
        row_q      <= row_q + 16'd1;
        col_q      <= '0;
        entry_q    <= row_q + 16'd1;
        row_addr_q <= row_addr_q + row_step;
        addr_q     <= row_addr_q + row_step;
      end else begin
        col_q   <= col_q + 8'd1;
        entry_q <= entry_q + tile_entries;
        addr_q  <= addr_q + tile_step;
      end
    end
  end
endmodule
