// SPDX-License-Identifier: Apache-2.0
/// Bench top for the four conversions of npu_fp_pkg, combinational. All of them see the same lanes:
/// the widening ones take the lower 16 bits and answer in 32, the narrowing ones answer in the
/// lower 16 bits.
module fp_cast #(
  parameter int unsigned Lanes = 16
) (
  input  logic [Lanes*32-1:0] value_i,
  output logic [Lanes*32-1:0] f16_to_f32_o,
  output logic [Lanes*32-1:0] bf16_to_f32_o,
  output logic [Lanes*32-1:0] f32_to_f16_o,
  output logic [Lanes*32-1:0] f32_to_bf16_o
);
  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    assign f16_to_f32_o[l*32 +: 32]  = npu_fp_pkg::fp16_to_fp32(value_i[l*32 +: 16]);
    assign bf16_to_f32_o[l*32 +: 32] = npu_fp_pkg::bf16_to_fp32(value_i[l*32 +: 16]);
    assign f32_to_f16_o[l*32 +: 32]  = {16'b0, npu_fp_pkg::fp32_to_fp16(value_i[l*32 +: 32])};
    assign f32_to_bf16_o[l*32 +: 32] = {16'b0, npu_fp_pkg::fp32_to_bf16(value_i[l*32 +: 32])};
  end
endmodule
