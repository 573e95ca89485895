// SPDX-License-Identifier: Apache-2.0
/// Bench top for npu_fma_pkg::fp32_fma: independent lanes, combinational, the loop written as in
/// the matrix row so that the simulator compiles the same code.
module fp_fma #(
  parameter int unsigned Lanes = 16
) (
  input  logic [Lanes*32-1:0] a_i,
  input  logic [Lanes*32-1:0] b_i,
  input  logic [Lanes*32-1:0] c_i,
  output logic [Lanes*32-1:0] result_o
);
  function automatic logic [Lanes*32-1:0] fma_lanes(input logic [Lanes*32-1:0] a,
                                                    input logic [Lanes*32-1:0] b,
                                                    input logic [Lanes*32-1:0] c);
    // verilator no_inline_task
    logic [31:0] x [Lanes], y [Lanes], z [Lanes];
    for (int unsigned l = 0; l < Lanes; l++) begin
      x[l] = a[l*32 +: 32];
      y[l] = b[l*32 +: 32];
      z[l] = c[l*32 +: 32];
    end
    // verilator unroll_disable
    for (int unsigned l = 0; l < Lanes; l++) z[l] = npu_fma_pkg::fp32_fma(x[l], y[l], z[l]);
    for (int unsigned l = 0; l < Lanes; l++) fma_lanes[l*32 +: 32] = z[l];
  endfunction

  assign result_o = fma_lanes(a_i, b_i, c_i);
endmodule
