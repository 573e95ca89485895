// SPDX-License-Identifier: Apache-2.0
/// The accumulators: two halves of AccTiles tiles; an entry is one row of a tile.
///
/// The array reads (one cycle) and writes the half it works on; meanwhile the other half is
/// drained, then filled with C for the next block. The drain follows the array's last pass through
/// a half as well: even and odd entries are banks with one read and one write port each, so two
/// that walk through the entries can share a half. Where they meet, the array wins and
/// `drain_ready_o` is low. Other conflicts do not occur by the hand-over of the halves.
module npu_matrix_acc
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize = 16,
  parameter int unsigned AccTiles  = 64
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  token_t                     rd_token_i,   // sums for this token one cycle later
  output logic [ArraySize*32-1:0]    rd_sum_o,
  input  logic                       wr_valid_i,
  input  sum_token_t                 wr_token_i,
  input  logic [ArraySize*32-1:0]    wr_sum_i,

  input  logic                       load_valid_i,
  input  logic                       load_half_i,
  input  entry_t                     load_entry_i,
  input  logic [ArraySize-1:0]       load_mask_i,
  input  logic [ArraySize-1:0][31:0] load_data_i,

  input  logic                       drain_valid_i,  // only with ready; data one cycle later,
  output logic                       drain_ready_o,  // until that of the next
  input  logic                       drain_half_i,
  input  entry_t                     drain_entry_i,
  output logic [ArraySize*32-1:0]    drain_data_o
);
  localparam int unsigned Rows = AccTiles * ArraySize / 2;  // of a bank
  localparam int unsigned RowW = $clog2(Rows);

  logic [ArraySize*32-1:0] out_q [4];  // by half and bank
  logic [ArraySize*32-1:0] held_q, drained;
  logic [1:0] sum_place_q, drain_place_q;
  logic       array_reads, sum_first_q, drained_q;

  assign array_reads   = rd_token_i.valid && !rd_token_i.first;
  assign drain_ready_o = !(array_reads && rd_token_i.sum.half == drain_half_i &&
                           rd_token_i.sum.entry[0] == drain_entry_i[0]);

  // A row with the columns of `mask` replaced, as one write: the simulator would keep a flag for
  // each column otherwise. A memory with an enable for each column needs no read for it.
  function automatic logic [ArraySize*32-1:0] loaded(logic [ArraySize*32-1:0]    held,
                                                     logic [ArraySize-1:0]       mask,
                                                     logic [ArraySize-1:0][31:0] data);
    // verilator no_inline_task
    loaded = held;
    // verilator unroll_full
    for (int unsigned l = 0; l < ArraySize; l++) begin
      if (mask[l]) loaded[l*32 +: 32] = data[l];
    end
  endfunction

  for (genvar h = 0; h < 2; h++) begin : gen_half
    for (genvar b = 0; b < 2; b++) begin : gen_bank
      logic [ArraySize*32-1:0] mem_q [Rows];
      logic                    array_rd, array_wr, drain, load;
      logic [RowW-1:0]         rd_row;

      assign array_rd = array_reads && rd_token_i.sum.half == 1'(h) &&
                        rd_token_i.sum.entry[0] == 1'(b);
      assign array_wr = wr_valid_i && wr_token_i.half == 1'(h) &&
                        wr_token_i.entry[0] == 1'(b);
      assign drain    = drain_valid_i && drain_half_i == 1'(h) && drain_entry_i[0] == 1'(b);
      assign load     = load_valid_i && load_half_i == 1'(h) && load_entry_i[0] == 1'(b);
      assign rd_row   = array_rd ? rd_token_i.sum.entry[RowW:1] : drain_entry_i[RowW:1];

      always_ff @(posedge clk_i) begin
        if (array_rd || drain) out_q[2*h+b] <= mem_q[rd_row];
      end

      always_ff @(posedge clk_i) begin
        if (array_wr) begin
          mem_q[wr_token_i.entry[RowW:1]] <= wr_sum_i;
        end else if (load) begin
          mem_q[load_entry_i[RowW:1]] <= loaded(mem_q[load_entry_i[RowW:1]], load_mask_i,
                                                load_data_i);
        end
      end

      always_ff @(posedge clk_i) begin
        if (rst_ni && array_rd) begin
          OneReader: assert (!drain)
            else $error("npu_matrix_acc: array and drain read bank %0d of half %0d at once", b, h);
        end
        if (rst_ni && load) begin
          OneWriter: assert (!array_wr)
            else $error("npu_matrix_acc: array and preload write half %0d at once", h);
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (rd_token_i.valid) begin
      sum_place_q <= {rd_token_i.sum.half, rd_token_i.sum.entry[0]};
      sum_first_q <= rd_token_i.first;
    end
    if (drain_valid_i) drain_place_q <= {drain_half_i, drain_entry_i[0]};
  end

  // The array may read the bank again while the drain still needs its entry.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) drained_q <= 1'b0;
    else         drained_q <= drain_valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (drained_q) held_q <= drained;
  end

  assign drained      = out_q[drain_place_q];
  assign rd_sum_o     = sum_first_q ? '0 : out_q[sum_place_q];
  assign drain_data_o = drained_q ? drained : held_q;
endmodule
