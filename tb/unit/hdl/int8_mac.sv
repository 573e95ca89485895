// SPDX-License-Identifier: Apache-2.0
/// Bench top for npu_fp_pkg::int8_mac: independent lanes, combinational.
module int8_mac #(
  parameter int unsigned Lanes = 16
) (
  input  logic [Lanes*8-1:0]  a_i,
  input  logic [Lanes*8-1:0]  b_i,
  input  logic [Lanes*32-1:0] c_i,
  output logic [Lanes*32-1:0] result_o
);
  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    assign result_o[l*32 +: 32] =
        npu_fp_pkg::int8_mac(a_i[l*8 +: 8], b_i[l*8 +: 8], c_i[l*32 +: 32]);
  end
endmodule
