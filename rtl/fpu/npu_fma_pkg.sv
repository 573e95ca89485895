// SPDX-License-Identifier: Apache-2.0
/// The fused multiply-add of every engine. A package of its own, so that a build can have another
/// implementation of the same function: tb/hdl/behavioural calls the host's FPU.
package npu_fma_pkg;
  import npu_fp_pkg::*;

  // These functions and what they call have no branches, and keep flags in words of 32 or 64 bits:
  // a loop over the columns of a row then becomes vector instructions (docs/adr/0003).

  /// The significand of a number with its hidden bit, at [30:7].
  function automatic logic [31:0] fp32_significand(input logic [31:0] value);
    return {1'b0, value[30:23] != 0, value[22:0], 7'b0};
  endfunction

  /// The biased exponent of a number, of a subnormal 1. A zero has none: it gets one so low that
  /// its product lies below every number.
  function automatic logic [31:0] fp32_scale(input logic [31:0] value);
    return {{23{value[30:0] == 0}}, 1'b0, value[30:24], value[23] | (value[30:23] == 0)};
  endfunction

  /// a * b + c with a single rounding, for finite a and b and any c. Bit 31 of `sign` is the
  /// product's, sa and sb are the significands of a and b, `scales` is the sum of their scales.
  ///
  /// The exact sum lives in 63 bits: the product's 48 bits at [60:13], the addend's 24 at [61:38];
  /// scale_p and scale_c are the biased exponents of bit 61. The operand of smaller scale is
  /// shifted right; what it loses stays as a sticky bit 0. Bits are lost only while the other's
  /// leading one stays far above bit 0, so subnormal operands need no normalisation.
  function automatic logic [31:0] fp32_fma_finite(input logic [31:0] sign, input logic [31:0] sa,
                                                  input logic [31:0] sb, input logic [31:0] scales,
                                                  input logic [31:0] c);
    logic [63:0] product, addend, larger, smaller, sum, negative, magnitude;
    logic [31:0] magnitude_c, exponent_c, sc, scale_p, scale_c, scale, distance, amount;
    logic [31:0] subtract, zeros, sign_sum, rounded;

    magnitude_c = c & ~FP32_SIGN;
    exponent_c = c & FP32_INF;
    exponent_c = exponent_c < 32'h80_0000 ? 32'h80_0000 : exponent_c;
    scale_c = magnitude_c >> 23;
    scale_c = scale_c < 1 ? 32'd1 : scale_c;
    sc = magnitude_c - exponent_c + 32'h80_0000;
    addend = 64'(sc) << 38;
    product = 64'(sa >> 1) * 64'(sb);
    scale_p = scales - 125;

    // Align.
    distance = scale_p - scale_c;
    amount = distance[31] ? -distance : distance;
    amount = amount > 63 ? 32'd63 : amount;
    scale   = distance[31] ? scale_c : scale_p;
    larger  = distance[31] ? addend : product;
    smaller = distance[31] ? product : addend;
    smaller = shift_right_sticky(smaller, amount[5:0]);

    // Add.
    subtract = sign ^ c;
    sum = subtract[31] ? larger - smaller : larger + smaller;
    negative = {64{sum[63]}};
    magnitude = (sum ^ negative) - negative;

    // Round. The sign is the larger operand's, the other's if the difference came out negative, and
    // x - x is +0.
    zeros = leading_zeros63(magnitude);
    rounded = zeros == 63 ? 32'd0 : fp32_round(magnitude, zeros, scale);
    sign_sum = sign ^ (subtract & (negative[31:0] ^ distance));
    sign_sum = zeros == 63 ? sign_sum & ~subtract : sign_sum;
    rounded = rounded | (sign_sum & FP32_SIGN);
    rounded = magnitude_c == FP32_INF ? c : rounded;
    return magnitude_c > FP32_INF ? FP32_NAN : rounded;
  endfunction

  /// a * b + c where a or b may be infinite or NaN: `finite` is the result if neither is.
  function automatic logic [31:0] fp32_fma_special(input logic [31:0] a, input logic [31:0] b,
                                                   input logic [31:0] c,
                                                   input logic [31:0] finite);
    logic [31:0] inf_p, inf_c, zero_p, nan, special;
    // As 0 or 1: a carry into bit 31 tells that all exponent bits are set, a borrow that none is.
    inf_p = (({1'b0, a[30:0]} + 32'h80_0000) | ({1'b0, b[30:0]} + 32'h80_0000)) >> 31;
    inf_c = ({1'b0, c[30:0]} + 32'h80_0000) >> 31;
    zero_p = (({1'b0, a[30:0]} - 1) | ({1'b0, b[30:0]} - 1)) >> 31;
    nan = (({1'b0, a[30:0]} + 32'h7F_FFFF) | ({1'b0, b[30:0]} + 32'h7F_FFFF)
        | ({1'b0, c[30:0]} + 32'h7F_FFFF)) >> 31;
    nan |= (inf_p & zero_p) | (inf_p & inf_c & ((a ^ b ^ c) >> 31));
    special = nan != 0 ? FP32_NAN : FP32_INF | (FP32_SIGN & (a ^ b));
    return inf_p != 0 ? special : finite;
  endfunction

  /// a * b + c with a single rounding.
  function automatic logic [31:0] fp32_fma(input logic [31:0] a, input logic [31:0] b,
                                           input logic [31:0] c);
    return fp32_fma_special(a, b, c, fp32_fma_finite(
        a ^ b, fp32_significand(a), fp32_significand(b), fp32_scale(a) + fp32_scale(b), c));
  endfunction
endpackage
