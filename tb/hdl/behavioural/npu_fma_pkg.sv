// SPDX-License-Identifier: Apache-2.0
/// A bench's replacement of rtl/fpu/npu_fma_pkg.sv: the same function on the host's FPU, for long
/// runs (`ARRAY=behavioural`). Not for synthesis, not for signing off the arithmetic.
///
/// The host's fmaf rounds once, as the contract asks; only its NaNs are made canonical. `$c32`
/// rather than a DPI import: the compiler then sees through the call, and a loop over the columns
/// of a row becomes one vector instruction. tests/test_sim_array.py holds both builds to the same
/// memory image.
package npu_fma_pkg;
  import npu_fp_pkg::*;

  /// a * b + c with a single rounding.
  function automatic logic [31:0] fp32_fma(input logic [31:0] a, input logic [31:0] b,
                                           input logic [31:0] c);
    logic [31:0] sum;
    sum = $c32("__builtin_bit_cast(IData, __builtin_fmaf(__builtin_bit_cast(float, IData(", a,
               ")), __builtin_bit_cast(float, IData(", b, ")), __builtin_bit_cast(float, IData(",
               c, "))))");
    return {1'b0, sum[30:0]} > FP32_INF ? FP32_NAN : sum;
  endfunction
endpackage
