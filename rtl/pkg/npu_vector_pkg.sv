// SPDX-License-Identifier: Apache-2.0
// Generated from driver/isa by `make gen`. Do not edit.
/// Instructions of the vector engine and the programs made of them; see
/// docs/vector-programs.md.
package npu_vector_pkg;
  localparam int unsigned REGISTERS = 16;
  localparam int unsigned IMMEDIATES = 4;
  localparam int unsigned MAX_SOURCES = 3;
  localparam int unsigned REDUCTION_LANES = 16;
  localparam int unsigned OPERAND_SRC = 16;
  localparam int unsigned OPERAND_INDEX = 19;
  localparam int unsigned OPERAND_IMM = 20;
  localparam int unsigned OPERAND_CONST = 32;
  localparam int unsigned DST_OUT = 16;

  typedef enum logic [5:0] {
    MICRO_MOV = 6'd0,
    MICRO_FMA = 6'd1,
    MICRO_DIV = 6'd2,
    MICRO_SQRT = 6'd3,
    MICRO_FMAX = 6'd4,
    MICRO_FMIN = 6'd5,
    MICRO_FLT = 6'd6,
    MICRO_FLE = 6'd7,
    MICRO_FEQ = 6'd8,
    MICRO_SEL = 6'd9,
    MICRO_AND = 6'd10,
    MICRO_OR = 6'd11,
    MICRO_XOR = 6'd12,
    MICRO_IADD = 6'd13,
    MICRO_ISUB = 6'd14,
    MICRO_IMUL = 6'd15,
    MICRO_IMAX = 6'd16,
    MICRO_IMIN = 6'd17,
    MICRO_ILT = 6'd18,
    MICRO_IEQ = 6'd19,
    MICRO_SHL = 6'd20,
    MICRO_SRL = 6'd21,
    MICRO_SRA = 6'd22,
    MICRO_I2F = 6'd23,
    MICRO_F2I = 6'd24,
    MICRO_F2I_TRUNC = 6'd25
  } micro_op_e;

  typedef enum logic [2:0] {
    REDUCE_NONE = 3'd0,
    REDUCE_FADD = 3'd1,
    REDUCE_FMAX = 3'd2,
    REDUCE_FMIN = 3'd3,
    REDUCE_IADD = 3'd4,
    REDUCE_IMAX = 3'd5,
    REDUCE_IMIN = 3'd6
  } reduce_e;

  typedef struct packed {
    micro_op_e op;
    logic [4:0] dst;
    logic [7:0] a;
    logic [7:0] b;
    logic [7:0] c;
  } instruction_t;

  typedef struct packed {
    logic [15:0] start;
    logic [7:0] length;
    logic [1:0] sources;
    reduce_e reduce;
  } program_t;

  /// Where every lane of a reduction starts.
  function automatic logic [31:0] reduce_identity(reduce_e reduce);
    unique case (reduce)
      REDUCE_NONE: return 32'h00000000;
      REDUCE_FADD: return 32'h80000000;
      REDUCE_FMAX: return 32'hff800000;
      REDUCE_FMIN: return 32'h7f800000;
      REDUCE_IADD: return 32'h00000000;
      REDUCE_IMAX: return 32'h80000000;
      REDUCE_IMIN: return 32'h7fffffff;
      default: return '0;
    endcase
  endfunction

  localparam int unsigned PROGRAM_COUNT = 87;
  localparam program_t PROGRAMS [PROGRAM_COUNT] = '{
    /* 0 move */ '{16'd0, 8'd1, 2'd1, REDUCE_NONE},
    /* 1 constant */ '{16'd1, 8'd1, 2'd0, REDUCE_NONE},
    /* 2 add */ '{16'd2, 8'd1, 2'd2, REDUCE_NONE},
    /* 3 affine */ '{16'd3, 8'd1, 2'd1, REDUCE_NONE},
    /* 4 mul */ '{16'd4, 8'd1, 2'd2, REDUCE_NONE},
    /* 5 mul_add */ '{16'd5, 8'd1, 2'd3, REDUCE_NONE},
    /* 6 div */ '{16'd6, 8'd1, 2'd2, REDUCE_NONE},
    /* 7 div_imm */ '{16'd7, 8'd1, 2'd1, REDUCE_NONE},
    /* 8 imm_div */ '{16'd8, 8'd1, 2'd1, REDUCE_NONE},
    /* 9 sqrt */ '{16'd9, 8'd1, 2'd1, REDUCE_NONE},
    /* 10 rsqrt */ '{16'd10, 8'd2, 2'd1, REDUCE_NONE},
    /* 11 neg */ '{16'd12, 8'd1, 2'd1, REDUCE_NONE},
    /* 12 abs */ '{16'd13, 8'd1, 2'd1, REDUCE_NONE},
    /* 13 int_add */ '{16'd14, 8'd2, 2'd2, REDUCE_NONE},
    /* 14 int_affine */ '{16'd16, 8'd2, 2'd1, REDUCE_NONE},
    /* 15 int_mul */ '{16'd18, 8'd1, 2'd2, REDUCE_NONE},
    /* 16 int_to_float */ '{16'd19, 8'd1, 2'd1, REDUCE_NONE},
    /* 17 float_to_int */ '{16'd20, 8'd1, 2'd1, REDUCE_NONE},
    /* 18 int_range */ '{16'd21, 8'd2, 2'd0, REDUCE_NONE},
    /* 19 float_range */ '{16'd23, 8'd2, 2'd0, REDUCE_NONE},
    /* 20 maximum */ '{16'd25, 8'd1, 2'd2, REDUCE_NONE},
    /* 21 minimum */ '{16'd26, 8'd1, 2'd2, REDUCE_NONE},
    /* 22 clamp */ '{16'd27, 8'd2, 2'd1, REDUCE_NONE},
    /* 23 int_maximum */ '{16'd29, 8'd1, 2'd2, REDUCE_NONE},
    /* 24 int_minimum */ '{16'd30, 8'd1, 2'd2, REDUCE_NONE},
    /* 25 int_clamp */ '{16'd31, 8'd2, 2'd1, REDUCE_NONE},
    /* 26 less */ '{16'd33, 8'd1, 2'd2, REDUCE_NONE},
    /* 27 less_equal */ '{16'd34, 8'd1, 2'd2, REDUCE_NONE},
    /* 28 equal */ '{16'd35, 8'd1, 2'd2, REDUCE_NONE},
    /* 29 not_equal */ '{16'd36, 8'd2, 2'd2, REDUCE_NONE},
    /* 30 int_less */ '{16'd38, 8'd1, 2'd2, REDUCE_NONE},
    /* 31 int_less_equal */ '{16'd39, 8'd2, 2'd2, REDUCE_NONE},
    /* 32 int_equal */ '{16'd41, 8'd1, 2'd2, REDUCE_NONE},
    /* 33 int_not_equal */ '{16'd42, 8'd2, 2'd2, REDUCE_NONE},
    /* 34 int_truth */ '{16'd44, 8'd1, 2'd1, REDUCE_NONE},
    /* 35 float_truth */ '{16'd45, 8'd2, 2'd1, REDUCE_NONE},
    /* 36 logical_not */ '{16'd47, 8'd2, 2'd1, REDUCE_NONE},
    /* 37 logical_and */ '{16'd49, 8'd3, 2'd2, REDUCE_NONE},
    /* 38 logical_or */ '{16'd52, 8'd2, 2'd2, REDUCE_NONE},
    /* 39 logical_xor */ '{16'd54, 8'd3, 2'd2, REDUCE_NONE},
    /* 40 where */ '{16'd57, 8'd1, 2'd3, REDUCE_NONE},
    /* 41 masked_fill */ '{16'd58, 8'd1, 2'd2, REDUCE_NONE},
    /* 42 axpby */ '{16'd59, 8'd2, 2'd2, REDUCE_NONE},
    /* 43 int_axpby */ '{16'd61, 8'd3, 2'd2, REDUCE_NONE},
    /* 44 sub_mul */ '{16'd64, 8'd2, 2'd3, REDUCE_NONE},
    /* 45 mul_mul */ '{16'd66, 8'd2, 2'd3, REDUCE_NONE},
    /* 46 sub_scale */ '{16'd68, 8'd2, 2'd3, REDUCE_NONE},
    /* 47 sub_sub */ '{16'd70, 8'd2, 2'd3, REDUCE_NONE},
    /* 48 add_scale */ '{16'd72, 8'd2, 2'd2, REDUCE_NONE},
    /* 49 rsqrt_affine */ '{16'd74, 8'd3, 2'd1, REDUCE_NONE},
    /* 50 reciprocal_or_zero */ '{16'd77, 8'd2, 2'd1, REDUCE_NONE},
    /* 51 int_add3 */ '{16'd79, 8'd2, 2'd3, REDUCE_NONE},
    /* 52 int_abs */ '{16'd81, 8'd2, 2'd1, REDUCE_NONE},
    /* 53 wrap_index */ '{16'd83, 8'd3, 2'd1, REDUCE_NONE},
    /* 54 bits_and */ '{16'd86, 8'd1, 2'd2, REDUCE_NONE},
    /* 55 bits_or */ '{16'd87, 8'd1, 2'd2, REDUCE_NONE},
    /* 56 bits_xor */ '{16'd88, 8'd1, 2'd2, REDUCE_NONE},
    /* 57 bits_xor_imm */ '{16'd89, 8'd1, 2'd1, REDUCE_NONE},
    /* 58 less_imm */ '{16'd90, 8'd1, 2'd1, REDUCE_NONE},
    /* 59 less_equal_imm */ '{16'd91, 8'd1, 2'd1, REDUCE_NONE},
    /* 60 greater_imm */ '{16'd92, 8'd1, 2'd1, REDUCE_NONE},
    /* 61 greater_equal_imm */ '{16'd93, 8'd1, 2'd1, REDUCE_NONE},
    /* 62 equal_imm */ '{16'd94, 8'd1, 2'd1, REDUCE_NONE},
    /* 63 not_equal_imm */ '{16'd95, 8'd2, 2'd1, REDUCE_NONE},
    /* 64 int_less_imm */ '{16'd97, 8'd1, 2'd1, REDUCE_NONE},
    /* 65 int_less_equal_imm */ '{16'd98, 8'd2, 2'd1, REDUCE_NONE},
    /* 66 int_greater_imm */ '{16'd100, 8'd1, 2'd1, REDUCE_NONE},
    /* 67 int_greater_equal_imm */ '{16'd101, 8'd2, 2'd1, REDUCE_NONE},
    /* 68 int_equal_imm */ '{16'd103, 8'd1, 2'd1, REDUCE_NONE},
    /* 69 int_not_equal_imm */ '{16'd104, 8'd2, 2'd1, REDUCE_NONE},
    /* 70 tril */ '{16'd106, 8'd2, 2'd2, REDUCE_NONE},
    /* 71 triu */ '{16'd108, 8'd2, 2'd2, REDUCE_NONE},
    /* 72 scale_causal */ '{16'd110, 8'd3, 2'd2, REDUCE_NONE},
    /* 73 scale_where */ '{16'd113, 8'd2, 2'd2, REDUCE_NONE},
    /* 74 sort_key */ '{16'd115, 8'd5, 2'd1, REDUCE_NONE},
    /* 75 rank */ '{16'd120, 8'd5, 2'd3, REDUCE_IADD},
    /* 76 match_index */ '{16'd125, 8'd6, 2'd3, REDUCE_NONE},
    /* 77 sum */ '{16'd131, 8'd1, 2'd1, REDUCE_FADD},
    /* 78 amax */ '{16'd132, 8'd1, 2'd1, REDUCE_FMAX},
    /* 79 amin */ '{16'd133, 8'd1, 2'd1, REDUCE_FMIN},
    /* 80 int_sum */ '{16'd134, 8'd1, 2'd1, REDUCE_IADD},
    /* 81 int_amax */ '{16'd135, 8'd1, 2'd1, REDUCE_IMAX},
    /* 82 int_amin */ '{16'd136, 8'd1, 2'd1, REDUCE_IMIN},
    /* 83 sum_squares */ '{16'd137, 8'd1, 2'd1, REDUCE_FADD},
    /* 84 sum_square_differences */ '{16'd138, 8'd2, 2'd2, REDUCE_FADD},
    /* 85 first_equal */ '{16'd140, 8'd4, 2'd2, REDUCE_IMIN},
    /* 86 int_first_equal */ '{16'd144, 8'd2, 2'd2, REDUCE_IMIN}
  };

  localparam int unsigned CODE_COUNT = 146;
  localparam instruction_t CODE [CODE_COUNT] = '{
    35'h010100000,
    35'h010140000,
    35'h030111410,
    35'h030101415,
    35'h030101120,
    35'h030101112,
    35'h050101100,
    35'h050101400,
    35'h050141000,
    35'h070100000,
    35'h060100000,
    35'h050210000,
    35'h190102000,
    35'h150102200,
    35'h1e0111400,
    35'h1b0100000,
    35'h1e0101400,
    35'h1b0001500,
    35'h1f0101100,
    35'h2f0100000,
    35'h330100000,
    35'h1e0131500,
    35'h1b0001400,
    35'h2e0130000,
    35'h030001514,
    35'h090101100,
    35'h0b0101100,
    35'h080101400,
    35'h0b0001500,
    35'h210101100,
    35'h230101100,
    35'h200101400,
    35'h230001500,
    35'h0d0101100,
    35'h0f0101100,
    35'h110101100,
    35'h100101100,
    35'h190002300,
    35'h250101100,
    35'h240111000,
    35'h190002300,
    35'h270101100,
    35'h260101100,
    35'h190002300,
    35'h130102324,
    35'h100102400,
    35'h190002300,
    35'h120102324,
    35'h190002300,
    35'h120102324,
    35'h121112324,
    35'h150000100,
    35'h160101100,
    35'h130002324,
    35'h120102324,
    35'h121112324,
    35'h190000100,
    35'h130101112,
    35'h130111410,
    35'h020101420,
    35'h030111500,
    35'h1e0101400,
    35'h1e1111500,
    35'h1b0000100,
    35'h180102000,
    35'h030001112,
    35'h020101120,
    35'h030001220,
    35'h020112510,
    35'h030001220,
    35'h020112510,
    35'h030122500,
    35'h020102111,
    35'h030001420,
    35'h020101415,
    35'h060000000,
    35'h050210000,
    35'h040211000,
    35'h130100024,
    35'h1a0101100,
    35'h1b0001200,
    35'h1c0241000,
    35'h210100000,
    35'h240102400,
    35'h1a1101400,
    35'h130000110,
    35'h150101100,
    35'h170101100,
    35'h190101100,
    35'h190101400,
    35'h0d0101400,
    35'h0f0101400,
    35'h0d0141000,
    35'h0f0141000,
    35'h110101400,
    35'h100101400,
    35'h190002300,
    35'h250101400,
    35'h240141000,
    35'h190002300,
    35'h250141000,
    35'h240101400,
    35'h190002300,
    35'h270101400,
    35'h260101400,
    35'h190002300,
    35'h240111300,
    35'h130002410,
    35'h240131100,
    35'h130002410,
    35'h240111300,
    35'h021101420,
    35'h130002601,
    35'h020101420,
    35'h130110026,
    35'h020102124,
    35'h2c1002700,
    35'h2a1012300,
    35'h181000100,
    35'h190011400,
    35'h240131200,
    35'h261101100,
    35'h141010000,
    35'h240101100,
    35'h170000100,
    35'h240122400,
    35'h101101000,
    35'h120001412,
    35'h120011200,
    35'h101101100,
    35'h130011400,
    35'h010100000,
    35'h010100000,
    35'h010100000,
    35'h010100000,
    35'h010100000,
    35'h010100000,
    35'h030101020,
    35'h020112510,
    35'h030000020,
    35'h100101000,
    35'h120002213,
    35'h101101100,
    35'h130011300,
    35'h260101100,
    35'h130001322
  };

  localparam int unsigned CONSTANT_COUNT = 8;
  localparam logic [31:0] CONSTANTS [CONSTANT_COUNT] = '{
    32'h80000000,
    32'h3f800000,
    32'h7fffffff,
    32'h00000001,
    32'h00000000,
    32'hbf800000,
    32'hff800000,
    32'h0000001f
  };
endpackage
