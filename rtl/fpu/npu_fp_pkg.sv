// SPDX-License-Identifier: Apache-2.0
/// Floating-point and integer arithmetic of every engine, as pure functions.
///
/// One rounding per call, to nearest even. Subnormals are kept on both sides, any NaN result is the
/// format's one canonical quiet NaN, an exact zero sum of unlike signs is +0, overflow gives
/// infinity. The contract is docs/numerics.md.
package npu_fp_pkg;
  localparam logic [31:0] FP32_NAN = 32'h7FC0_0000;
  localparam logic [31:0] FP32_INF = 32'h7F80_0000;
  localparam logic [15:0] FP16_NAN = 16'h7E00;
  localparam logic [14:0] FP16_INF = 15'h7C00;
  localparam logic [15:0] BF16_NAN = 16'h7FC0;

  /// Zeros above the leading one of `value`, counted from bit 62; 62 when bits 62:1 are all zero.
  function automatic logic [5:0] leading_zeros63(input logic [63:0] value);
    logic [63:0] v;
    logic [5:0]  n;
    v = value << 1;
    n = 6'd0;
    if (v[63:32] == 0) begin n |= 6'd32; v <<= 32; end
    if (v[63:48] == 0) begin n |= 6'd16; v <<= 16; end
    if (v[63:56] == 0) begin n |= 6'd8;  v <<= 8; end
    if (v[63:60] == 0) begin n |= 6'd4;  v <<= 4; end
    if (v[63:62] == 0) begin n |= 6'd2;  v <<= 2; end
    if (!v[63]) n |= 6'd1;
    return n;
  endfunction

  /// a * b + c where at least one operand is an infinity or a NaN.
  function automatic logic [31:0] fp32_fma_special(input logic [31:0] a, input logic [31:0] b,
                                                   input logic [31:0] c);
    logic inf_a, inf_b, inf_c, inf_p, nan, sign_p;
    inf_a = a[30:0] == FP32_INF[30:0];
    inf_b = b[30:0] == FP32_INF[30:0];
    inf_c = c[30:0] == FP32_INF[30:0];
    inf_p = inf_a || inf_b;
    sign_p = a[31] ^ b[31];
    nan = a[30:0] > FP32_INF[30:0] || b[30:0] > FP32_INF[30:0] || c[30:0] > FP32_INF[30:0]
        || (inf_p && (a[30:0] == 0 || b[30:0] == 0)) || (inf_p && inf_c && sign_p != c[31]);
    return nan ? FP32_NAN : {inf_p ? sign_p : c[31], FP32_INF[30:0]};
  endfunction

  /// a * b + c with a single rounding.
  ///
  /// The exact sum lives in 63 bits: the product's 48 bits at [60:13], the addend's 24 bits at
  /// [61:38]. Scale is the exponent of bit 61, so ec for the addend and ea + eb - 125 for the
  /// product. The operand of smaller scale is shifted right; what it loses stays as a sticky bit 0.
  /// Bits are lost only while the other operand's leading one stays far above bit 0, so subnormal
  /// operands need no normalisation: their exponent is 1 and their hidden bit 0.
  function automatic logic [31:0] fp32_fma(input logic [31:0] a, input logic [31:0] b,
                                           input logic [31:0] c);
    // verilator no_inline_task
    logic [31:0] ea, eb, ec, scale_p, distance, scale, rounded;
    logic [63:0] product, addend, upper, lower, aligned, sum, magnitude, shifted;
    logic [5:0]  align, zeros, shift;
    logic        addend_large, subtract, sign_upper, negative;

    ea = {24'b0, a[30:23]};
    eb = {24'b0, b[30:23]};
    ec = {24'b0, c[30:23]};
    if (ea == 255 || eb == 255 || ec == 255) return fp32_fma_special(a, b, c);
    product = {40'b0, ea != 0, a[22:0]} * {40'b0, eb != 0, b[22:0]};
    addend = {40'b0, ec != 0, c[22:0]};
    ec |= {31'b0, ec == 0};
    scale_p = (ea | {31'b0, ea == 0}) + (eb | {31'b0, eb == 0}) - 125;

    // A zero product has no scale: the addend must not be shifted out below it.
    distance = ec - scale_p;
    addend_large = $signed(distance) > 0 || product == 0;
    scale = addend_large ? ec : scale_p;
    upper = addend_large ? addend << 38 : product << 13;
    lower = addend_large ? product << 13 : addend << 38;
    distance = $signed(distance) > 0 ? distance : -distance;
    align = distance > 63 ? 6'd63 : distance[5:0];
    aligned = lower >> align;
    aligned |= {63'b0, (aligned << align) != lower};

    subtract = a[31] ^ b[31] ^ c[31];
    sign_upper = addend_large ? c[31] : a[31] ^ b[31];
    sum = subtract ? upper - aligned : upper + aligned;
    negative = sum[63];
    magnitude = negative ? -sum : sum;
    if (magnitude == 0) return {sign_upper & ~subtract, 31'b0};

    // Normalised to bit 62, but a subnormal result only as far as exponent 1 allows.
    zeros = leading_zeros63(magnitude);
    shift = {26'b0, zeros} > scale ? scale[5:0] : zeros;
    shifted = magnitude << shift;
    // The hidden bit at 62 adds one to the exponent, and so does a carry out of the rounding.
    rounded = 32'((shifted + {26'b0, {38{1'b1}}} + {63'b0, shifted[39]}) >> 39)
            + ((scale - {26'b0, shift}) << 23);
    return {sign_upper ^ negative, rounded > FP32_INF ? FP32_INF[30:0] : rounded[30:0]};
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
