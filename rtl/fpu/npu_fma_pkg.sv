// SPDX-License-Identifier: Apache-2.0
/// The fused multiply-add of every engine. A package of its own, so that a build can have another
/// implementation of the same function: tb/hdl/behavioural calls the host's FPU.
package npu_fma_pkg;
  import npu_fp_pkg::*;

  // fp32_fma and what it calls have no branches, and keep flags in words of 32 or 64 bits: a loop
  // over the columns of a row then becomes vector instructions. Measured on a 16 x 16 array
  // (Verilator 5.48, g++ 12, one core): 2.0 ns per fma with AVX-512, 5.0 with AVX2, 14 else. The
  // same arithmetic with branches and early returns took 16 to 19 ns.

  /// a * b + c with a single rounding.
  ///
  /// The exact sum lives in 63 bits: the product's 48 bits at [60:13], the addend's 24 at [61:38].
  /// Scale is the biased exponent of bit 61: ec for the addend, ea + eb - 125 for the product. The
  /// operand of smaller scale is shifted right; what it loses stays as a sticky bit 0. Bits are
  /// lost only while the other's leading one stays far above bit 0, so subnormal operands need no
  /// normalisation. A zero product has no scale: it gets one below every addend's.
  function automatic logic [31:0] fp32_fma(input logic [31:0] a, input logic [31:0] b,
                                           input logic [31:0] c);
    logic [63:0] product, addend, swap, larger, smaller, flip, sum, negative, magnitude;
    logic [31:0] ea, eb, ec, fa, fb, fc, sa, sb, sc, zero_p, scale_p, scale_c, distance, scale;
    logic [31:0] amount, addend_larger, subtract, zeros, below, sign, finite;
    logic [31:0] inf_p, inf_c, nan, special;

    // Exponent, fraction, and significand with its hidden bit at 23.
    ea = {24'b0, a[30:23]};
    eb = {24'b0, b[30:23]};
    ec = {24'b0, c[30:23]};
    fa = {9'b0, a[22:0]};
    fb = {9'b0, b[22:0]};
    fc = {9'b0, c[22:0]};
    sa = fa | (ea != 0 ? 32'h80_0000 : 32'b0);
    sb = fb | (eb != 0 ? 32'h80_0000 : 32'b0);
    sc = fc | (ec != 0 ? 32'h80_0000 : 32'b0);
    zero_p = ((sa - 1) | (sb - 1)) >> 31;
    product = (64'(sa) * 64'(sb)) << 13;
    addend = 64'(sc) << 38;
    scale_p = ea + eb + (ea == 0 ? 32'd1 : 32'd0) + (eb == 0 ? 32'd1 : 32'd0) - 125 - (zero_p << 9);
    scale_c = ec + (ec == 0 ? 32'd1 : 32'd0);

    // Align.
    distance = scale_p - scale_c;
    addend_larger = {32{distance[31]}};
    scale = (scale_c & addend_larger) | (scale_p & ~addend_larger);
    amount = (distance ^ addend_larger) - addend_larger;
    amount = amount > 63 ? 32'd63 : amount;
    swap = (product ^ addend) & 64'($signed(addend_larger));
    larger = product ^ swap;
    smaller = shift_right_sticky(addend ^ swap, amount[5:0]);

    // Add. x - y is x + ~y + 1, and a sum below zero is negated the same way.
    subtract = {32{a[31] ^ b[31] ^ c[31]}};
    flip = 64'($signed(subtract));
    sum = larger + (smaller ^ flip) - flip;
    negative = {64{sum[63]}};
    magnitude = (sum ^ negative) - negative;

    // Round. The sign is the larger operand's, the other's if the difference came out negative, and
    // x - x is +0; `below` masks a sum that is not zero.
    zeros = leading_zeros63(magnitude);
    below = zeros - 63;
    below = {32{below[31]}};
    sign = a ^ b ^ (subtract & addend_larger) ^ negative[31:0];
    sign &= FP32_SIGN & (~subtract | below);
    finite = (fp32_round(magnitude, zeros, scale) & below) | sign;

    // Infinities and NaNs, as 0 or 1: a carry into bit 31 tells that all exponent bits are set.
    inf_p = (({1'b0, a[30:0]} + 32'h80_0000) | ({1'b0, b[30:0]} + 32'h80_0000)) >> 31;
    inf_c = ({1'b0, c[30:0]} + 32'h80_0000) >> 31;
    nan = (({1'b0, a[30:0]} + 32'h7F_FFFF) | ({1'b0, b[30:0]} + 32'h7F_FFFF)
        | ({1'b0, c[30:0]} + 32'h7F_FFFF)) >> 31;
    nan |= (inf_p & zero_p) | (inf_p & inf_c & subtract);
    special = nan != 0 ? FP32_NAN : FP32_INF | (FP32_SIGN & (inf_p != 0 ? a ^ b : c));
    return (inf_p | inf_c) != 0 ? special : finite;
  endfunction
endpackage
