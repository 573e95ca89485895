// SPDX-License-Identifier: Apache-2.0
// Storages in device memory, and pinned host memory.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "core.h"

namespace npu {
namespace {

struct Block {
  c10::DeviceIndex device;
  unsigned generation;
  uint64_t address;
  size_t size;
  // Positions in the queue; positions begin at 1, and 0 is none.
  uint64_t born = 0;         // of the first op or store that gave it contents
  uint64_t written = 0;      // of the last op that writes to it
  uint64_t stored = 0;       // of the host's last store of all its bytes
  unsigned long thread = 0;  // that queued the first op
  std::shared_ptr<const std::string> lost = nullptr;  // why it holds nothing
};

struct DeviceUse {
  unsigned generation = 0;
  c10::CachingAllocator::Stat blocks;
  c10::CachingAllocator::Stat bytes;
  c10::CachingAllocator::Stat reserved;  // bytes, with those of released blocks
  // Blocks whose tensors are gone, by their size: the next tensors' memory.
  std::unordered_map<size_t, std::vector<uint64_t>> released;
  std::map<uint64_t, Block*> living;  // by address
  size_t lost = 0;                    // how many of them hold nothing
  uint64_t position = 1;              // of the next op or store
  uint64_t fault = 0;                 // number of the last one that the program has heard of
};

// Never destroyed: tensors may die after the static objects of this library.
struct Ledger {
  std::mutex mutex;
  std::map<c10::DeviceIndex, DeviceUse> use;
  uint64_t faults = 0;  // that the program has heard of
};
Ledger& ledger() {
  static auto* const instance = new Ledger;
  return *instance;
}

// For each device, the last fault whose consequences this thread knows.
thread_local std::array<uint64_t, 1 << kDeviceBits> t_known_faults{};

// Devices allocate in granules of 64 bytes.
size_t rounded(size_t size) { return (size + 63) / 64 * 64; }

std::optional<uint64_t> taken_from_released(DeviceUse& use, size_t size) {
  const auto found = use.released.find(size);
  if (found == use.released.end() || found->second.empty()) return std::nullopt;
  const uint64_t address = found->second.back();
  found->second.pop_back();
  return address;
}

// The living block that holds an address.
Block* block_at(const DeviceUse& use, uint64_t address) {
  const auto after = use.living.upper_bound(address);
  if (after == use.living.begin()) return nullptr;
  auto* const block = std::prev(after)->second;
  return address - block->address < block->size ? block : nullptr;
}

void forget_loss(DeviceUse& use, Block& block) {
  if (block.lost) --use.lost;
  block.lost.reset();
}

void check_not_lost(const DeviceUse& use, int device, uint64_t address) {
  if (use.lost == 0) return;
  const auto* const block = block_at(use, address);
  TORCH_CHECK(block == nullptr || !block->lost, "npu:", device, ": ", *block->lost);
}

void release(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  auto& book = ledger();
  const std::lock_guard lock(book.mutex);
  auto& use = book.use[block->device];
  if (block->generation != use.generation) return;  // the device that it lay on is gone
  forget_loss(use, *block);
  use.living.erase(block->address);
  use.released[rounded(block->size)].push_back(block->address);
  use.blocks.decrease(1);
  use.bytes.decrease(block->size);
}

struct Allocator final : c10::DeviceAllocator {
  bool initialized() override { return device_count() > 0; }
  void emptyCache(c10::MempoolId_t) override {
    for (int device = 0; device < device_count(); ++device) callbacks().free_released(device);
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    auto& book = ledger();
    const std::lock_guard lock(book.mutex);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocation[kAll] = stats.active[kAll] = book.use[device].blocks;
    stats.allocated_bytes[kAll] = stats.active_bytes[kAll] = book.use[device].bytes;
    stats.requested_bytes[kAll] = book.use[device].bytes;
    stats.reserved_bytes[kAll] = book.use[device].reserved;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    each_stat(device, [](auto& stat) { stat.reset_accumulated(); });
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    each_stat(device, [](auto& stat) { stat.reset_peak(); });
  }
  c10::DataPtr allocate(size_t size) override { return allocate_on(current_device(), size); }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // a block is no pointer
  void copy_data(void* to, const void* from, size_t size) const override {
    callbacks().copy(device_of(to), address_of(to), address_of(from), size);
  }

 private:
  template <typename Action>
  static void each_stat(c10::DeviceIndex device, Action action) {
    auto& book = ledger();
    const std::lock_guard lock(book.mutex);
    action(book.use[device].blocks);
    action(book.use[device].bytes);
    action(book.use[device].reserved);
  }
};
Allocator g_allocator;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &g_allocator)

}  // namespace

c10::DeviceAllocator* allocator() { return &g_allocator; }

c10::DataPtr allocate_on(c10::DeviceIndex device, size_t size) {
  const c10::Device where(kNpu, device);
  if (size == 0) return {nullptr, where};
  TORCH_CHECK(callbacks().allocate, "npu: the device is not started");
  auto& book = ledger();
  std::unique_lock lock(book.mutex);
  auto& use = book.use[device];
  auto address = taken_from_released(use, rounded(size));
  if (!address) {
    lock.unlock();
    address = callbacks().allocate(device, rounded(size));
    TORCH_CHECK(*address >> kAddressBits == 0, "npu: address ", *address, " has more than 48 bits");
    lock.lock();
    use.reserved.increase(static_cast<int64_t>(rounded(size)));
  }
  use.blocks.increase(1);
  use.bytes.increase(static_cast<int64_t>(size));
  auto* const block = new Block{device, use.generation, *address, size};
  use.living[*address] = block;
  return {pointer_to(device, use.generation, *address), block, &release, where};
}

void resize_storage(const c10::Storage& storage, size_t size) {
  auto* impl = storage.unsafeGetStorageImpl();
  TORCH_CHECK(impl->resizable(), "npu: this storage cannot be resized");
  auto fresh = allocate_on(storage.device().index(), size);
  const size_t kept = std::min(size, storage.nbytes());
  if (kept) {
    check_usable(storage.data());
    allocator()->copy_data(fresh.get(), storage.data(), kept);
    note_stored(fresh.get(), kept);
  }
  impl->set_data_ptr_noswap(std::move(fresh));
  impl->set_nbytes(size);
}

std::vector<uint64_t> take_released(c10::DeviceIndex device) {
  auto& book = ledger();
  const std::lock_guard lock(book.mutex);
  std::vector<uint64_t> taken;
  auto& use = book.use[device];
  for (const auto& [size, blocks] : std::exchange(use.released, {})) {
    use.reserved.decrease(static_cast<int64_t>(size * blocks.size()));
    taken.insert(taken.end(), blocks.begin(), blocks.end());
  }
  std::sort(taken.begin(), taken.end());
  return taken;
}

void forget_memory(c10::DeviceIndex device) {
  auto& book = ledger();
  const std::lock_guard lock(book.mutex);
  auto& use = book.use[device];
  use = DeviceUse{.generation = (use.generation + 1) % kGenerations,
                  .blocks = {},
                  .bytes = {},
                  .reserved = {},
                  .released = {},
                  .living = {}};
}

uint64_t note_queued(int device, c10::ArrayRef<uint64_t> used, const std::vector<uint64_t>& written,
                     unsigned long thread) {
  auto& book = ledger();
  const std::lock_guard lock(book.mutex);
  auto& use = book.use[static_cast<c10::DeviceIndex>(device)];
  if (std::exchange(t_known_faults[static_cast<size_t>(device)], use.fault) != use.fault) return 0;
  for (const uint64_t address : used) check_not_lost(use, device, address);
  const uint64_t position = use.position++;
  for (const uint64_t address : written) {
    auto* const block = block_at(use, address);
    if (block == nullptr) continue;
    if (block->born == 0) {
      block->born = position;
      block->thread = thread;
    }
    block->written = position;
  }
  return position;
}

uint64_t mark_lost(int device, const FailedOp& failed, const std::string& reason) {
  const auto shared = std::make_shared<const std::string>(reason);
  auto& book = ledger();
  const std::lock_guard lock(book.mutex);
  auto& use = book.use[static_cast<c10::DeviceIndex>(device)];
  const auto lose = [&](Block& block) {
    if (!block.lost) ++use.lost;
    block.lost = shared;
  };
  const auto is_made_since = [](const Block& block, uint64_t from) {
    return block.born >= from && block.written >= std::max(from, block.stored);
  };
  for (const auto& [address, block] : use.living) {
    const bool own = block->thread == failed.thread && is_made_since(*block, failed.begin);
    if (own || is_made_since(*block, failed.position)) lose(*block);
  }
  for (const uint64_t address : failed.written) {
    auto* const block = block_at(use, address);
    if (block == nullptr || block->stored > failed.position) continue;
    if (block->born != 0 && block->born <= failed.position) lose(*block);
  }
  use.fault = ++book.faults;
  return use.position;
}

void note_stored(const void* pointer, size_t size) {
  auto& book = ledger();
  const std::lock_guard lock(book.mutex);
  auto& use = book.use[device_of(pointer)];
  if (generation_of(pointer) != use.generation) return;
  const uint64_t position = use.position++;
  auto* const block = block_at(use, address_of(pointer));
  if (block == nullptr) return;
  if (block->born == 0) block->born = position;
  if (block->address != address_of(pointer) || size < block->size) return;
  forget_loss(use, *block);
  block->stored = position;
}

namespace {
const DeviceUse& living_use(Ledger& book, const void* pointer) {
  const auto device = device_of(pointer);
  const auto& use = book.use[device];
  TORCH_CHECK(generation_of(pointer) == use.generation, "npu:", int(device),
              ": the memory of this tensor is gone: its device was closed and opened anew");
  return use;
}
}  // namespace

void check_alive(const void* pointer) {
  if (pointer == nullptr) return;
  auto& book = ledger();
  const std::lock_guard lock(book.mutex);
  living_use(book, pointer);
}

void check_usable(const void* pointer) {
  if (pointer == nullptr) return;
  auto& book = ledger();
  const std::lock_guard lock(book.mutex);
  check_not_lost(living_use(book, pointer), device_of(pointer), address_of(pointer));
}

// ---------------------------------------------------------------------- pinned host memory
// Ordinary host memory that is remembered as pinned: a copy from it needs no other way.
namespace {

struct PinnedRanges {
  std::mutex mutex;
  std::map<const char*, size_t> sizes;
};
PinnedRanges& pinned_ranges() {
  static auto* const instance = new PinnedRanges;
  return *instance;
}

void unpin(void* pointer) {
  {
    auto& ranges = pinned_ranges();
    const std::lock_guard lock(ranges.mutex);
    ranges.sizes.erase(static_cast<const char*>(pointer));
  }
  c10::GetCPUAllocator()->raw_deallocate(pointer);
}

struct PinnedAllocator final : at::HostAllocator {
  c10::DataPtr allocate(size_t size) override {
    void* pointer = c10::GetCPUAllocator()->raw_allocate(size);
    if (pointer != nullptr) {
      auto& ranges = pinned_ranges();
      const std::lock_guard lock(ranges.mutex);
      ranges.sizes[static_cast<const char*>(pointer)] = size;
    }
    return {pointer, pointer, &unpin, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &unpin; }
  void copy_data(void* to, const void* from, size_t size) const override {
    default_copy_data(to, from, size);
  }
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};
PinnedAllocator g_pinned_allocator;
REGISTER_HOST_ALLOCATOR(c10::DeviceType::PrivateUse1, &g_pinned_allocator)

}  // namespace

c10::Allocator* pinned_allocator() { return &g_pinned_allocator; }

bool is_pinned(const void* pointer) {
  auto& ranges = pinned_ranges();
  const std::lock_guard lock(ranges.mutex);
  auto next = ranges.sizes.upper_bound(static_cast<const char*>(pointer));
  if (next == ranges.sizes.begin()) return false;
  const auto& [begin, size] = *std::prev(next);
  return static_cast<const char*>(pointer) < begin + size;
}

}  // namespace npu
