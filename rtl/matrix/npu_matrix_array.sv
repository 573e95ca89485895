// SPDX-License-Identifier: Apache-2.0
/// ArraySize rows in a chain, and the delay lines that bring each token to row r after
/// r × FmaLatency cycles, when the partial sums that row r-1 made for it arrive.
///
/// `psum_i` belongs to `token_i` one cycle later; `sum_o` and `sum_token_o` leave together, with
/// `sum_valid_o`, ArraySize × FmaLatency + 1 cycles after `token_i`.
module npu_matrix_array
  import npu_isa_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize   = 16,
  parameter int unsigned FmaLatency  = 4,
  parameter int unsigned ASlots      = 16,
  parameter int unsigned WeightSlots = 16,
  parameter int unsigned Words       = 8
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic int8_i,

  input  logic                       wr_valid_i,
  input  buffer_addr_t               wr_place_i,
  input  logic [ArraySize-1:0]       wr_mask_i,
  input  logic [ArraySize-1:0][31:0] wr_data_i,

  input  logic                                  int4_valid_i,
  input  buffer_addr_t                          int4_place_i,
  input  logic [ArraySize-1:0]                  int4_mask_i,
  input  logic [INT4_ROWS-1:0][Words-1:0][31:0] int4_data_i,

  input  token_t                  token_i,
  input  logic [ArraySize*32-1:0] psum_i,
  output logic                    sum_valid_o,
  output sum_token_t              sum_token_o,
  output logic [ArraySize*32-1:0] sum_o,

  output logic a_free_o,   // the last row has read the last element of a tile of A
  output logic b_free_o    // the last row has taken its weights
);
  localparam int unsigned Delay   = ArraySize * FmaLatency + 1;
  localparam int unsigned LastRow = (ArraySize - 1) * FmaLatency;

  // Of each row: bit s says that a token came s cycles ago. Each is a variable of its own, and so
  // is each stage below, as the stages of a row are.
  for (genvar r = 0; r < ArraySize; r++) begin : gen_valid
    logic [FmaLatency:0]   valid;
    logic [FmaLatency-1:0] valid_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) valid_q <= '0;
      else         valid_q <= valid[FmaLatency-1:0];
    end
    if (r == 0) begin : gen_input
      assign valid = {valid_q, token_i.valid};
    end else begin : gen_row_before
      assign valid = {valid_q, gen_valid[r-1].valid_q[FmaLatency-1]};
    end
  end

  // The token of d cycles ago
  for (genvar d = 0; d <= LastRow; d++) begin : gen_stage
    row_token_t token;
    if (d == 0) begin : gen_input
      assign token = token_i.row;
    end else begin : gen_delay
      row_token_t token_q;
      always_ff @(posedge clk_i) begin
        if (gen_valid[(d-1)/FmaLatency].valid[(d-1)%FmaLatency]) token_q <= gen_stage[d-1].token;
      end
      assign token = token_q;
    end
  end

  assign a_free_o = gen_valid[ArraySize-1].valid[0] && gen_stage[LastRow].token.a_free;
  assign b_free_o = gen_valid[ArraySize-1].valid[0] && gen_stage[LastRow].token.weights;

  // Where the sums go waits in a memory: nothing on the way needs it.
  localparam int unsigned PlaceW = $clog2(Delay + 1);
  sum_token_t        place_q [2**PlaceW];
  logic [PlaceW-1:0] now_q;
  logic              sum_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      now_q       <= '0;
      sum_valid_q <= 1'b0;
    end else begin
      now_q       <= now_q + 1'b1;
      sum_valid_q <= gen_valid[ArraySize-1].valid[FmaLatency];
    end
  end

  always_ff @(posedge clk_i) begin
    if (token_i.valid) place_q[now_q] <= token_i.sum;
  end

  assign sum_valid_o = sum_valid_q;
  assign sum_token_o = place_q[now_q - PlaceW'(Delay)];

  for (genvar r = 0; r <= ArraySize; r++) begin : gen_psum
    logic [31:0] psum [ArraySize];
  end
  for (genvar c = 0; c < ArraySize; c++) begin : gen_ends
    assign gen_psum[0].psum[c] = psum_i[c*32 +: 32];
    assign sum_o[c*32 +: 32]   = gen_psum[ArraySize].psum[c];
  end

  for (genvar r = 0; r < ArraySize; r++) begin : gen_row
    npu_matrix_row #(
      .ArraySize(ArraySize), .FmaLatency(FmaLatency), .ASlots(ASlots), .WeightSlots(WeightSlots),
      .Words(Words), .Row(r)
    ) u_row (
      .clk_i,
      .int8_i,
      .wr_valid_i,
      .wr_place_i,
      .wr_mask_i,
      .wr_data_i,
      .int4_valid_i,
      .int4_place_i,
      .int4_mask_i,
      .int4_data_i(int4_data_i[r%INT4_ROWS]),
      .token_valid_i(gen_valid[r].valid),
      .token_i(gen_stage[r*FmaLatency].token),
      .psum_i (gen_psum[r].psum),
      .psum_o (gen_psum[r+1].psum)
    );
  end
endmodule
