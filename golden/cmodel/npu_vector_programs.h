// SPDX-License-Identifier: Apache-2.0
// Generated from driver/isa by `make gen`. Do not edit.
// clang-format off
#pragma once

#include <array>
#include <cstdint>

namespace npu::isa {

inline constexpr unsigned kRegisters = 16;
inline constexpr unsigned kImmediates = 4;
inline constexpr unsigned kMaxSources = 3;
inline constexpr unsigned kReductionLanes = 16;
inline constexpr unsigned kOperandSrc = 16;
inline constexpr unsigned kOperandIndex = 19;
inline constexpr unsigned kOperandImm = 20;
inline constexpr unsigned kOperandConst = 32;
inline constexpr unsigned kDstOut = 16;

enum class MicroOp : std::uint8_t {
  kMov = 0,
  kFma = 1,
  kDiv = 2,
  kSqrt = 3,
  kFmax = 4,
  kFmin = 5,
  kFlt = 6,
  kFle = 7,
  kFeq = 8,
  kSel = 9,
  kAnd = 10,
  kOr = 11,
  kXor = 12,
  kIadd = 13,
  kIsub = 14,
  kImul = 15,
  kImax = 16,
  kImin = 17,
  kIlt = 18,
  kIeq = 19,
  kShl = 20,
  kSrl = 21,
  kSra = 22,
  kI2f = 23,
  kF2i = 24,
  kF2iTrunc = 25,
};

enum class Reduce : std::uint8_t {
  kNone = 0,
  kFadd = 1,
  kFmax = 2,
  kFmin = 3,
  kIadd = 4,
  kImax = 5,
  kImin = 6,
};

struct Instruction {
  MicroOp op;
  std::uint8_t dst, a, b, c;
};

struct VectorProgram {
  const char* name;
  std::uint16_t start, length;
  std::uint8_t sources;
  Reduce reduce;
};

/// Where every lane of a reduction starts, indexed by Reduce.
inline constexpr std::array<std::uint32_t, 7> kIdentity{0x00000000, 0x80000000, 0xff800000, 0x7f800000, 0x00000000, 0x80000000, 0x7fffffff};

inline constexpr std::array<VectorProgram, 52> kPrograms{{
  {"move", 0, 1, 1, Reduce::kNone},
  {"constant", 1, 1, 0, Reduce::kNone},
  {"add", 2, 1, 2, Reduce::kNone},
  {"affine", 3, 1, 1, Reduce::kNone},
  {"mul", 4, 1, 2, Reduce::kNone},
  {"mul_add", 5, 1, 3, Reduce::kNone},
  {"div", 6, 1, 2, Reduce::kNone},
  {"div_imm", 7, 1, 1, Reduce::kNone},
  {"imm_div", 8, 1, 1, Reduce::kNone},
  {"sqrt", 9, 1, 1, Reduce::kNone},
  {"rsqrt", 10, 2, 1, Reduce::kNone},
  {"neg", 12, 1, 1, Reduce::kNone},
  {"abs", 13, 1, 1, Reduce::kNone},
  {"int_add", 14, 2, 2, Reduce::kNone},
  {"int_affine", 16, 2, 1, Reduce::kNone},
  {"int_mul", 18, 1, 2, Reduce::kNone},
  {"int_to_float", 19, 1, 1, Reduce::kNone},
  {"float_to_int", 20, 1, 1, Reduce::kNone},
  {"int_range", 21, 2, 0, Reduce::kNone},
  {"float_range", 23, 2, 0, Reduce::kNone},
  {"maximum", 25, 1, 2, Reduce::kNone},
  {"minimum", 26, 1, 2, Reduce::kNone},
  {"clamp", 27, 2, 1, Reduce::kNone},
  {"int_maximum", 29, 1, 2, Reduce::kNone},
  {"int_minimum", 30, 1, 2, Reduce::kNone},
  {"int_clamp", 31, 2, 1, Reduce::kNone},
  {"less", 33, 1, 2, Reduce::kNone},
  {"less_equal", 34, 1, 2, Reduce::kNone},
  {"equal", 35, 1, 2, Reduce::kNone},
  {"not_equal", 36, 2, 2, Reduce::kNone},
  {"int_less", 38, 1, 2, Reduce::kNone},
  {"int_less_equal", 39, 2, 2, Reduce::kNone},
  {"int_equal", 41, 1, 2, Reduce::kNone},
  {"int_not_equal", 42, 2, 2, Reduce::kNone},
  {"int_truth", 44, 1, 1, Reduce::kNone},
  {"float_truth", 45, 2, 1, Reduce::kNone},
  {"logical_not", 47, 2, 1, Reduce::kNone},
  {"logical_and", 49, 3, 2, Reduce::kNone},
  {"logical_or", 52, 2, 2, Reduce::kNone},
  {"logical_xor", 54, 3, 2, Reduce::kNone},
  {"where", 57, 1, 3, Reduce::kNone},
  {"masked_fill", 58, 1, 2, Reduce::kNone},
  {"sum", 59, 1, 1, Reduce::kFadd},
  {"amax", 60, 1, 1, Reduce::kFmax},
  {"amin", 61, 1, 1, Reduce::kFmin},
  {"int_sum", 62, 1, 1, Reduce::kIadd},
  {"int_amax", 63, 1, 1, Reduce::kImax},
  {"int_amin", 64, 1, 1, Reduce::kImin},
  {"sum_squares", 65, 1, 1, Reduce::kFadd},
  {"sum_square_differences", 66, 2, 2, Reduce::kFadd},
  {"first_equal", 68, 4, 2, Reduce::kImin},
  {"int_first_equal", 72, 2, 2, Reduce::kImin},
}};

inline constexpr std::array<Instruction, 74> kCode{{
  {MicroOp(0), 16, 16, 0, 0},
  {MicroOp(0), 16, 20, 0, 0},
  {MicroOp(1), 16, 17, 20, 16},
  {MicroOp(1), 16, 16, 20, 21},
  {MicroOp(1), 16, 16, 17, 32},
  {MicroOp(1), 16, 16, 17, 18},
  {MicroOp(2), 16, 16, 17, 0},
  {MicroOp(2), 16, 16, 20, 0},
  {MicroOp(2), 16, 20, 16, 0},
  {MicroOp(3), 16, 16, 0, 0},
  {MicroOp(3), 0, 16, 0, 0},
  {MicroOp(2), 16, 33, 0, 0},
  {MicroOp(12), 16, 16, 32, 0},
  {MicroOp(10), 16, 16, 34, 0},
  {MicroOp(15), 0, 17, 20, 0},
  {MicroOp(13), 16, 16, 0, 0},
  {MicroOp(15), 0, 16, 20, 0},
  {MicroOp(13), 16, 0, 21, 0},
  {MicroOp(15), 16, 16, 17, 0},
  {MicroOp(23), 16, 16, 0, 0},
  {MicroOp(25), 16, 16, 0, 0},
  {MicroOp(15), 0, 19, 21, 0},
  {MicroOp(13), 16, 0, 20, 0},
  {MicroOp(23), 0, 19, 0, 0},
  {MicroOp(1), 16, 0, 21, 20},
  {MicroOp(4), 16, 16, 17, 0},
  {MicroOp(5), 16, 16, 17, 0},
  {MicroOp(4), 0, 16, 20, 0},
  {MicroOp(5), 16, 0, 21, 0},
  {MicroOp(16), 16, 16, 17, 0},
  {MicroOp(17), 16, 16, 17, 0},
  {MicroOp(16), 0, 16, 20, 0},
  {MicroOp(17), 16, 0, 21, 0},
  {MicroOp(6), 16, 16, 17, 0},
  {MicroOp(7), 16, 16, 17, 0},
  {MicroOp(8), 16, 16, 17, 0},
  {MicroOp(8), 0, 16, 17, 0},
  {MicroOp(12), 16, 0, 35, 0},
  {MicroOp(18), 16, 16, 17, 0},
  {MicroOp(18), 0, 17, 16, 0},
  {MicroOp(12), 16, 0, 35, 0},
  {MicroOp(19), 16, 16, 17, 0},
  {MicroOp(19), 0, 16, 17, 0},
  {MicroOp(12), 16, 0, 35, 0},
  {MicroOp(9), 16, 16, 35, 36},
  {MicroOp(8), 0, 16, 36, 0},
  {MicroOp(12), 16, 0, 35, 0},
  {MicroOp(9), 0, 16, 35, 36},
  {MicroOp(12), 16, 0, 35, 0},
  {MicroOp(9), 0, 16, 35, 36},
  {MicroOp(9), 1, 17, 35, 36},
  {MicroOp(10), 16, 0, 1, 0},
  {MicroOp(11), 0, 16, 17, 0},
  {MicroOp(9), 16, 0, 35, 36},
  {MicroOp(9), 0, 16, 35, 36},
  {MicroOp(9), 1, 17, 35, 36},
  {MicroOp(12), 16, 0, 1, 0},
  {MicroOp(9), 16, 16, 17, 18},
  {MicroOp(9), 16, 17, 20, 16},
  {MicroOp(0), 16, 16, 0, 0},
  {MicroOp(0), 16, 16, 0, 0},
  {MicroOp(0), 16, 16, 0, 0},
  {MicroOp(0), 16, 16, 0, 0},
  {MicroOp(0), 16, 16, 0, 0},
  {MicroOp(0), 16, 16, 0, 0},
  {MicroOp(1), 16, 16, 16, 32},
  {MicroOp(1), 0, 17, 37, 16},
  {MicroOp(1), 16, 0, 0, 32},
  {MicroOp(8), 0, 16, 16, 0},
  {MicroOp(9), 0, 0, 34, 19},
  {MicroOp(8), 1, 16, 17, 0},
  {MicroOp(9), 16, 1, 19, 0},
  {MicroOp(19), 0, 16, 17, 0},
  {MicroOp(9), 16, 0, 19, 34},
}};

inline constexpr std::array<std::uint32_t, 6> kConstants{{
  0x80000000,
  0x3f800000,
  0x7fffffff,
  0x00000001,
  0x00000000,
  0xbf800000,
}};

}  // namespace npu::isa
