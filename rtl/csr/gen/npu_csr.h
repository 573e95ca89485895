// SPDX-License-Identifier: Apache-2.0
// Generated from rtl/csr/npu_csr.rdl by `make gen`. Do not edit.
// Register offsets for benches in C++.
#pragma once

namespace npu::csr {

inline constexpr unsigned kId = 0x000;
inline constexpr unsigned kVersion = 0x004;
inline constexpr unsigned kConfig = 0x008;
inline constexpr unsigned kProgramRam = 0x00c;
inline constexpr unsigned kCtrl = 0x010;
inline constexpr unsigned kStatus = 0x014;
inline constexpr unsigned kErrorCode = 0x018;
inline constexpr unsigned kErrorSeq = 0x01c;
inline constexpr unsigned kCycleLo = 0x020;
inline constexpr unsigned kCycleHi = 0x024;
inline constexpr unsigned kCompleted = 0x028;
inline constexpr unsigned kIrqStatus = 0x030;
inline constexpr unsigned kIrqEnable = 0x034;
inline constexpr unsigned kRingBaseLo = 0x040;
inline constexpr unsigned kRingBaseHi = 0x044;
inline constexpr unsigned kRingCtrl = 0x048;
inline constexpr unsigned kRingHead = 0x04c;
inline constexpr unsigned kRingTail = 0x050;
inline constexpr unsigned kCplBaseLo = 0x058;
inline constexpr unsigned kCplBaseHi = 0x05c;
inline constexpr unsigned kCplCtrl = 0x060;
inline constexpr unsigned kProgramDigestLo = 0x068;
inline constexpr unsigned kProgramDigestHi = 0x06c;
inline constexpr unsigned kCmdWord = 0x080;
inline constexpr unsigned kCmdPush = 0x0c0;
inline constexpr unsigned kRing1BaseLo = 0x0d0;
inline constexpr unsigned kRing1BaseHi = 0x0d4;
inline constexpr unsigned kRing1Ctrl = 0x0d8;
inline constexpr unsigned kRing1Head = 0x0dc;
inline constexpr unsigned kRing1Tail = 0x0e0;
inline constexpr unsigned kCpl1BaseLo = 0x0e4;
inline constexpr unsigned kCpl1BaseHi = 0x0e8;
inline constexpr unsigned kCpl1Ctrl = 0x0ec;
inline constexpr unsigned kCompleted1 = 0x0f0;
inline constexpr unsigned kBusyCyclesLo = 0x100;
inline constexpr unsigned kBusyCyclesHi = 0x104;
inline constexpr unsigned kActiveCyclesLo = 0x108;
inline constexpr unsigned kActiveCyclesHi = 0x10c;
inline constexpr unsigned kOperandStallLo = 0x110;
inline constexpr unsigned kOperandStallHi = 0x114;
inline constexpr unsigned kResultStallLo = 0x118;
inline constexpr unsigned kResultStallHi = 0x11c;
inline constexpr unsigned kReadBeatsLo = 0x120;
inline constexpr unsigned kReadBeatsHi = 0x124;
inline constexpr unsigned kWriteBeatsLo = 0x128;
inline constexpr unsigned kWriteBeatsHi = 0x12c;
inline constexpr unsigned kCommandsLo = 0x130;
inline constexpr unsigned kCommandsHi = 0x134;
inline constexpr unsigned kPerfCtrl = 0x138;
inline constexpr unsigned kEngineBusy = 0x140;
inline constexpr unsigned kEngineWait = 0x150;
inline constexpr unsigned kCommandWait = 0x160;

}  // namespace npu::csr
