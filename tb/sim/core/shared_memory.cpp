// SPDX-License-Identifier: Apache-2.0
#include "shared_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "svdpi.h"

namespace npu_sim {
namespace {

constexpr std::uint64_t kAnonymousLogEntries = 1ULL << 16;
// Of data that an error comes with: AXI leaves them open, and zeros would look like a NOP.
constexpr int kRefusedByte = 0xA5;

std::uint64_t page_up(std::uint64_t bytes) {
  const std::uint64_t page = 1ULL << kPageShift;
  return (bytes + page - 1) & ~(page - 1);
}

SharedMemory* dram = nullptr;

}  // namespace

SharedMemory::SharedMemory(int file_descriptor) {
  struct stat info{};
  if (fstat(file_descriptor, &info) != 0 ||
      static_cast<std::uint64_t>(info.st_size) < sizeof(SharedHeader)) {
    throw std::runtime_error("shared memory: descriptor " + std::to_string(file_descriptor) +
                             " is not a memory file");
  }
  const auto bytes = static_cast<std::size_t>(info.st_size);
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_descriptor, 0);
  if (base == MAP_FAILED) throw std::runtime_error("shared memory: mmap failed");
  auto* const first = static_cast<std::uint8_t*>(base);
  header_ = static_cast<SharedHeader*>(base);
  if (header_->magic != kSharedMagic || header_->version != kSharedVersion ||
      header_->memory_offset + header_->memory_bytes > bytes) {
    throw std::runtime_error("shared memory: unknown layout or version");
  }
  dirty_ = first + header_->dirty_offset;
  log_ = reinterpret_cast<WriteRecord*>(first + header_->log_offset);
  memory_ = first + header_->memory_offset;
}

int SharedMemory::create_anonymous(std::uint64_t base, std::uint64_t bytes) {
  SharedHeader header{};
  header.magic = kSharedMagic;
  header.version = kSharedVersion;
  header.memory_base = base;
  header.memory_bytes = bytes;
  header.dirty_offset = page_up(sizeof(SharedHeader));
  header.log_offset = page_up(header.dirty_offset + (page_up(bytes) >> kPageShift));
  header.log_entries = kAnonymousLogEntries;
  header.memory_offset = page_up(header.log_offset + header.log_entries * sizeof(WriteRecord));
  const int descriptor = memfd_create("npu-sim", MFD_CLOEXEC);
  const auto total = static_cast<off_t>(header.memory_offset + page_up(bytes));
  if (descriptor < 0 || ftruncate(descriptor, total) != 0 ||
      pwrite(descriptor, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) {
    throw std::runtime_error("shared memory: cannot create a memory file");
  }
  return descriptor;
}

AxiResponse SharedMemory::check(std::uint64_t address, std::uint32_t size, bool is_write) const {
  const std::uint64_t offset = address - header_->memory_base;
  if (address < header_->memory_base || offset >= header_->memory_bytes) {
    return AxiResponse::kDecodeError;
  }
  for (std::uint32_t i = 0; i < header_->fault_count; ++i) {
    const FaultRange& fault = header_->faults[i];
    const auto response = static_cast<AxiResponse>(is_write ? fault.on_write : fault.on_read);
    if (response != AxiResponse::kOkay && address < fault.end && address + size > fault.begin) {
      return response;
    }
  }
  return AxiResponse::kOkay;
}

AxiResponse SharedMemory::read(std::uint64_t address, std::uint32_t size, std::uint32_t bus_bytes,
                               void* data) {
  const AxiResponse response = check(address & ~(std::uint64_t{size} - 1), size, false);
  if (response != AxiResponse::kOkay) {
    std::memset(data, kRefusedByte, bus_bytes);
    return response;
  }
  const std::uint64_t aligned = address & ~(std::uint64_t{bus_bytes} - 1);
  std::memcpy(data, memory_ + (aligned - header_->memory_base), bus_bytes);
  return response;
}

AxiResponse SharedMemory::write(std::uint64_t address, std::uint32_t size, std::uint32_t bus_bytes,
                                const void* data, std::uint64_t strobe) {
  const AxiResponse response = check(address & ~(std::uint64_t{size} - 1), size, true);
  if (response != AxiResponse::kOkay || strobe == 0) return response;
  const std::uint64_t aligned = address & ~(std::uint64_t{bus_bytes} - 1);
  const std::uint64_t offset = aligned - header_->memory_base;
  const auto* source = static_cast<const std::uint8_t*>(data);
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - bus_bytes);
  if (strobe == all) {
    std::memcpy(memory_ + offset, source, bus_bytes);
  } else {
    for (std::uint32_t i = 0; i < bus_bytes; ++i) {
      if ((strobe >> i) & 1) memory_[offset + i] = source[i];
    }
  }
  dirty_[offset >> kPageShift] = 1;
  log_[header_->log_count++ & (header_->log_entries - 1)] = {header_->cycle, aligned, strobe};
  return response;
}

void attach_dram(SharedMemory& memory) { dram = &memory; }

}  // namespace npu_sim

extern "C" int npu_dram_read(unsigned long long address, unsigned int size_bytes,
                             unsigned int bus_bytes, svBitVecVal* data) {
  return static_cast<int>(npu_sim::dram->read(address, size_bytes, bus_bytes, data));
}

extern "C" int npu_dram_write(unsigned long long address, unsigned int size_bytes,
                              unsigned int bus_bytes, const svBitVecVal* data,
                              const svBitVecVal* strobe) {
  std::uint64_t mask = strobe[0];
  if (bus_bytes > 32) mask |= static_cast<std::uint64_t>(strobe[1]) << 32;
  return static_cast<int>(npu_sim::dram->write(address, size_bytes, bus_bytes, data, mask));
}
