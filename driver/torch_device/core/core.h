// SPDX-License-Identifier: Apache-2.0
// The parts of device "npu" that torch wants in C++: storages, guard, hooks, generators, and the
// kernels that compute nothing. Knows no op, no packet and no memory contents.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace npu {

inline constexpr auto kNpu = c10::DeviceType::PrivateUse1;

// What Python does for the core. Each takes the number of the device first; sizes in bytes. They
// may be called by any thread, and throw what Python raised.
struct Callbacks {
  // The address of so many fresh bytes of device memory.
  std::function<uint64_t(int, size_t)> allocate;
  // Copies bytes (to, from, size) within the memory of one device.
  std::function<void(int, uint64_t, uint64_t, size_t)> copy;
  // The device's cycle counter.
  std::function<double(int)> cycles;
};

// Makes the device known to torch. No device is opened before the first allocation.
void start(int device_count, Callbacks callbacks);
int device_count();
const Callbacks& callbacks();

// A storage's pointer holds the device's number + 1 in its upper 16 bits and the address in device
// memory below: address 0 is no null pointer, and storages of two devices are never the same.
inline constexpr int kAddressBits = 48;
inline uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer) & ((uint64_t{1} << kAddressBits) - 1);
}
inline c10::DeviceIndex device_of(const void* pointer) {
  return static_cast<c10::DeviceIndex>((reinterpret_cast<uint64_t>(pointer) >> kAddressBits) - 1);
}

c10::DeviceAllocator* allocator();
c10::DataPtr allocate_on(c10::DeviceIndex device, size_t size);
// Replaces the storage's memory by one of `size` bytes that begins with the same bytes.
void resize_storage(const c10::Storage& storage, size_t size);
// Blocks (device, address) whose tensors are gone. A deleter runs in any thread, inside kernels and
// after Python has ended: it only takes a note, and Python frees the blocks when it allocates.
std::vector<std::pair<int, uint64_t>> take_released();

c10::Allocator* pinned_allocator();
bool is_pinned(const void* pointer);

c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex device);

// A key and a counter, as docs/numerics.md draws random numbers: the state is 16 bytes, the seed
// and the number of the next random op, both little endian.
struct Generator final : c10::GeneratorImpl {
  explicit Generator(c10::DeviceIndex index);
  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override { next_op_ = offset; }
  uint64_t get_offset() const override { return next_op_; }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  // The stream of one op: (seed, number). The next call gives the next number.
  std::pair<uint64_t, uint64_t> next_stream();

 private:
  Generator* clone_impl() const override;
  uint64_t seed_;
  uint64_t next_op_ = 0;
};

}  // namespace npu
