// SPDX-License-Identifier: Apache-2.0
/// Lists the tiles of a block in the order in which the array needs them.
///
/// With ACCUMULATE all tiles of C first (into the free accumulator half), then for each step of
/// ArraySize along k: A0 B0 A1 … A(m-1) B1 … B(n-1), so that the first rows can start after two
/// tiles. With weights of four bits the scales of a tile of B, S, come before it in each step that
/// begins a group. A tile of A or B is offered only when its buffer has a free slot: what is
/// requested can always be stored. Tiles of four bits are so small that all slots would not cover
/// the latency of the memory: their beats wait in front of the unpacker until a slot is free. The
/// block is handed on to the sequencer when its first tile is offered.
///
/// The reader of the tiles walks through them and tells where each one ends; that is where its
/// neighbours begin. So this module keeps places and never computes one.
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
  input  logic            b_fill_i,      // with weights of four bits: a slot of B is filled
  output logic            b_full_o,      // and none is free

  output logic            tile_valid_o,
  input  logic            tile_ready_i,
  output tile_t           tile_o,
  input  position_t       line_next_i,   // with tile_ready: behind the tile's last line
  input  position_t       elem_next_i    // behind the last element of its lines
);
  localparam int unsigned LaneW  = $clog2(ArraySize);
  localparam int unsigned ASlots = 2 * RowTiles;

  typedef enum logic [1:0] {
    StIdle,     // waits for a block, and for the sequencer to take it
    StPreload,  // tiles of C
    StOperands  // tiles of A and B
  } state_e;

  // Where A, B or C is read. `outer` counts rows of A and C, columns of B.
  typedef struct packed {
    logic [63:0] base;        // of this batch
    position_t   outer;       // of the next tile
    position_t   outer_block; // of the block's first tile
  } reader_t;

  state_e      state_q;
  logic [31:0] k_left_q;
  logic [7:0]  row_q, col_q;            // next row tile of A (or C), column tile of B (or C)
  reader_t     a_q, b_q, c_q, s_q;
  position_t   s_k_q, s_k_next_q;       // of the next group's scales, and behind them
  position_t   s_end_q;                 // behind the block's last scales
  logic [12:0] group_left_q;            // steps along k until a group begins
  logic        scaled_q;                // the scales of the next tile of B are requested
  position_t   a_k_q, b_k_q;            // of this step along k
  position_t   a_k_next_q, b_k_next_q;  // of the next
  position_t   c_col_q, c_col_block_q;
  entry_t      c_entry_q;
  tile_slot_t  a_slot_q, b_slot_q;
  tile_slot_t  a_left_q, b_left_q;      // free slots

  logic        int4, small_group, take_s, fresh;
  logic        take_a, take_b, step, last_tile, last_k;
  logic        a_along_k, b_along_k;
  run_e        a_run_k_q, a_run_m_q, b_run_k_q, b_run_n_q, c_run_q, s_run_q;  // of this command
  logic        a_again_q, b_again_q;
  extent_t     ks, tile_rows, tile_cols;
  position_t   outer_next, k_next;

  // ---- how lines lie in memory ----
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      a_run_k_q <= run_of(cmd_i.a.col);
      a_run_m_q <= run_of(cmd_i.a.row);
      b_run_k_q <= run_of(cmd_i.b.row);
      // Words of one beat go to lanes of their own: a word is not repeated.
      b_run_n_q <= (int4 && run_of(cmd_i.b.col) == RUN_REPEAT) ? RUN_SINGLE : run_of(cmd_i.b.col);
      c_run_q   <= run_of(cmd_i.init.col);
      s_run_q   <= run_of(cmd_i.scales.col);
      a_again_q <= reads_again(cmd_i.a);
      b_again_q <= reads_again(cmd_i.b);
    end
  end

  // The elements that one request can bring.
  function automatic logic [31:0] run_length(run_e run, logic [31:0] inner);
    return (run == RUN_SINGLE) ? 32'd1 : inner;
  endfunction
  assign int4        = cmd_i.int4_group != '0;
  assign small_group = cmd_i.int4_group < 4'(LaneW);
  assign a_along_k = run_length(a_run_k_q, cmd_i.a.col.inner) >=
                     run_length(a_run_m_q, cmd_i.a.row.inner);
  assign b_along_k = !int4 && run_length(b_run_k_q, cmd_i.b.row.inner) >
                              run_length(b_run_n_q, cmd_i.b.col.inner);

  function automatic extent_t valid_part(logic [31:0] total, logic [7:0] tile);
    logic [31:0] left;
    left = total - (32'(tile) << LaneW);
    return (left > 32'(ArraySize)) ? extent_t'(ArraySize) : left[5:0];
  endfunction

  // Lines of 2^shift rows that hold so many rows.
  function automatic extent_t rounded_up(extent_t rows, logic [3:0] shift);
    return extent_t'((7'(rows) + (7'd1 << shift) - 7'd1) >> shift);
  endfunction

  assign ks        = valid_part(k_left_q, 8'd0);
  assign tile_rows = valid_part(32'(block_i.rows), row_q);
  assign tile_cols = valid_part(32'(block_i.cols), col_q);
  assign last_k    = k_left_q <= 32'(ArraySize);

  // ---- the tile that is next ----
  assign take_a = row_q == 8'd0 || (col_q != 8'd0 && row_q != block_i.row_tiles);
  assign fresh  = int4 && group_left_q == '0;
  assign take_s = !take_a && fresh && !scaled_q;
  assign take_b = !take_a && !take_s;
  assign last_tile = (state_q == StPreload)
      ? (row_q + 8'd1 == block_i.row_tiles && col_q + 8'd1 == block_i.col_tiles)
      : (take_a ? (row_q + 8'd1 == block_i.row_tiles && col_q == block_i.col_tiles)
                : (take_b && row_q == block_i.row_tiles && col_q + 8'd1 == block_i.col_tiles));

  always_comb begin
    tile_o = '0;
    if (state_q == StPreload) begin
      tile_o.operand = MATRIX_C;
      tile_o.half    = block_i.half;
      tile_o.place   = c_entry_q;
      tile_o.run     = c_run_q;
      tile_o.reuse   = tile_o.run == RUN_REPEAT;
      tile_o.lines   = tile_rows;
      tile_o.elems   = tile_cols;
      tile_o.base    = c_q.base;
      tile_o.line    = c_q.outer;
      tile_o.elem    = c_col_q;
    end else if (take_s) begin
      tile_o.operand = MATRIX_S;
      tile_o.place   = small_group ? '0 : entry_t'(col_q);
      tile_o.run     = s_run_q;
      tile_o.lines   = small_group ? rounded_up(ks, cmd_i.int4_group) : extent_t'(1);
      tile_o.elems   = tile_cols;
      tile_o.base    = s_q.base;
      tile_o.line    = s_k_q;
      tile_o.elem    = s_q.outer;
    end else begin
      tile_o.operand = take_a ? MATRIX_A : MATRIX_B;
      tile_o.place   = take_a ? entry_t'(a_slot_q) : entry_t'(b_slot_q);
      tile_o.along_k = take_a ? a_along_k : b_along_k;
      tile_o.reuse   = take_a ? a_again_q : b_again_q;
      tile_o.base    = take_a ? a_q.base : b_q.base;
      tile_o.line    = take_a ? a_q.outer : b_q.outer;
      tile_o.elem    = take_a ? a_k_q : b_k_q;
      tile_o.lines   = take_a ? tile_rows : tile_cols;
      tile_o.elems   = ks;
      tile_o.run     = take_a ? a_run_k_q : b_run_k_q;
      if (!tile_o.along_k) begin
        {tile_o.line, tile_o.elem}   = {tile_o.elem, tile_o.line};
        {tile_o.lines, tile_o.elems} = {tile_o.elems, tile_o.lines};
        tile_o.run                   = take_a ? a_run_m_q : b_run_n_q;
      end
      if (int4 && take_b) begin
        tile_o.place = place_of_int4(b_slot_q, small_group ? '0 : col_q);
        tile_o.reuse = 1'b0;
        tile_o.lines = rounded_up(ks, 4'($clog2(INT4_ROWS)));
      end
    end
  end

  always_comb begin
    unique case (state_q)
      StPreload:  tile_valid_o = 1'b1;
      StOperands: tile_valid_o = take_s || (take_a ? (a_left_q != '0) : (int4 || b_left_q != '0));
      default:    tile_valid_o = 1'b0;
    endcase
  end
  assign step = tile_valid_o && tile_ready_i;

  assign seq_valid_o   = state_q == StIdle && block_valid_i;
  assign block_ready_o = state_q == StOperands && step && last_tile && last_k;

  // Places behind this tile; C's lines are rows.
  assign outer_next = (tile_o.along_k || state_q == StPreload) ? line_next_i : elem_next_i;
  assign k_next     = tile_o.along_k ? elem_next_i : line_next_i;

  // ---- walk ----
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      unique case (state_q)
        StIdle:
          if (block_valid_i && seq_ready_i) state_q <= cmd_i.accumulate ? StPreload : StOperands;
        StPreload: if (step && last_tile) state_q <= StOperands;
        default:   if (block_ready_o)     state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      k_left_q  <= cmd_i.product.k;
      row_q     <= '0;
      col_q     <= '0;
      c_entry_q <= '0;
      c_col_q   <= c_col_block_q;
      a_k_q     <= origin(cmd_i.a.col);
      b_k_q     <= origin(cmd_i.b.row);
    end else if (step) begin
      if (state_q == StPreload) begin
        c_entry_q <= c_entry_q + entry_t'(ArraySize);
        row_q     <= row_q + 8'd1;
        if (row_q + 8'd1 == block_i.row_tiles) begin
          row_q   <= '0;
          col_q   <= last_tile ? '0 : col_q + 8'd1;
          c_col_q <= elem_next_i;
        end
      end else if (last_tile) begin
        k_left_q <= k_left_q - 32'(ArraySize);
        row_q    <= '0;
        col_q    <= '0;
        // The first tile of a step is one of A; the only tile of B may be its last.
        a_k_q    <= a_k_next_q;
        b_k_q    <= take_b ? k_next : b_k_next_q;
      end else if (take_a) begin
        row_q      <= row_q + 8'd1;
        a_k_next_q <= k_next;
      end else if (take_b) begin
        col_q      <= col_q + 8'd1;
        b_k_next_q <= k_next;
      end
    end
  end

  // ---- scales: their rows follow the groups, their columns those of B ----
  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      s_k_q        <= origin(cmd_i.scales.row);
      group_left_q <= '0;
      scaled_q     <= 1'b0;
    end else if (int4 && step && state_q == StOperands) begin
      if (take_s) scaled_q <= 1'b1;
      if (take_b) scaled_q <= 1'b0;
      if (take_s) begin
        s_k_next_q <= k_next;
        s_end_q    <= outer_next;
      end
      if (last_tile) begin
        group_left_q <= group_left_q - 13'd1;
        if (fresh) begin
          s_k_q        <= s_k_next_q;
          group_left_q <= small_group ? '0 : 13'((14'd1 << (cmd_i.int4_group - 4'(LaneW))) - 14'd1);
        end
      end
    end
  end

  // A reader goes back to the block's first tile for the next step along k, and on to the next
  // block, which is beside this one, below it, or in the next batch.
  function automatic reader_t stepped(reader_t here, logic moves, position_t behind, logic again,
                                      logic next_block, logic restart, npu_axis_t axis,
                                      logic next_batch, logic [63:0] batch_bytes);
    // verilator no_inline_task
    stepped = here;
    if (moves) stepped.outer = behind;
    if (next_block) stepped.outer_block = restart ? origin(axis) : stepped.outer;
    if (again) stepped.outer = stepped.outer_block;
    if (next_batch) stepped.base = here.base + batch_bytes;
  endfunction

  logic       pass_end, col_end, block_end, next_row, next_batch;
  logic [1:0] src_shift, dst_shift;
  assign src_shift  = dtype_log2_bytes(cmd_i.src_dtype);
  assign dst_shift  = dtype_log2_bytes(cmd_i.dst_dtype);
  assign pass_end   = step && state_q == StOperands && last_tile;
  assign col_end    = step && state_q == StPreload && row_q + 8'd1 == block_i.row_tiles;
  assign block_end  = block_ready_o;
  assign next_row   = block_end && block_i.last_col;
  assign next_batch = next_row && block_i.last_row;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      a_q <= '{base: cmd_i.a.base, outer: origin(cmd_i.a.row), outer_block: origin(cmd_i.a.row)};
      b_q <= '{base: cmd_i.b.base, outer: origin(cmd_i.b.col), outer_block: origin(cmd_i.b.col)};
      c_q <= '{base: cmd_i.init.base, outer: origin(cmd_i.init.row),
               outer_block: origin(cmd_i.init.row)};
      c_col_block_q <= origin(cmd_i.init.col);
      s_q <= '{base: cmd_i.scales.base, outer: origin(cmd_i.scales.col),
               outer_block: origin(cmd_i.scales.col)};
    end else if (step) begin
      if (state_q == StPreload) begin
        // The rows' end stays until the block ends: it may be where the next block begins.
        c_q.outer <= (col_end && !last_tile) ? c_q.outer_block : line_next_i;
      end else begin
        a_q <= stepped(a_q, take_a, outer_next, pass_end, next_row, next_batch, cmd_i.a.row,
                       next_batch, 64'(cmd_i.a.batch) << src_shift);
        b_q <= stepped(b_q, take_b, outer_next, pass_end, block_end, next_row, cmd_i.b.col,
                       next_batch, 64'(cmd_i.b.batch) << (int4 ? 2'd2 : src_shift));
        if (int4) begin
          s_q <= stepped(s_q, take_s || block_end, take_s ? outer_next : s_end_q, pass_end,
                         block_end, next_row, cmd_i.scales.col, next_batch,
                         64'(cmd_i.scales.batch) << src_shift);
        end
        if (block_end) begin
          c_q <= stepped(c_q, 1'b0, '0, 1'b1, next_row, next_batch, cmd_i.init.row,
                         next_batch, 64'(cmd_i.init.batch) << dst_shift);
          c_col_block_q <= block_i.last_col ? origin(cmd_i.init.col) : c_col_q;
        end
      end
    end
  end

  // ---- slots ----
  logic take_a_slot, take_b_slot, fill_b_slot;
  assign take_a_slot = step && state_q == StOperands && take_a;
  assign fill_b_slot = int4 ? b_fill_i : take_b_slot;
  assign b_full_o    = int4 && b_left_q == '0;
  assign take_b_slot = step && state_q == StOperands && take_b;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      a_slot_q <= '0;
      b_slot_q <= '0;
      a_left_q <= tile_slot_t'(ASlots);
      b_left_q <= tile_slot_t'(WeightSlots);
    end else begin
      if (take_a_slot) begin
        a_slot_q <= (a_slot_q == tile_slot_t'(ASlots - 1)) ? '0 : a_slot_q + tile_slot_t'(1);
      end
      if (take_b_slot) begin
        b_slot_q <= (b_slot_q == tile_slot_t'(WeightSlots - 1)) ? '0 : b_slot_q + tile_slot_t'(1);
      end
      a_left_q <= a_left_q + tile_slot_t'(a_free_i) - tile_slot_t'(take_a_slot);
      b_left_q <= b_left_q + tile_slot_t'(b_free_i) - tile_slot_t'(fill_b_slot);
    end
  end
endmodule
