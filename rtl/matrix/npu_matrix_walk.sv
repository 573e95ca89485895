// SPDX-License-Identifier: Apache-2.0
/// Moves a place along the rows or columns of an operand, which are counted in mixed radix.
///
/// Combinational. `count_i` places further, at most as many as are left of the innermost digit;
/// more than one only where that digit's places are adjacent or all the same. Behind the last place
/// of the axis the result means nothing. There is neither divider nor multiplier: a digit that
/// starts again is a step of its own.
module npu_matrix_walk
  import npu_pkg::*;
  import npu_matrix_pkg::*;
(
  input  npu_axis_t axis_i,
  input  run_e      run_i,
  input  position_t here_i,
  input  extent_t   count_i,
  output position_t next_o
);
  logic        wraps, carries;
  logic [63:0] step, passed;

  assign wraps   = here_i.inner == 32'(count_i);
  assign carries = wraps && here_i.middle == 32'd1;
  assign passed  = (run_i == RUN_UNIT) ? 64'(count_i) - 64'd1 : '0;  // to the last of them

  always_comb begin
    step = axis_i.step[0];
    if (wraps)   step = axis_i.step[1];
    if (carries) step = axis_i.step[2];
    next_o.inner  = wraps ? axis_i.inner : here_i.inner - 32'(count_i);
    next_o.middle = carries ? axis_i.middle : here_i.middle - 32'(wraps);
    next_o.offset = here_i.offset + passed + step;
  end
endmodule
