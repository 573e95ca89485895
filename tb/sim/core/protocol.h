// SPDX-License-Identifier: Apache-2.0
// The socket protocol, little endian, one request answered by one reply of the same 48-byte head.
// driver/backend/simulator.py is its other end.
#pragma once

#include <array>
#include <cstdint>

namespace npu_sim {

inline constexpr std::uint32_t kProtocolMagic = 0x5355504E;  // "NPUS"
inline constexpr std::uint16_t kProtocolVersion = 2;
inline constexpr std::uint32_t kMaxPayload = 4096;

// Arguments in order; every verb replies with {result…} in `values`.
enum class Verb : std::uint16_t {
  kHello = 0,     // -> protocol version, process id, cycle
  kCsrRead = 1,   // offset, cycle limit -> data, AXI response
  kCsrWrite = 2,  // offset, data, cycle limit -> 0, AXI response
  kRun = 3,       // cycle limit, wall-clock limit in ms, stop on irq (0 or 1), quiet limit or 0
                  // -> cycles run, StopReason, irq, CPU time in ns
  kReset = 4,     // cycles of reset -> cycle
  kSet = 5,       // Setting, value
  kWaves = 6,     // first cycle, first cycle after, payload: path, empty closes
  kQuit = 7,
  kPorts = 8,  // -> tb_top's waiting, open_reads, open_writes; cycle of the last transfer
};

enum class Setting : std::uint64_t { kLatency = 0, kStall = 1, kSeed = 2 };

// kQuiet: for as many cycles as the quiet limit says, or up to 1023 more, no channel of any port
// has transferred anything.
enum class StopReason : std::uint64_t { kIrq = 0, kCycles = 1, kWallClock = 2, kQuiet = 3 };

enum class Status : std::uint16_t {
  kOk = 0,
  kBadRequest = 1,  // payload: what was wrong
  kCsrTimeout = 2,  // no answer on the AXI4-Lite port within the cycle limit
  kFinished = 3,    // the design called $finish
};

struct MessageHead {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t code;  // Verb in a request, Status in a reply
  std::uint32_t payload_bytes;
  std::uint32_t reserved;
  std::array<std::uint64_t, 4> values;
};
static_assert(sizeof(MessageHead) == 48);

}  // namespace npu_sim
