// SPDX-License-Identifier: Apache-2.0
/// Comparisons and conversions to and from int32, as pure functions without branches
/// (docs/adr/0003). Truth values are words of 1 and 0.
package npu_fp_alu_pkg;
  import npu_fp_pkg::*;

  /// 1 if either is a NaN.
  function automatic logic [31:0] unordered(input logic [31:0] a, input logic [31:0] b);
    return (({1'b0, a[30:0]} + 32'h7F_FFFF) | ({1'b0, b[30:0]} + 32'h7F_FFFF)) >> 31;
  endfunction

  /// A word whose unsigned order is that of the values, -0 just below +0.
  function automatic logic [31:0] order_of(input logic [31:0] value);
    return value ^ ({32{value[31]}} | FP32_SIGN);
  endfunction

  /// A word whose signed order is that of the values, -0 equal to +0.
  function automatic logic [31:0] value_of(input logic [31:0] value);
    logic [31:0] negative;
    negative = {32{value[31]}};
    return ({1'b0, value[30:0]} ^ negative) - negative;
  endfunction

  function automatic logic [31:0] fp32_max(input logic [31:0] a, input logic [31:0] b);
    logic [31:0] larger;
    larger = order_of(a) > order_of(b) ? a : b;
    return unordered(a, b) != 0 ? FP32_NAN : larger;
  endfunction

  function automatic logic [31:0] fp32_min(input logic [31:0] a, input logic [31:0] b);
    logic [31:0] smaller;
    smaller = order_of(a) > order_of(b) ? b : a;
    return unordered(a, b) != 0 ? FP32_NAN : smaller;
  endfunction

  function automatic logic [31:0] fp32_lt(input logic [31:0] a, input logic [31:0] b);
    return ($signed(value_of(a)) < $signed(value_of(b)) ? 32'd1 : 32'd0) & ~unordered(a, b);
  endfunction

  function automatic logic [31:0] fp32_le(input logic [31:0] a, input logic [31:0] b);
    return ($signed(value_of(a)) <= $signed(value_of(b)) ? 32'd1 : 32'd0) & ~unordered(a, b);
  endfunction

  function automatic logic [31:0] fp32_eq(input logic [31:0] a, input logic [31:0] b);
    return (value_of(a) == value_of(b) ? 32'd1 : 32'd0) & ~unordered(a, b);
  endfunction

  /// Rounded to nearest even.
  function automatic logic [31:0] int32_to_fp32(input logic [31:0] value);
    logic [31:0] negative, absolute, rounded;
    logic [63:0] magnitude;
    negative  = {32{value[31]}};
    absolute  = (value ^ negative) - negative;
    magnitude = {32'b0, absolute} << 30;
    rounded   = fp32_round(magnitude, leading_zeros63(magnitude), 32'd158);
    return value != 0 ? rounded | (negative & FP32_SIGN) : 32'b0;
  endfunction

  /// Rounded to nearest even where `nearest` is 1, towards zero where it is 0; too large gives the
  /// nearest int32, a NaN 0.
  function automatic logic [31:0] fp32_to_int32(input logic [31:0] value,
                                                input logic [31:0] nearest);
    logic [31:0] exponent, significand, shift, magnitude, increment, negative, limit;
    logic [63:0] aligned, fraction;
    exponent    = {24'b0, value[30:23]};
    significand = {9'b1, value[22:0]};
    // Leading one at bit 61, of weight 2^(exponent - 127): the shift brings 2^0 to bit 0. From 63
    // on the value is below one half, so that zero and subnormals may have one as well.
    aligned     = 64'(significand) << 38;
    shift       = exponent > 157 ? 32'd31 : 188 - exponent;
    shift       = shift > 63 ? 32'd63 : shift;
    magnitude   = 32'(aligned >> shift[5:0]);
    fraction    = aligned << (6'd0 - shift[5:0]);
    increment   = {31'b0, fraction[63]} & ((fraction << 1) != 0 ? 32'd1 : magnitude) & nearest;
    negative    = {32{value[31]}};
    magnitude   = ((magnitude + increment) ^ negative) - negative;
    limit       = 32'h7FFF_FFFF ^ negative;
    magnitude   = exponent > 157 ? limit : magnitude;
    return unordered(value, value) != 0 ? 32'b0 : magnitude;
  endfunction
endpackage
