// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace npu {

namespace {

constexpr std::uint64_t kWordBits = 64;

/// Last byte of a range, held at the top of the address space instead of wrapping.
Address last_byte(Address address, std::uint64_t size) {
  const Address last = address + (size - 1);
  return last < address ? ~Address{0} : last;
}

}  // namespace

Memory::Memory(std::span<std::byte> bytes, Address base, Address limit)
    : bytes_(bytes), base_(base), limit_(limit) {
  if (limit <= base || limit - base > bytes.size()) {
    throw std::invalid_argument(
        "memory: need mem_base < mem_limit <= mem_base + size of the array");
  }
  const std::uint64_t pages = (limit - base + kPageBytes - 1) / kPageBytes;
  dirty_.resize((pages + kWordBits - 1) / kWordBits);
}

void Memory::poison(Address address, std::uint64_t size, bool read, bool write) {
  if (size == 0) throw std::invalid_argument("poison: size must be at least 1");
  poison_.push_back({address, last_byte(address, size), read, write});
}

bool Memory::read_fails(Address address, std::uint64_t size) const {
  return std::ranges::any_of(poison_, [=](const Poison& p) {
    return p.read && p.first <= last_byte(address, size) && address <= p.last;
  });
}

bool Memory::write_fails(Address address, std::uint64_t size) const {
  return std::ranges::any_of(poison_, [=](const Poison& p) {
    return p.write && p.first <= last_byte(address, size) && address <= p.last;
  });
}

void Memory::mark_written(Address address, std::uint64_t size) {
  const std::uint64_t first = (address - base_) / kPageBytes;
  const std::uint64_t last = (address - base_ + size - 1) / kPageBytes;
  for (std::uint64_t page = first; page <= last; ++page) {
    dirty_[page / kWordBits] |= std::uint64_t{1} << (page % kWordBits);
  }
}

std::vector<Address> Memory::dirty_pages() const {
  std::vector<Address> pages;
  for (std::size_t word = 0; word < dirty_.size(); ++word) {
    for (std::uint64_t bits = dirty_[word]; bits != 0; bits &= bits - 1) {
      const auto page = word * kWordBits + static_cast<unsigned>(std::countr_zero(bits));
      pages.push_back(base_ + page * kPageBytes);
    }
  }
  return pages;
}

void Memory::clear_dirty() { std::ranges::fill(dirty_, 0); }

}  // namespace npu
