// SPDX-License-Identifier: Apache-2.0
/// The matrix array of the RTL and the behavioural one, side by side on the same inputs.
module array_pair
  import npu_isa_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned  ArraySize = 8,
  localparam int unsigned Words     = 8
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  logic                       int8_i,

  input  logic                       wr_valid_i,
  input  logic                       wr_b_i,        // an operand B, otherwise A
  input  logic                       wr_along_k_i,
  input  logic [3:0]                 wr_slot_i,
  input  logic [4:0]                 wr_line_i,
  input  logic [ArraySize-1:0]       wr_mask_i,
  input  logic [ArraySize*32-1:0]    wr_data_i,

  input  logic                          int4_valid_i,
  input  logic [3:0]                    int4_slot_i,
  input  logic [4:0]                    int4_line_i,
  input  logic [ArraySize-1:0]          int4_mask_i,
  input  logic [INT4_ROWS*Words*32-1:0] int4_data_i,

  input  logic                       valid_i,
  input  logic                       weights_i,
  input  logic                       a_free_i,
  input  logic [3:0]                 a_slot_i,
  input  logic [4:0]                 a_lane_i,
  input  logic [3:0]                 b_slot_i,
  input  logic [5:0]                 ks_i,
  input  logic [5:0]                 cols_i,
  input  logic [15:0]                entry_i,
  input  logic [ArraySize*32-1:0]    psum_i,

  output logic                       valid_o,         // there are sums
  output logic                       same_control_o,  // tokens and releases
  output logic [ArraySize*32-1:0]    rtl_sum_o,
  output logic [ArraySize*32-1:0]    model_sum_o
);
  token_t     token;
  logic       rtl_valid, model_valid;
  sum_token_t rtl_token, model_token;
  buffer_addr_t place, int4_place;
  logic   rtl_a_free, rtl_b_free, model_a_free, model_b_free;

  assign token = '{valid: valid_i, first: entry_i[0],
                   row: '{a_slot: tile_slot_t'(a_slot_i), a_lane: a_lane_i,
                          b_slot: tile_slot_t'(b_slot_i), weights: weights_i, a_free: a_free_i,
                          ks: ks_i, cols: cols_i},
                   sum: '{half: entry_i[1], entry: entry_i, tile_end: entry_i[2]}};
  assign place = '{operand: wr_b_i ? MATRIX_B : MATRIX_A, half: 1'b0,
                   place: entry_t'(wr_slot_i), along_k: wr_along_k_i, line: wr_line_i};
  assign int4_place = '{operand: MATRIX_B, half: 1'b0, place: entry_t'(int4_slot_i),
                        along_k: 1'b0, line: int4_line_i};

  npu_matrix_array #(.ArraySize(ArraySize), .Words(Words)) u_rtl (
    .clk_i, .rst_ni, .int8_i, .wr_valid_i, .wr_place_i(place), .wr_mask_i,
    .wr_data_i, .int4_valid_i, .int4_place_i(int4_place), .int4_mask_i, .int4_data_i,
    .token_i(token), .psum_i, .sum_valid_o(rtl_valid), .sum_token_o(rtl_token),
    .sum_o(rtl_sum_o), .a_free_o(rtl_a_free), .b_free_o(rtl_b_free)
  );
  behavioural_array #(.ArraySize(ArraySize), .Words(Words)) u_model (
    .clk_i, .rst_ni, .int8_i, .wr_valid_i, .wr_place_i(place), .wr_mask_i,
    .wr_data_i, .int4_valid_i, .int4_place_i(int4_place), .int4_mask_i, .int4_data_i,
    .token_i(token), .psum_i, .sum_valid_o(model_valid), .sum_token_o(model_token),
    .sum_o(model_sum_o), .a_free_o(model_a_free), .b_free_o(model_b_free)
  );

  assign valid_o        = rtl_valid;
  assign same_control_o = rtl_valid == model_valid && (!rtl_valid || rtl_token == model_token) &&
                          rtl_a_free == model_a_free && rtl_b_free == model_b_free;
endmodule
