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

/// Where every lane of a reduction starts, indexed by Reduce.
inline constexpr std::array<std::uint32_t, 7> kIdentity{0x00000000, 0x80000000, 0xff800000, 0x7f800000, 0x00000000, 0x80000000, 0x7fffffff};

}  // namespace npu::isa
