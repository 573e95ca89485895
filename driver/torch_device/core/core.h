// SPDX-License-Identifier: Apache-2.0
// The parts of device "npu" that torch wants in C++: storages, guard, hooks, generators, and the
// kernels that compute nothing. Knows no op, no packet and no memory contents.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/core/Storage.h>
#include <c10/util/ArrayRef.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace npu {

inline constexpr auto kNpu = c10::DeviceType::PrivateUse1;

// The device's cycle counter at some place in its queue; negative until that is reached.
struct Mark {
  std::atomic<double> cycles = -1;
};

// What Python does for the core. Each takes the number of the device first; sizes in bytes. They
// may be called by any thread, and throw what Python raised.
struct Callbacks {
  // The address of so many fresh bytes of device memory.
  std::function<uint64_t(int, size_t)> allocate;
  // Frees the memory of tensors that are gone.
  std::function<void(int)> free_released;
  // Copies bytes (to, from, size) within the memory of one device.
  std::function<void(int, uint64_t, uint64_t, size_t)> copy;
  // Hands the batch of commands over, and gives the next one so many bytes for contents.
  std::function<void(int, size_t)> submit;
  // Waits until all that was queued has run.
  std::function<void(int)> wait;
  // Whether all of it has.
  std::function<bool(int)> is_idle;
  // Throws what went wrong so far, if anything did.
  std::function<void(int)> raise_fault;
  // Waits likewise, and throws a fault that another thread was told of, if this thread's ops did
  // not run because of it.
  std::function<void(int)> hear;
  // Has the device note its cycle counter once all that was queued before has run.
  std::function<void(int, std::shared_ptr<Mark>)> record;
};

// Makes the device known to torch. No device is opened before the first allocation.
void start(int device_count, Callbacks callbacks);

// Calls `view` with the sizes of a tensor and of the view that is made of it, from now on; an empty
// function ends that.
using Sizes = std::vector<int64_t>;
void watch_views(std::function<void(const Sizes&, const Sizes&)> view);
int device_count();
const Callbacks& callbacks();

// A storage's pointer holds in its upper 16 bits how often the device was opened anew and the
// device's number + 1, and the address in device memory below: address 0 is no null pointer, and
// storages of two devices are never the same.
inline constexpr int kAddressBits = 48;
inline constexpr int kDeviceBits = 5;
inline constexpr unsigned kGenerations = 1 << (15 - kDeviceBits);  // pointers are not negative
inline uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer) & ((uint64_t{1} << kAddressBits) - 1);
}
inline c10::DeviceIndex device_of(const void* pointer) {
  const uint64_t above = reinterpret_cast<uint64_t>(pointer) >> kAddressBits;
  return static_cast<c10::DeviceIndex>((above & ((1 << kDeviceBits) - 1)) - 1);
}
inline unsigned generation_of(const void* pointer) {
  return static_cast<unsigned>(reinterpret_cast<uint64_t>(pointer) >> (kAddressBits + kDeviceBits));
}
inline void* pointer_to(c10::DeviceIndex device, unsigned generation, uint64_t address) {
  const uint64_t above = uint64_t{generation} << kDeviceBits | uint64_t(device + 1);
  return reinterpret_cast<void*>(above << kAddressBits | address);
}
// Throws for a pointer into memory that its device had before it was opened anew.
void check_alive(const void* pointer);
// Likewise, and for one into memory that is lost.
void check_usable(const void* pointer);

// A device runs ops, and the host stores into its memory, in the order of their positions.
//
// Notes that a thread queues an op on the memory at these addresses, some of which it writes to:
// its position. Throws for memory that is lost: another thread may have heard of a fault just now.
// 0, once for each such fault: nothing is noted, the thread has to hear of it first.
uint64_t note_queued(int device, c10::ArrayRef<uint64_t> used, const std::vector<uint64_t>& written,
                     unsigned long thread);
// Notes that the host has stored so many bytes, each of them.
void note_stored(const void* pointer, size_t size);

// An op that failed. All that was queued behind it did not run.
struct FailedOp {
  uint64_t begin;  // position of the first op of the call of torch that it is a part of
  uint64_t position;
  unsigned long thread;
  std::vector<uint64_t> written;
};
// Marks memory as lost: what the failed op writes to, and what has its contents by it, by the ops
// of its call before it, or by ops behind it. Its use throws `reason`, until the host has stored
// all its bytes. The position from which on ops run again.
uint64_t mark_lost(int device, const FailedOp& failed, const std::string& reason);

c10::DeviceAllocator* allocator();
c10::DataPtr allocate_on(c10::DeviceIndex device, size_t size);
// Replaces the storage's memory by one of `size` bytes that begins with the same bytes.
void resize_storage(const c10::Storage& storage, size_t size);
// A deleter runs in any thread, inside kernels and after Python has ended: it only takes a note.
// Blocks whose tensors are gone are given to the next tensors of their size. This takes those that
// are left, for Python to free.
std::vector<uint64_t> take_released(c10::DeviceIndex device);
// The device's memory is gone; all tensors in it are dead.
void forget_memory(c10::DeviceIndex device);

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
  // The number of the next stream if it is one of this seed; else none is taken.
  std::optional<uint64_t> next_number(uint64_t seed);

 private:
  Generator* clone_impl() const override;
  uint64_t seed_;
  uint64_t next_op_ = 0;
};

}  // namespace npu
