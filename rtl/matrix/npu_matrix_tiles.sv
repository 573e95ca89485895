// SPDX-License-Identifier: Apache-2.0
/// Lists the tiles of a block in the order in which the array needs them.
///
/// With ACCUMULATE all tiles of C first (into the free accumulator half), then for each step of
/// ArraySize along k: A0 B0 A1 … A(m-1) B1 … B(n-1), so that the first rows can start after two
/// tiles. A tile of A or B is offered only when its buffer has a free slot: what is requested can
/// always be stored. The block is handed on to the sequencer when its first tile is offered.
module npu_matrix_tiles
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize   = 16,
  parameter int unsigned RowTiles    = 8,
  parameter int unsigned WeightSlots = 16
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            start_i,
  input  npu_engine_cmd_t cmd_i,

  input  logic            block_valid_i,
  output logic            block_ready_o,
  input  block_t          block_i,

  output logic            seq_valid_o,   // the block, for the sequencer
  input  logic            seq_ready_i,   // which has room, and the block's accumulator half is free

  input  logic            a_free_i,      // one slot of A freed
  input  logic            b_free_i,

  output logic            tile_valid_o,
  input  logic            tile_ready_i,
  output tile_t           tile_o
);
  localparam int unsigned LaneW  = $clog2(ArraySize);
  localparam int unsigned ASlots = 2 * RowTiles;

  typedef enum logic [1:0] {
    StIdle,     // waits for a block, and for the sequencer to take it
    StPreload,  // tiles of C
    StOperands  // tiles of A and B
  } state_e;

  state_e      state_q, state_d;
  logic [31:0] k_left_q, k_left_d;
  logic [7:0]  row_q, row_d;            // next row tile of A (or C)
  logic [7:0]  col_q, col_d;            // next column tile of B (or C)
  logic [63:0] a_k_q, a_k_d;            // address of A[first row, k]
  logic [63:0] b_k_q, b_k_d;            // address of B[k, first column]
  logic [63:0] row_addr_q, row_addr_d;  // of the next tile of A
  logic [63:0] col_addr_q, col_addr_d;  // of the next tile of B, or column of C tiles
  logic [63:0] c_addr_q, c_addr_d;
  entry_t      c_entry_q, c_entry_d;
  slot_t       a_slot_q, b_slot_q;
  slot_t       a_left_q, b_left_q;      // free slots

  logic [1:0]  src_shift, dst_shift;
  logic        take_a, take_b, step, last_tile;
  extent_t     ks, tile_rows, tile_cols;
  logic        a_unit_k, a_unit_m, b_unit_k, b_unit_n, c_unit_n;
  logic [63:0] a_row_step, a_k_step, b_k_step, b_col_step, c_row_step, c_col_step;

  assign src_shift = dtype_log2_bytes(cmd_i.src_dtype);
  assign dst_shift = dtype_log2_bytes(cmd_i.dst_dtype);
  // Bytes from one element to the next.
  assign a_row_step = 64'(cmd_i.src1.stride[DIM_ROW]) << src_shift;
  assign a_k_step   = 64'(cmd_i.src1.stride[DIM_COL]) << src_shift;
  assign b_k_step   = 64'(cmd_i.src2.stride[DIM_ROW]) << src_shift;
  assign b_col_step = 64'(cmd_i.src2.stride[DIM_COL]) << src_shift;
  assign c_row_step = 64'(cmd_i.dst.stride[DIM_ROW]) << dst_shift;
  assign c_col_step = 64'(cmd_i.dst.stride[DIM_COL]) << dst_shift;
  // A dimension of size 1 has no direction, whatever its stride says.
  assign a_unit_k = cmd_i.src1.stride[DIM_COL] == 32'd1 && cmd_i.src1.size[DIM_COL] != 32'd1;
  assign a_unit_m = cmd_i.src1.stride[DIM_ROW] == 32'd1 && cmd_i.src1.size[DIM_ROW] != 32'd1;
  assign b_unit_k = cmd_i.src2.stride[DIM_ROW] == 32'd1 && cmd_i.src2.size[DIM_ROW] != 32'd1;
  assign b_unit_n = cmd_i.src2.stride[DIM_COL] == 32'd1 && cmd_i.src2.size[DIM_COL] != 32'd1;
  assign c_unit_n = cmd_i.dst.stride[DIM_COL] == 32'd1;

  function automatic extent_t valid_part(logic [31:0] total, logic [7:0] tile);
    logic [31:0] left;
    left = total - (32'(tile) << LaneW);
    return (left > 32'(ArraySize)) ? extent_t'(ArraySize) : left[5:0];
  endfunction

  assign ks        = valid_part(k_left_q, 8'd0);
  assign tile_rows = valid_part(32'(block_i.rows), row_q);
  assign tile_cols = valid_part(32'(block_i.cols), col_q);

  // ---- the tile that is next ----
  assign take_a = row_q == 8'd0 || (col_q != 8'd0 && row_q != block_i.row_tiles);
  assign take_b = !take_a;
  assign last_tile = (state_q == StPreload)
      ? (row_q + 8'd1 == block_i.row_tiles && col_q + 8'd1 == block_i.col_tiles)
      : (take_a ? (row_q + 8'd1 == block_i.row_tiles && col_q == block_i.col_tiles)
                : (row_q == block_i.row_tiles && col_q + 8'd1 == block_i.col_tiles));

  always_comb begin
    tile_o = '0;
    unique case (state_q)
      StPreload: begin
        tile_o.operand   = OPERAND_C;
        tile_o.half      = block_i.half;
        tile_o.place     = c_entry_q;
        tile_o.single    = !c_unit_n;
        tile_o.addr      = c_addr_q;
        tile_o.line_step = c_row_step;
        tile_o.elem_step = c_col_step;
        tile_o.lines     = tile_rows;
        tile_o.elems     = tile_cols;
      end
      default: begin
        if (take_a) begin
          tile_o.operand   = OPERAND_A;
          tile_o.place     = entry_t'(a_slot_q);
          tile_o.addr      = row_addr_q;
          tile_o.along_k   = a_unit_k || !a_unit_m;
          tile_o.single    = !a_unit_k && !a_unit_m;
          tile_o.line_step = tile_o.along_k ? a_row_step : a_k_step;
          tile_o.elem_step = tile_o.along_k ? a_k_step : a_row_step;
          tile_o.lines     = tile_o.along_k ? tile_rows : ks;
          tile_o.elems     = tile_o.along_k ? ks : tile_rows;
        end else begin
          tile_o.operand   = OPERAND_B;
          tile_o.place     = entry_t'(b_slot_q);
          tile_o.addr      = col_addr_q;
          tile_o.along_k   = b_unit_k && !b_unit_n;
          tile_o.single    = !b_unit_k && !b_unit_n;
          tile_o.line_step = tile_o.along_k ? b_col_step : b_k_step;
          tile_o.elem_step = tile_o.along_k ? b_k_step : b_col_step;
          tile_o.lines     = tile_o.along_k ? tile_cols : ks;
          tile_o.elems     = tile_o.along_k ? ks : tile_cols;
        end
      end
    endcase
  end

  always_comb begin
    unique case (state_q)
      StPreload:  tile_valid_o = 1'b1;
      StOperands: tile_valid_o = take_a ? (a_left_q != '0) : (b_left_q != '0);
      default:    tile_valid_o = 1'b0;
    endcase
  end
  assign step = tile_valid_o && tile_ready_i;

  assign seq_valid_o   = state_q == StIdle && block_valid_i;
  assign block_ready_o = state_q == StOperands && step && last_tile && k_left_q <= 32'(ArraySize);

  // ---- walk ----
  always_comb begin
    state_d    = state_q;
    k_left_d   = k_left_q;
    row_d      = row_q;
    col_d      = col_q;
    a_k_d      = a_k_q;
    b_k_d      = b_k_q;
    row_addr_d = row_addr_q;
    col_addr_d = col_addr_q;
    c_addr_d   = c_addr_q;
    c_entry_d  = c_entry_q;
    unique case (state_q)
      StIdle: if (block_valid_i && seq_ready_i) begin
        state_d    = cmd_i.accumulate ? StPreload : StOperands;
        k_left_d   = cmd_i.src1.size[DIM_COL];
        row_d      = '0;
        col_d      = '0;
        a_k_d      = block_i.a_addr;
        b_k_d      = block_i.b_addr;
        row_addr_d = block_i.a_addr;
        col_addr_d = cmd_i.accumulate ? block_i.c_addr : block_i.b_addr;
        c_addr_d   = block_i.c_addr;
        c_entry_d  = '0;
      end
      StPreload: if (step) begin
        c_entry_d = c_entry_q + entry_t'(ArraySize);
        if (last_tile) begin
          state_d    = StOperands;
          row_d      = '0;
          col_d      = '0;
          col_addr_d = b_k_q;
        end else if (row_q + 8'd1 == block_i.row_tiles) begin
          row_d      = '0;
          col_d      = col_q + 8'd1;
          col_addr_d = col_addr_q + (c_col_step << LaneW);
          c_addr_d   = col_addr_q + (c_col_step << LaneW);
        end else begin
          row_d    = row_q + 8'd1;
          c_addr_d = c_addr_q + (c_row_step << LaneW);
        end
      end
      default: if (step) begin
        if (last_tile) begin
          row_d      = '0;
          col_d      = '0;
          k_left_d   = k_left_q - 32'(ArraySize);
          a_k_d      = a_k_q + (a_k_step << LaneW);
          b_k_d      = b_k_q + (b_k_step << LaneW);
          row_addr_d = a_k_q + (a_k_step << LaneW);
          col_addr_d = b_k_q + (b_k_step << LaneW);
          if (k_left_q <= 32'(ArraySize)) state_d = StIdle;
        end else if (take_a) begin
          row_d      = row_q + 8'd1;
          row_addr_d = row_addr_q + (a_row_step << LaneW);
        end else begin
          col_d      = col_q + 8'd1;
          col_addr_d = col_addr_q + (b_col_step << LaneW);
        end
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= StIdle;
    else         state_q <= state_d;
  end

  always_ff @(posedge clk_i) begin
    if (step || state_q == StIdle) begin
      k_left_q   <= k_left_d;
      row_q      <= row_d;
      col_q      <= col_d;
      a_k_q      <= a_k_d;
      b_k_q      <= b_k_d;
      row_addr_q <= row_addr_d;
      col_addr_q <= col_addr_d;
      c_addr_q   <= c_addr_d;
      c_entry_q  <= c_entry_d;
    end
  end

  // ---- slots ----
  logic take_a_slot, take_b_slot;
  assign take_a_slot = step && state_q == StOperands && take_a;
  assign take_b_slot = step && state_q == StOperands && take_b;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      a_slot_q <= '0;
      b_slot_q <= '0;
      a_left_q <= slot_t'(ASlots);
      b_left_q <= slot_t'(WeightSlots);
    end else begin
      if (take_a_slot) a_slot_q <= (a_slot_q == slot_t'(ASlots - 1)) ? '0 : a_slot_q + slot_t'(1);
      if (take_b_slot) begin
        b_slot_q <= (b_slot_q == slot_t'(WeightSlots - 1)) ? '0 : b_slot_q + slot_t'(1);
      end
      a_left_q <= a_left_q + slot_t'(a_free_i) - slot_t'(take_a_slot);
      b_left_q <= b_left_q + slot_t'(b_free_i) - slot_t'(take_b_slot);
    end
  end
endmodule
