// SPDX-License-Identifier: Apache-2.0
/// The accumulators: two halves of AccTiles tiles; an entry is one row of a tile.
///
/// The array reads (one cycle) and writes the half it works on; meanwhile the other half is
/// drained, then filled with C for the next block. Each half has one read and one write port; the
/// array's accesses win. The hand-over of the halves keeps such conflicts from occurring.
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
  input  token_t                     wr_token_i,
  input  logic [ArraySize*32-1:0]    wr_sum_i,

  input  logic                       load_valid_i,
  input  logic                       load_half_i,
  input  entry_t                     load_entry_i,
  input  logic [ArraySize-1:0]       load_mask_i,
  input  logic [ArraySize-1:0][31:0] load_data_i,

  input  logic                       drain_valid_i,  // data one cycle later
  input  logic                       drain_half_i,
  input  entry_t                     drain_entry_i,
  output logic [ArraySize*32-1:0]    drain_data_o
);
  localparam int unsigned Entries = AccTiles * ArraySize;
  localparam int unsigned EntryW  = $clog2(Entries);

  logic [1:0][ArraySize*32-1:0] out_q;
  logic sum_half_q, sum_first_q, drain_half_q;

  for (genvar h = 0; h < 2; h++) begin : gen_half
    logic [ArraySize*32-1:0] mem_q [Entries];
    logic                    array_rd, array_wr, drain, load;
    logic [EntryW-1:0]       rd_entry;

    assign array_rd = rd_token_i.valid && !rd_token_i.first && rd_token_i.half == 1'(h);
    assign array_wr = wr_token_i.valid && wr_token_i.half == 1'(h);
    assign drain    = drain_valid_i && drain_half_i == 1'(h);
    assign load     = load_valid_i && load_half_i == 1'(h);
    assign rd_entry = array_rd ? rd_token_i.entry[EntryW-1:0] : drain_entry_i[EntryW-1:0];

    always_ff @(posedge clk_i) begin
      if (array_rd || drain) out_q[h] <= mem_q[rd_entry];
    end

    always_ff @(posedge clk_i) begin
      if (array_wr) begin
        mem_q[wr_token_i.entry[EntryW-1:0]] <= wr_sum_i;
      end else if (load) begin
        for (int l = 0; l < ArraySize; l++) begin
          if (load_mask_i[l]) mem_q[load_entry_i[EntryW-1:0]][l*32 +: 32] <= load_data_i[l];
        end
      end
    end

    OneReader: assert property (@(posedge clk_i) disable iff (!rst_ni) !(array_rd && drain))
      else $error("npu_matrix_acc: array and drain read half %0d at once", h);
    OneWriter: assert property (@(posedge clk_i) disable iff (!rst_ni) !(array_wr && load))
      else $error("npu_matrix_acc: array and preload write half %0d at once", h);
  end

  always_ff @(posedge clk_i) begin
    if (rd_token_i.valid) begin
      sum_half_q  <= rd_token_i.half;
      sum_first_q <= rd_token_i.first;
    end
    if (drain_valid_i) drain_half_q <= drain_half_i;
  end

  assign rd_sum_o     = sum_first_q ? '0 : out_q[sum_half_q];
  assign drain_data_o = out_q[drain_half_q];
endmodule
