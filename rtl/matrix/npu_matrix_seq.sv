// SPDX-License-Identifier: Apache-2.0
/// Issues one row of A per cycle to the array: for each step along k, for each column tile, all
/// rows of the block. A partial sum needs SumLatency cycles before it may enter again; a block too
/// small to fill that time waits between its passes over k.
module npu_matrix_seq
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize   = 16,
  parameter int unsigned RowTiles    = 8,
  parameter int unsigned WeightSlots = 16,
  parameter int unsigned SumLatency  = 66
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            start_i,
  input  npu_engine_cmd_t cmd_i,

  input  logic            block_valid_i,
  output logic            block_ready_o,
  input  block_t          block_i,

  input  logic            a_done_i,   // a tile of A is in its buffer
  input  logic            b_done_i,
  input  logic            held_i,  // results in the accumulators keep the next block waiting

  output token_t          token_o,
  output npu_stats_t      stats_o
);
  localparam int unsigned LaneW  = $clog2(ArraySize);
  localparam int unsigned ASlots = 2 * RowTiles;
  localparam int unsigned GuardW = $clog2(SumLatency + 1);

  logic              running_q;
  logic [31:0]       k_left_q;
  logic              first_pass_q;
  logic [7:0]        col_q;
  logic [15:0]       row_q;
  entry_t            entry_q, tile_entry_q;  // of this row, and of row 0 of this column tile
  tile_slot_t        a_base_q, b_slot_q;     // A slot of row tile 0 in this pass
  tile_slot_t        a_ready_q, b_ready_q;   // tiles loaded: from this pass on; not yet started
  logic [GuardW-1:0] issued_q, guard_q;      // issued in this pass; cycles to wait before the next
  token_t            token_q, token_d;

  logic        operands, issue, last_row, last_col, last_pass;
  tile_slot_t  row_tile, a_slot, a_next_base;
  extent_t     ks, cols;
  logic [15:0] cols_left;

  assign row_tile  = tile_slot_t'(row_q >> LaneW);
  assign last_row  = row_q + 16'd1 == block_i.rows;
  assign last_col  = col_q + 8'd1 == block_i.col_tiles;
  assign last_pass = k_left_q <= 32'(ArraySize);
  assign operands  = a_ready_q > row_tile && (row_q != '0 || b_ready_q != '0);
  assign issue     = running_q && guard_q == '0 && operands;
  assign ks        = last_pass ? k_left_q[5:0] : extent_t'(ArraySize);
  assign cols_left = block_i.cols - (16'(col_q) << LaneW);
  assign cols      = (cols_left > 16'(ArraySize)) ? extent_t'(ArraySize) : cols_left[5:0];

  function automatic tile_slot_t wrapped(logic [6:0] slot, int unsigned slots);
    return tile_slot_t'((slot >= 7'(slots)) ? slot - 7'(slots) : slot);
  endfunction
  assign a_slot      = wrapped(7'(a_base_q) + 7'(row_tile), ASlots);
  assign a_next_base = wrapped(7'(a_base_q) + 7'(block_i.row_tiles), ASlots);

  always_comb begin
    token_d           = token_q;
    token_d.valid     = issue;
    token_d.row.weights   = issue && row_q == '0;
    token_d.row.a_free    = issue && last_col &&
                        (last_row || row_q[LaneW-1:0] == LaneW'(ArraySize - 1));
    token_d.sum.tile_end  = issue && last_row && last_pass;
    if (issue) begin
      token_d.row.a_slot = a_slot;
      token_d.row.a_lane = lane_t'(row_q[LaneW-1:0]);
      token_d.row.b_slot = b_slot_q;
      token_d.row.ks     = ks;
      token_d.row.cols   = cols;
      token_d.first  = first_pass_q && !cmd_i.accumulate;
      token_d.sum.half   = block_i.half;
      token_d.sum.entry  = entry_q;
    end
  end
  assign token_o       = token_q;
  assign block_ready_o = token_d.sum.tile_end && last_col;

  assign stats_o.active        = issue;
  assign stats_o.operand_stall = running_q && guard_q == '0 && !operands;
  assign stats_o.result_stall  = !running_q && held_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) token_q <= '0;
    else         token_q <= token_d;
  end

  // ---- position in the block ----
  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      running_q <= 1'b0;
      guard_q   <= '0;
    end else if (!running_q) begin
      running_q    <= block_valid_i;
      k_left_q     <= cmd_i.product.k;
      first_pass_q <= 1'b1;
      col_q        <= '0;
      row_q        <= '0;
      entry_q      <= '0;
      tile_entry_q <= '0;
      issued_q     <= '0;
    end else if (guard_q != '0) begin
      guard_q <= guard_q - GuardW'(1);
    end else if (issue) begin
      if (issued_q != GuardW'(SumLatency)) issued_q <= issued_q + GuardW'(1);
      if (!last_row) begin
        row_q   <= row_q + 16'd1;
        entry_q <= entry_q + entry_t'(1);
      end else begin
        row_q        <= '0;
        col_q        <= last_col ? '0 : col_q + 8'd1;
        tile_entry_q <= last_col ? '0 : tile_entry_q + (entry_t'(block_i.row_tiles) << LaneW);
        entry_q      <= last_col ? '0 : tile_entry_q + (entry_t'(block_i.row_tiles) << LaneW);
        if (last_col) begin
          k_left_q     <= k_left_q - 32'(ArraySize);
          first_pass_q <= 1'b0;
          issued_q     <= '0;
          running_q    <= !last_pass;
          if (!last_pass && issued_q < GuardW'(SumLatency - 1)) begin
            guard_q <= GuardW'(SumLatency - 1) - issued_q;
          end
        end
      end
    end
  end

  // ---- tiles in the buffers ----
  logic  b_start, pass_end;
  tile_slot_t a_used;
  assign b_start  = issue && row_q == '0;
  assign pass_end = issue && last_row && last_col;
  assign a_used   = pass_end ? tile_slot_t'(block_i.row_tiles) : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      a_base_q  <= '0;
      b_slot_q  <= '0;
      a_ready_q <= '0;
      b_ready_q <= '0;
    end else begin
      if (pass_end) a_base_q <= a_next_base;
      if (issue && last_row) b_slot_q <= wrapped(7'(b_slot_q) + 7'd1, WeightSlots);
      a_ready_q <= a_ready_q + tile_slot_t'(a_done_i) - a_used;
      b_ready_q <= b_ready_q + tile_slot_t'(b_done_i) - tile_slot_t'(b_start);
    end
  end
endmodule
