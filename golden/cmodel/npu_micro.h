// SPDX-License-Identifier: Apache-2.0
// Generated from driver/isa by `make gen`. Do not edit.
// clang-format off
#pragma once

#include <array>
#include <cstdint>

namespace npu::isa {

inline constexpr unsigned kRegisters = 16;
inline constexpr unsigned kImmediates = 6;
inline constexpr unsigned kMaxSources = 4;
inline constexpr unsigned kReductionLanes = 16;
inline constexpr unsigned kOperandSrc = 16;
inline constexpr unsigned kOperandIndex = 20;
inline constexpr unsigned kOperandImm = 24;
inline constexpr unsigned kOperandConst = 64;
inline constexpr unsigned kDstResult = 16;
inline constexpr unsigned kPlainImmediates = 4;
inline constexpr unsigned kPlainSources = 3;
inline constexpr unsigned kMaxResults = 3;
inline constexpr unsigned kMaxInstructions = 255;
inline constexpr unsigned kMaxConstants = 64;
inline constexpr unsigned kLineWords = 8;
inline constexpr unsigned kProgramMagic = 20566;
inline constexpr unsigned kProgramMaxLines = 36;
inline constexpr unsigned kProgramRam = 1024;
inline constexpr unsigned kProgramRamLines = 512;
inline constexpr unsigned kBootLines = 556;

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
  kRoundFp16 = 26,
  kRoundBf16 = 27,
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

/// Operands that an instruction has, indexed by MicroOp.
inline constexpr std::array<unsigned, 28> kMicroOperands{1, 3, 2, 1, 2, 2, 2, 2, 2, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1};

/// Where every lane of a reduction starts, indexed by Reduce.
inline constexpr std::array<std::uint32_t, 7> kIdentity{0x00000000, 0x80000000, 0xff800000, 0x7f800000, 0x00000000, 0x80000000, 0x7fffffff};

}  // namespace npu::isa
