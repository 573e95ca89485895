// SPDX-License-Identifier: Apache-2.0
// Random descriptors of tensors and windows in the bench's memory, and how they go wrong.
#pragma once

#include <bit>

#include "device.hpp"
#include "random_windows.hpp"

// What lies where in the bench's memory.
constexpr uint64_t kRing = kMemBase;
constexpr uint64_t kRecords = kMemBase + 0x2000;
constexpr uint64_t kDescriptors = kMemBase + 0x4000;
constexpr uint64_t kData = kMemBase + 0x10000;

class DescriptorMaker {
 public:
  DescriptorMaker(Memory& memory, Random& random) : memory_(memory), random_(random) {}

  // Makes one word of the last descriptor wrong.
  void spoil_descriptor() {
    if (last_descriptor_ == 0) return;
    auto window = memory_.get<Window>(last_descriptor_);
    if (window.rank == kWindowRank && random_.chance(90)) {
      spoil(window, random_, kMemLimit);
      memory_.put(last_descriptor_, window);
      return;
    }
    auto desc = memory_.get<Descriptor>(last_descriptor_);
    const unsigned dim = unsigned(random_.below(kMaxRank));
    switch (random_.below(11)) {
      case 0:
        desc.reserved = random_.engine() >> random_.below(64);
        break;
      case 1:
        desc.rank = uint32_t(random_.chance(50) ? random_.below(8) : random_.engine());
        break;
      case 2:
        desc.dtype ^= 1u << random_.below(32);
        break;
      case 3:
        desc.size[dim] = uint32_t(random_.below(3));
        break;
      case 4:
        desc.stride[dim] = uint32_t(random_.below(2));
        break;
      case 5:
        desc.size[dim] = desc.stride[dim] = UINT32_MAX;
        break;
      case 6:
        desc.base += random_.between(1, 4);
        break;
      case 7:
        wrap_around(desc);
        break;
      case 8:
        add_dimension(desc);
        break;
      case 9:
        desc.base = kMemLimit - 4 * random_.between(0, 64);
        break;
      default:
        desc.base = ~0ull - 4 * random_.below(64) + 1;
        break;
    }
    memory_.put(last_descriptor_, desc);
  }

 protected:
  uint32_t size(uint32_t limit) { return uint32_t(random_.between(1, limit)); }
  uint64_t data(uint32_t dtype) {
    return kData + random_.below(0x80000) / kDTypeBytes[dtype] * kDTypeBytes[dtype];
  }

  // A descriptor of `sizes` in memory, mostly dense; a destination has no stride of 0.
  uint64_t describe(uint32_t dtype, const std::vector<uint32_t>& sizes, bool is_dst) {
    Descriptor desc{};
    desc.base = data(dtype);
    desc.dtype = dtype;
    desc.rank = uint32_t(sizes.size());
    uint32_t step = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
      desc.size[i] = sizes[i];
      desc.stride[i] = random_.chance(70) ? step : uint32_t(random_.below(100)) + is_dst;
      step *= sizes[i];
    }
    const uint64_t slot = kDescriptors + kLineBytes * (slot_++ % kSlots);
    memory_.bad_lines.erase(slot / kLineBytes);
    memory_.put(slot, desc);
    // One of the packet's descriptors is the one with the fault.
    if (last_descriptor_ == 0 || random_.chance(60)) last_descriptor_ = slot;
    return slot;
  }
  uint64_t operand(Packet& p, uint32_t desc_flag, uint32_t dtype,
                   const std::vector<uint32_t>& sizes) {
    if (random_.chance(50)) return data(dtype);
    p.flags |= desc_flag;
    return describe(dtype, sizes, desc_flag == kDstDescMask);
  }

  // Direct, a descriptor, or a window where a transposed flag does not forbid it; now and then one
  // where it does.
  uint64_t matrix(Packet& p, uint32_t desc_flag, uint32_t dtype, const std::vector<uint32_t>& sizes,
                  bool may_be_window) {
    if (!random_.chance(may_be_window ? 40 : 3)) return operand(p, desc_flag, dtype, sizes);
    p.flags |= desc_flag;
    return describe_window(dtype, sizes, desc_flag == kDstDescMask);
  }

  uint64_t describe_window(uint32_t dtype, const std::vector<uint32_t>& sizes, bool is_dst) {
    Window window = random_window(random_, dtype, sizes, is_dst);
    window.base = data(dtype);
    if (random_.chance(3)) {  // only its first line lies in memory
      const uint64_t last = kMemLimit - kLineBytes;
      memory_.bad_lines.erase(last / kLineBytes);
      memory_.put(last, std::bit_cast<std::array<Descriptor, 2>>(window)[0]);
      return last;
    }
    if (slot_ % 128 == 127) ++slot_;  // two lines that follow each other
    const uint64_t slot = kDescriptors + kLineBytes * (slot_++ % 128);
    ++slot_;
    memory_.bad_lines.erase(slot / kLineBytes);
    memory_.bad_lines.erase(slot / kLineBytes + 1);
    memory_.put(slot, window);
    if (last_descriptor_ == 0 || random_.chance(60)) last_descriptor_ = slot;
    return slot;
  }

  std::vector<uint32_t> sizes() {
    std::vector<uint32_t> all(random_.between(1, kMaxRank));
    for (auto& one : all) one = size(6);
    return all;
  }

  static constexpr uint64_t kSlots = 128;  // of descriptors

  Memory& memory_;
  Random& random_;
  uint64_t slot_ = 0, last_descriptor_ = 0;

 private:
  // The same tensor with one dimension more, of size 1: another shape to the contract.
  static void add_dimension(Descriptor& desc) {
    if (desc.rank >= kMaxRank) return;
    for (unsigned i = desc.rank++; i > 0; --i) {
      desc.size[i] = desc.size[i - 1];
      desc.stride[i] = desc.stride[i - 1];
    }
    desc.size[0] = desc.stride[0] = 1;
  }

  // The last byte is a multiple of 2^64 bytes beyond the first, for 1, 2 or 4 dimensions.
  void wrap_around(Descriptor& desc) {
    desc.rank = 1u << random_.below(3);
    desc.size = desc.stride = {};
    for (unsigned i = 0; i < desc.rank; ++i) {
      desc.size[i] = 0x80000001;
      desc.stride[i] = 0x80000000;
    }
  }
};
