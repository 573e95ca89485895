// SPDX-License-Identifier: Apache-2.0
/// Bench top for npu_fp_div_pkg: independent lanes, combinational; `root_i` picks the function, so
/// that a vector pays for one of them only.
module fp_div #(
  parameter int unsigned Lanes = 16
) (
  input  logic                root_i,
  input  logic [Lanes*32-1:0] a_i,
  input  logic [Lanes*32-1:0] b_i,
  output logic [Lanes*32-1:0] result_o
);
  function automatic logic [Lanes*32-1:0] div_lanes(input logic [Lanes*32-1:0] a,
                                                    input logic [Lanes*32-1:0] b);
    // verilator no_inline_task
    logic [31:0] x [Lanes], y [Lanes];
    for (int unsigned l = 0; l < Lanes; l++) begin
      x[l] = a[l*32 +: 32];
      y[l] = b[l*32 +: 32];
    end
    // verilator unroll_disable
    for (int unsigned l = 0; l < Lanes; l++) x[l] = npu_fp_div_pkg::fp32_div(x[l], y[l]);
    for (int unsigned l = 0; l < Lanes; l++) div_lanes[l*32 +: 32] = x[l];
  endfunction

  function automatic logic [Lanes*32-1:0] sqrt_lanes(input logic [Lanes*32-1:0] a);
    // verilator no_inline_task
    logic [31:0] x [Lanes];
    for (int unsigned l = 0; l < Lanes; l++) x[l] = a[l*32 +: 32];
    // verilator unroll_disable
    for (int unsigned l = 0; l < Lanes; l++) x[l] = npu_fp_div_pkg::fp32_sqrt(x[l]);
    for (int unsigned l = 0; l < Lanes; l++) sqrt_lanes[l*32 +: 32] = x[l];
  endfunction

  always_comb begin
    if (root_i) result_o = sqrt_lanes(a_i);
    else        result_o = div_lanes(a_i, b_i);
  end
endmodule
