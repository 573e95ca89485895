// SPDX-License-Identifier: Apache-2.0
/// Device memory as the model sees it: bytes between MemBase and MemLimit, injected bus errors, and
/// a record of the pages that commands wrote. Knows nothing of packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace npu {

using Address = std::uint64_t;

class Memory {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;

  /// `bytes[0]` is the byte at `base`; [base, limit) is what commands may touch.
  /// Throws std::invalid_argument when `bytes` is shorter than that, or the range is empty.
  Memory(std::span<std::byte> bytes, Address base, Address limit);

  /// True when first..last (inclusive) lies in [base, limit).
  [[nodiscard]] bool contains(Address first, Address last) const {
    return first <= last && first >= base_ && last < limit_;
  }
  /// The host byte behind an address that `contains` accepts.
  [[nodiscard]] std::byte* at(Address address) const { return bytes_.data() + (address - base_); }

  /// Accesses that touch any byte of [address, address + size) fail from now on.
  void poison(Address address, std::uint64_t size, bool read, bool write);
  void clear_poison() { poison_.clear(); }
  [[nodiscard]] bool has_poison() const { return !poison_.empty(); }
  [[nodiscard]] bool read_fails(Address address, std::uint64_t size) const;
  [[nodiscard]] bool write_fails(Address address, std::uint64_t size) const;

  void mark_written(Address address, std::uint64_t size);
  /// Addresses of the written pages, ascending. Pages are counted from `base`.
  [[nodiscard]] std::vector<Address> dirty_pages() const;
  void clear_dirty();

 private:
  struct Poison {
    Address first;
    Address last;  // inclusive
    bool read;
    bool write;
  };

  std::span<std::byte> bytes_;
  Address base_;
  Address limit_;
  std::vector<Poison> poison_;
  std::vector<std::uint64_t> dirty_;  // one bit per page
};

}  // namespace npu
