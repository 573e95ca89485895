// SPDX-License-Identifier: Apache-2.0
/// Division and square root, correctly rounded: one digit per step, restoring, as pure functions.
///
/// Written like fp32_fma, without branches and with words of 32 and 64 bits, for the same reason
/// (docs/adr/0003). The caller puts registers behind them, for synthesis to spread over the steps.
package npu_fp_div_pkg;
  import npu_fp_pkg::*;

  /// The significand with its leading one moved to bit 23; {zeros moved over, significand}.
  function automatic logic [63:0] normalise(input logic [31:0] value);
    logic [31:0] significand, zeros;
    significand = {9'b0, value[22:0]} | (value[30:23] != 0 ? 32'h80_0000 : 32'b0);
    zeros = leading_zeros63(64'(significand) << 39) & 32'd31;
    return {zeros, significand << zeros[4:0]};
  endfunction

  /// Biased exponent of the significand's bit 23 after normalise() moved it by `zeros`.
  function automatic logic [31:0] exponent_of(input logic [31:0] value, input logic [31:0] zeros);
    return {24'b0, value[30:23]} + (value[30:23] == 0 ? 32'd1 : 32'd0) - zeros;
  endfunction

  /// 1 for an infinity or a NaN.
  function automatic logic [31:0] beyond_finite(input logic [31:0] value);
    return ({1'b0, value[30:0]} + 32'h80_0000) >> 31;
  endfunction

  /// 1 for a NaN.
  function automatic logic [31:0] is_nan(input logic [31:0] value);
    return ({1'b0, value[30:0]} + 32'h7F_FFFF) >> 31;
  endfunction

  /// 1 for a zero of either sign.
  function automatic logic [31:0] is_zero(input logic [31:0] value);
    return ({1'b0, value[30:0]} - 1) >> 31;
  endfunction

  /// a / b with a single rounding.
  ///
  /// The quotient of the significands lies in (1/2, 2): 27 digits, the first before the point, hold
  /// the 24 of the result and the round bit; the remainder is sticky. A result below the normal
  /// range is first shifted to where exponent 1 has its bits.
  function automatic logic [31:0] fp32_div(input logic [31:0] a, input logic [31:0] b);
    logic [63:0] norm_a, norm_b, magnitude;
    logic [31:0] remainder, divisor, trial, fits, quotient, scale, low, nan, inf, zero, sign;

    norm_a    = normalise(a);
    norm_b    = normalise(b);
    remainder = norm_a[31:0];
    divisor   = norm_b[31:0];
    quotient  = '0;
    for (int unsigned step = 0; step < 27; step++) begin
      trial     = remainder - divisor;
      fits      = ~{32{trial[31]}};
      quotient  = (quotient << 1) | (fits & 1);
      remainder = ((trial & fits) | (remainder & ~fits)) << 1;
    end

    // Digit 26 goes to bit 61, whose exponent `scale` is.
    scale     = exponent_of(a, norm_a[63:32]) - exponent_of(b, norm_b[63:32]) + 127;
    magnitude = (64'(quotient) << 35) | {63'b0, remainder != 0};
    low       = 1 - scale;
    low       = (scale - 1) >> 31 != 0 ? low : 32'd0;
    low       = low > 63 ? 32'd63 : low;
    magnitude = shift_right_sticky(magnitude, low[5:0]);
    scale     = (scale - 1) >> 31 != 0 ? 32'd1 : scale;

    sign = (a ^ b) & FP32_SIGN;
    nan  = is_nan(a) | is_nan(b) | (is_zero(a) & is_zero(b))
         | (beyond_finite(a) & beyond_finite(b));
    inf  = beyond_finite(a) | is_zero(b);
    zero = is_zero(a) | beyond_finite(b);
    magnitude[31:0] = fp32_round(magnitude, leading_zeros63(magnitude), scale);
    magnitude[31:0] = zero != 0 ? 32'b0 : magnitude[31:0];
    magnitude[31:0] = inf != 0 ? FP32_INF : magnitude[31:0];
    return nan != 0 ? FP32_NAN : magnitude[31:0] | sign;
  endfunction

  /// The square root with a single rounding.
  ///
  /// With an even exponent the significand has its leading one at bit 24 or 25: 26 digits of its
  /// root hold the 24 of the result, the round bit and one more, and no root is half way
  /// between two results.
  function automatic logic [31:0] fp32_sqrt(input logic [31:0] value);
    logic [63:0] norm;
    logic [31:0] exponent, radicand, remainder, trial, fits, root, increment, rounded;
    logic [31:0] invalid, unchanged;

    norm      = normalise(value);
    exponent  = exponent_of(value, norm[63:32]);
    radicand  = (exponent & 1) != 0 ? norm[31:0] << 7 : norm[31:0] << 8;
    remainder = '0;
    root      = '0;
    for (int unsigned step = 0; step < 26; step++) begin
      // Two bits of the radicand, from bit 31 down, then zeros.
      remainder = (remainder << 2) | (radicand >> 30);
      radicand  = radicand << 2;
      trial     = remainder - ((root << 2) | 1);
      fits      = ~{32{trial[31]}};
      root      = (root << 1) | (fits & 1);
      remainder = (trial & fits) | (remainder & ~fits);
    end

    increment = (root >> 1) & ((root >> 2) | root | (remainder != 0 ? 32'd1 : 32'd0)) & 1;
    // The hidden bit adds one to the exponent.
    exponent  = (exponent + 126 + (exponent & 1)) >> 1;
    rounded   = ((exponent - 1) << 23) + (root >> 2) + increment;

    unchanged = is_zero(value) | (beyond_finite(value) & ~(value >> 31) & 1);
    invalid   = is_nan(value) | ((value >> 31) & (is_zero(value) ^ 1));
    rounded   = unchanged != 0 ? value : rounded;
    return invalid != 0 ? FP32_NAN : rounded;
  endfunction
endpackage
