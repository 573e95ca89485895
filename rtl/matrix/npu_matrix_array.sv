// SPDX-License-Identifier: Apache-2.0
/// ArraySize rows in a chain, and the delay line that brings each token to row r after
/// r × FmaLatency cycles, when the partial sums that row r-1 made for it arrive.
///
/// `psum_i` belongs to `token_i` one cycle later; `sum_o` and `token_o` leave together
/// ArraySize × FmaLatency + 1 cycles after `token_i`.
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
  input  place_t                     wr_place_i,
  input  logic [ArraySize-1:0]       wr_mask_i,
  input  logic [ArraySize-1:0][31:0] wr_data_i,

  input  logic                                  int4_valid_i,
  input  place_t                                int4_place_i,
  input  logic [ArraySize-1:0]                  int4_mask_i,
  input  logic [INT4_ROWS-1:0][Words-1:0][31:0] int4_data_i,

  input  token_t                  token_i,
  input  logic [ArraySize*32-1:0] psum_i,
  output token_t                  token_o,
  output logic [ArraySize*32-1:0] sum_o,

  output logic a_free_o,   // the last row has read the last element of a tile of A
  output logic b_free_o    // the last row has taken its weights
);
  localparam int unsigned Delay   = ArraySize * FmaLatency + 1;
  localparam int unsigned LastRow = (ArraySize - 1) * FmaLatency;

  logic [$clog2(Delay+2)-1:0] busy_q;   // cycles until no stage holds a valid token
  logic                       shift;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)            busy_q <= '0;
    else if (token_i.valid) busy_q <= ($clog2(Delay + 2))'(Delay + 1);
    else if (busy_q != '0)  busy_q <= busy_q - 1'b1;
  end
  assign shift = token_i.valid || busy_q != '0;

  // The token of d cycles ago. Each is a variable of its own, as the stages of a row are.
  for (genvar d = 0; d <= Delay; d++) begin : gen_stage
    token_t token;
    if (d == 0) begin : gen_input
      assign token = token_i;
    end else begin : gen_delay
      token_t token_q;
      always_ff @(posedge clk_i) begin
        if (!rst_ni)    token_q <= '0;
        else if (shift) token_q <= gen_stage[d-1].token;
      end
      assign token = token_q;
    end
  end

  assign a_free_o = gen_stage[LastRow].token.valid && gen_stage[LastRow].token.a_free;
  assign b_free_o = gen_stage[LastRow].token.valid && gen_stage[LastRow].token.weights;
  assign token_o  = gen_stage[Delay].token;

  logic [ArraySize*32-1:0] psum [ArraySize+1];
  assign psum[0] = psum_i;
  assign sum_o   = psum[ArraySize];

  for (genvar r = 0; r < ArraySize; r++) begin : gen_row
    npu_matrix_row #(
      .ArraySize(ArraySize), .FmaLatency(FmaLatency), .ASlots(ASlots), .WeightSlots(WeightSlots),
      .Words(Words), .Row(r)
    ) u_row (
      .clk_i,
      .rst_ni,
      .int8_i,
      .wr_valid_i,
      .wr_place_i,
      .wr_mask_i,
      .wr_data_i,
      .int4_valid_i,
      .int4_place_i,
      .int4_mask_i,
      .int4_data_i(int4_data_i[r%INT4_ROWS]),
      .token_i(gen_stage[r*FmaLatency].token),
      .psum_i (psum[r]),
      .psum_o (psum[r+1])
    );
  end
endmodule
