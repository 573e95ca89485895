// SPDX-License-Identifier: Apache-2.0
/// Bench top for npu_fp_alu_pkg, combinational. All functions see the same lanes.
module fp_alu #(
  parameter int unsigned Lanes = 16
) (
  input  logic [Lanes*32-1:0] a_i,
  input  logic [Lanes*32-1:0] b_i,
  output logic [Lanes*32-1:0] f32_max_o,
  output logic [Lanes*32-1:0] f32_min_o,
  output logic [Lanes*32-1:0] f32_lt_o,
  output logic [Lanes*32-1:0] f32_le_o,
  output logic [Lanes*32-1:0] f32_eq_o,
  output logic [Lanes*32-1:0] i32_to_f32_o,
  output logic [Lanes*32-1:0] f32_to_i32_o,
  output logic [Lanes*32-1:0] f32_to_i32_r_minMag_o
);
  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    logic [31:0] a, b;
    assign a = a_i[l*32 +: 32];
    assign b = b_i[l*32 +: 32];
    assign f32_max_o[l*32 +: 32]             = npu_fp_alu_pkg::fp32_max(a, b);
    assign f32_min_o[l*32 +: 32]             = npu_fp_alu_pkg::fp32_min(a, b);
    assign f32_lt_o[l*32 +: 32]              = npu_fp_alu_pkg::fp32_lt(a, b);
    assign f32_le_o[l*32 +: 32]              = npu_fp_alu_pkg::fp32_le(a, b);
    assign f32_eq_o[l*32 +: 32]              = npu_fp_alu_pkg::fp32_eq(a, b);
    assign i32_to_f32_o[l*32 +: 32]          = npu_fp_alu_pkg::int32_to_fp32(a);
    assign f32_to_i32_o[l*32 +: 32]          = npu_fp_alu_pkg::fp32_to_int32(a, 32'd1);
    assign f32_to_i32_r_minMag_o[l*32 +: 32] = npu_fp_alu_pkg::fp32_to_int32(a, 32'd0);
  end
endmodule
