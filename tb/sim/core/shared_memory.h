// SPDX-License-Identifier: Apache-2.0
// The file that simulator and Python share: header, dirty pages, write log, device memory.
//
// Python creates and sizes it (driver/backend/shared_memory.py, the same layout) and hands over an
// open descriptor, so that nothing is left behind when either side dies. Nothing here takes a lock:
// Python looks at it between two requests, or from inside the simulation, never during a run.
#pragma once

#include <cstdint>
#include <string>

namespace npu_sim {

inline constexpr std::uint64_t kSharedMagic = 0x4D49534D4855504EULL;  // "NPUHMSIM"
inline constexpr std::uint32_t kSharedVersion = 2;
inline constexpr unsigned kPageShift = 12;
inline constexpr unsigned kFaultSlots = 16;

enum class AxiResponse : std::uint8_t { kOkay = 0, kSlaveError = 2, kDecodeError = 3 };

// Accesses that touch [begin, end) are answered with the AxiResponse that on_read or on_write
// holds; kOkay leaves them alone.
struct FaultRange {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint32_t on_read;
  std::uint32_t on_write;
};

struct SharedHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t fault_count;
  std::uint64_t memory_base;  // device address of the window's first byte
  std::uint64_t memory_bytes;
  std::uint64_t dirty_offset;  // file offsets
  std::uint64_t log_offset;
  std::uint64_t log_entries;  // a power of two
  std::uint64_t memory_offset;
  std::uint64_t cycle;      // rising clock edges since the process started
  std::uint64_t log_count;  // write beats ever logged; the ring holds the last log_entries
  FaultRange faults[kFaultSlots];
};

// One accepted write beat; bit i of strobe is the byte at address + i.
struct WriteRecord {
  std::uint64_t cycle;
  std::uint64_t address;  // aligned to the bus
  std::uint64_t strobe;
};

class SharedMemory {
 public:
  // Maps the file. Throws std::runtime_error when it is not ours.
  explicit SharedMemory(int file_descriptor);
  // An anonymous one, for a simulation that is not shared.
  static int create_anonymous(std::uint64_t base, std::uint64_t bytes);

  SharedHeader& header() { return *header_; }
  std::uint8_t* memory() { return memory_; }

  AxiResponse read(std::uint64_t address, std::uint32_t size, std::uint32_t bus_bytes, void* data);
  AxiResponse write(std::uint64_t address, std::uint32_t size, std::uint32_t bus_bytes,
                    const void* data, std::uint64_t strobe);

 private:
  AxiResponse check(std::uint64_t address, std::uint32_t size, bool is_write) const;

  SharedHeader* header_;
  std::uint8_t* dirty_;
  WriteRecord* log_;
  std::uint8_t* memory_;
};

// Connects the DPI functions of tb/hdl/npu_dram.sv; must outlive the model.
void attach_dram(SharedMemory& memory);

}  // namespace npu_sim
