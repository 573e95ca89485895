// SPDX-License-Identifier: Apache-2.0
/// Formats, rounding, conversions between formats, and int8 arithmetic, as pure functions.
///
/// One rounding per call, to nearest even. Subnormals are kept on both sides, any NaN result is the
/// format's one canonical quiet NaN, an exact zero sum of unlike signs is +0, overflow gives
/// infinity. The contract is docs/numerics.md.
package npu_fp_pkg;
  localparam logic [31:0] FP32_SIGN = 32'h8000_0000;
  localparam logic [31:0] FP32_NAN = 32'h7FC0_0000;
  localparam logic [31:0] FP32_INF = 32'h7F80_0000;
  localparam logic [15:0] FP16_NAN = 16'h7E00;
  localparam logic [14:0] FP16_INF = 15'h7C00;
  localparam logic [15:0] BF16_NAN = 16'h7FC0;

  // What fp32_fma, fp32_div and fp32_sqrt call has no branches either, and keeps flags in words of
  // 32 or 64 bits: a loop over lanes then becomes vector instructions (docs/adr/0003).

  /// `value` shifted right by `amount`; bit 0 is also set when a one was lost.
  function automatic logic [63:0] shift_right_sticky(input logic [63:0] value,
                                                     input logic [5:0]  amount);
    logic [63:0] shifted;
    shifted = value >> amount;
    return shifted | {63'b0, (shifted << amount) != value};
  endfunction

  /// Zeros above the leading one, counted from bit 62; 63 for zero. Bit 63 must be 0.
  function automatic logic [31:0] leading_zeros63(input logic [63:0] value);
    logic [31:0] word, zeros, step;
    word  = value[62:31];
    zeros = word == 0 ? 32'd33 : 32'd1;
    word  = word == 0 ? {value[30:0], 1'b0} : word;
    step  = word < 32'h0001_0000 ? 32'd16 : 32'd0;
    zeros = zeros + step;
    word  = word << step[4:0];
    step  = word < 32'h0100_0000 ? 32'd8 : 32'd0;
    zeros = zeros + step;
    word  = word << step[4:0];
    step  = word < 32'h1000_0000 ? 32'd4 : 32'd0;
    zeros = zeros + step;
    word  = word << step[4:0];
    step  = word < 32'h4000_0000 ? 32'd2 : 32'd0;
    zeros = zeros + step;
    word  = word << step[4:0];
    return zeros - (word >> 31);
  endfunction

  /// The magnitude rounded to fp32. `scale` is the biased exponent of bit 61, `zeros` counts the
  /// zeros above the leading one.
  function automatic logic [31:0] fp32_round(input logic [63:0] magnitude,
                                             input logic [31:0] zeros,
                                             input logic [31:0] scale);
    logic [63:0] shifted;
    logic [31:0] shift, high, lost, rounded;
    // The leading one goes to bit 62, that of a subnormal only as far as exponent 1 allows.
    shift = zeros > scale ? scale : zeros;
    shifted = magnitude << shift[5:0];
    // To nearest even at bit 39, which is bit 7 of the high word: half an odd unit is rounded up,
    // half an even one if anything is lost below. The hidden bit adds one to the exponent, and so
    // does a carry.
    high = shifted[63:32];
    lost = shifted[31:0] > 1 ? 32'd1 : shifted[31:0];
    rounded = ((high + 63 + ((high >> 7 & 1) | lost)) >> 7) + ((scale - shift) << 23);
    return rounded > FP32_INF ? FP32_INF : rounded;
  endfunction

  /// Exact; a NaN becomes the canonical one.
  function automatic logic [31:0] fp16_to_fp32(input logic [15:0] value);
    logic [9:0] mantissa;
    logic [7:0] exponent;
    if (value[14:0] > FP16_INF) return FP32_NAN;
    if (value[14:0] == FP16_INF) return {value[15], FP32_INF[30:0]};
    if (value[14:0] == 0) return {value[15], 31'b0};
    mantissa = value[9:0];
    exponent = {3'b0, value[14:10]} + 8'd112;
    if (value[14:10] == 0) begin
      // A subnormal is normal in fp32: shift its leading one out into the hidden bit.
      exponent = 8'd112;
      if (mantissa[9:2] == 0) begin mantissa <<= 8; exponent -= 8'd8; end
      if (mantissa[9:6] == 0) begin mantissa <<= 4; exponent -= 8'd4; end
      if (mantissa[9:8] == 0) begin mantissa <<= 2; exponent -= 8'd2; end
      if (!mantissa[9]) begin mantissa <<= 1; exponent -= 8'd1; end
      mantissa <<= 1;
    end
    return {value[15], exponent, mantissa, 13'b0};
  endfunction

  /// Exact; a NaN becomes the canonical one.
  function automatic logic [31:0] bf16_to_fp32(input logic [15:0] value);
    return value[14:0] > FP32_INF[30:16] ? FP32_NAN : {value, 16'b0};
  endfunction

  /// Rounded to nearest even; too large becomes infinity, subnormals are kept.
  function automatic logic [15:0] fp32_to_fp16(input logic [31:0] value);
    logic [35:0] aligned;
    logic [7:0]  shift;
    logic        increment;
    if (value[30:0] > FP32_INF[30:0]) return FP16_NAN;
    if (value[30:23] >= 8'd143) return {value[31], FP16_INF};
    if (value[30:23] >= 8'd113) begin
      // A carry out of the mantissa moves into the exponent, and from the largest one to infinity.
      increment = value[12] && (value[13] || value[11:0] != 0);
      return {value[31], {value[27:23] - 5'd16, value[22:13]} + {14'b0, increment}};
    end
    // Subnormal result: bits 35:26 count its units of 2^-24. An exponent of 112 or less leaves the
    // hidden bit at 35 or lower; from a shift of 11 on the value is below half a unit.
    shift = 8'd112 - value[30:23];
    if (shift >= 8'd11) return {value[31], 15'b0};
    aligned = {1'b1, value[22:0], 12'b0} >> shift;
    increment = aligned[25] && (aligned[26] || aligned[24:0] != 0);
    return {value[31], {5'b0, aligned[35:26]} + {14'b0, increment}};
  endfunction

  /// Rounded to nearest even; too large becomes infinity, subnormals are kept.
  function automatic logic [15:0] fp32_to_bf16(input logic [31:0] value);
    logic increment;
    if (value[30:0] > FP32_INF[30:0]) return BF16_NAN;
    // A carry out of the mantissa moves into the exponent, and from the largest one to infinity.
    increment = value[15] && (value[16] || value[14:0] != 0);
    return value[31:16] + {15'b0, increment};
  endfunction

  /// c + a * b modulo 2^32, all three signed.
  function automatic logic [31:0] int8_mac(input logic [7:0] a, input logic [7:0] b,
                                           input logic [31:0] c);
    return c + {{24{a[7]}}, a} * {{24{b[7]}}, b};
  endfunction
endpackage
