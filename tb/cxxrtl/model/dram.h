// SPDX-License-Identifier: Apache-2.0
// The timing of tb/hdl/npu_dram.sv in C++: the same answers in the same cycles, written from its
// description. The data is the shared memory's.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <utility>

// The shared memory, as tb/hdl/npu_dram.sv calls it: an AXI response code (tb/sim/core).
extern "C" int npu_dram_read(unsigned long long address, unsigned int size_bytes,
                             unsigned int bus_bytes, std::uint32_t* data);
extern "C" int npu_dram_write(unsigned long long address, unsigned int size_bytes,
                              unsigned int bus_bytes, const std::uint32_t* data,
                              const std::uint32_t* strobe);

namespace npu_sim {

struct DramSettings {
  std::uint16_t latency = 1;
  std::uint8_t stall = 0;
  std::uint32_t seed = 0;
};

// An accepted address of m_axi.
struct DramBurst {
  std::uint8_t id = 0;
  std::uint64_t address = 0;
  std::uint8_t length = 0;
  std::uint8_t size = 0;
  std::uint8_t kind = 0;
};

// What the device drives, before an edge of the clock.
template <unsigned BusBits>
struct DramInputs {
  bool reset = false;
  bool ar_valid = false;
  DramBurst ar;
  bool r_ready = false;
  bool aw_valid = false;
  DramBurst aw;
  bool w_valid = false;
  std::array<std::uint32_t, BusBits / 32> w_data{};
  std::array<std::uint32_t, 2> w_strobe{};
  bool b_ready = false;
};

template <unsigned BusBits>
class Dram {
 public:
  DramSettings settings;

  bool ar_ready() const { return reads_.size() < kReadDepth && !held(kAr); }
  bool aw_ready() const { return writes_.size() < kWriteDepth && !held(kAw); }
  bool w_ready() const { return !writes_.empty() && answers_.size() < kWriteDepth && !held(kW); }

  bool r_valid = false;
  std::uint8_t r_id = 0;
  std::array<std::uint32_t, BusBits / 32> r_data{};
  std::uint8_t r_response = 0;
  bool r_last = false;
  bool b_valid = false;
  std::uint8_t b_id = 0;
  std::uint8_t b_response = 0;

  // One rising edge of the clock.
  void edge(const DramInputs<BusBits>& in) {
    if (in.reset) return reset();
    // All conditions are those before the edge.
    const bool take_ar = in.ar_valid && ar_ready();
    const bool take_aw = in.aw_valid && aw_ready();
    const bool take_w = in.w_valid && w_ready();
    const bool load_r =
        !reads_.empty() && !held(kR) && (!r_valid || in.r_ready) && due(reads_.front().due);
    const bool load_b =
        !answers_.empty() && !held(kB) && (!b_valid || in.b_ready) && due(answers_.front().due);
    if (held(kR)) overtake(reads_, random_ >> 13 & 7);
    if (held(kB)) overtake(answers_, random_ >> 8 & 3);
    if (load_r) {
      offer_read();
    } else if (in.r_ready) {
      r_valid = false;
    }
    if (load_b) {
      b_valid = true;
      b_id = answers_.front().id;
      b_response = answers_.front().response;
      answers_.pop_front();
    } else if (in.b_ready) {
      b_valid = false;
    }
    if (take_w) take_write(in);
    if (take_ar) reads_.push_back({in.ar.id, in.ar, now_ + settings.latency - 1});
    if (take_aw) writes_.push_back(in.aw);
    if (settings.stall != 0) {
      if (now_ % kPauseCycles == 0) pause_ = random_ >> 28;
      random_ = xorshift(random_);
    }
    ++now_;
  }

 private:
  static constexpr std::size_t kReadDepth = 256;
  static constexpr std::size_t kWriteDepth = 64;
  static constexpr std::uint32_t kWriteLatency = 8;
  static constexpr std::uint32_t kBusBytes = BusBits / 8;
  static constexpr std::uint32_t kPauseCycles = 512;

  // A channel: its number, and the place of its draw in the random number.
  struct Channel {
    std::uint32_t number;
    unsigned shift;
  };
  static constexpr Channel kAr{0, 0}, kR{1, 5}, kAw{2, 11}, kW{3, 17}, kB{4, 24};
  static constexpr std::uint32_t kNoChannel = 15;

  struct Read {
    std::uint8_t id;
    DramBurst burst;  // `address`: of the next beat
    std::uint32_t due;
    unsigned beat = 0;
  };
  struct Answer {
    std::uint8_t id;
    std::uint8_t response;
    std::uint32_t due;
  };

  static std::uint32_t xorshift(std::uint32_t x) {
    const std::uint32_t a = x ^ (x << 13);
    const std::uint32_t b = a ^ (a >> 17);
    return b ^ (b << 5);
  }

  static std::uint64_t next_address(std::uint64_t address, const DramBurst& burst) {
    const std::uint64_t step = std::uint64_t{1} << burst.size;
    const std::uint64_t incremented = (address & ~(step - 1)) + step;
    const std::uint64_t container = (std::uint64_t{burst.length} + 1) << burst.size;
    switch (burst.kind) {
      case 0:
        return address;
      case 2:
        return (address & ~(container - 1)) | (incremented & (container - 1));
      default:
        return incremented;
    }
  }

  // Whether a channel holds back in this cycle: `stall` chances out of 256, or it is the one that
  // pauses.
  bool held(const Channel& channel) const {
    if (settings.stall == 0) return false;
    return pause_ == channel.number ||
           static_cast<std::uint8_t>(random_ >> channel.shift) < settings.stall;
  }
  bool due(std::uint32_t when) const { return static_cast<std::int32_t>(now_ - when) >= 0; }

  void reset() {
    now_ = 0;
    random_ = (settings.seed + 1) * 0x9E3779B1U;
    if (random_ == 0) random_ = 1;
    pause_ = kNoChannel;
    reads_.clear();
    writes_.clear();
    answers_.clear();
    w_beat_ = 0;
    w_response_ = 0;
    r_valid = b_valid = false;
  }

  void offer_read() {
    auto& [id, burst, due, beat] = reads_.front();
    r_response = static_cast<std::uint8_t>(
        npu_dram_read(burst.address, 1U << burst.size, kBusBytes, r_data.data()));
    r_id = id;
    r_last = beat++ == burst.length;
    r_valid = true;
    burst.address = next_address(burst.address, burst);
    if (r_last) reads_.pop_front();
  }

  // An entry and the next one change places if their ids differ.
  template <typename Entry>
  static void overtake(std::deque<Entry>& queue, std::size_t at) {
    if (at + 1 < queue.size() && queue[at].id != queue[at + 1].id) {
      std::swap(queue[at], queue[at + 1]);
    }
  }

  void take_write(const DramInputs<BusBits>& in) {
    const DramBurst& burst = writes_.front();
    if (w_beat_ == 0) w_address_ = burst.address;
    const auto response = static_cast<std::uint8_t>(npu_dram_write(
        w_address_, 1U << burst.size, kBusBytes, in.w_data.data(), in.w_strobe.data()));
    w_response_ = std::max(w_response_, response);
    w_address_ = next_address(w_address_, burst);
    if (w_beat_++ == burst.length) {
      answers_.push_back({burst.id, w_response_, now_ + kWriteLatency - 1});
      writes_.pop_front();
      w_beat_ = 0;
      w_response_ = 0;
    }
  }

  std::uint32_t now_ = 0;
  std::uint32_t random_ = 0;
  std::uint32_t pause_ = kNoChannel;
  std::deque<Read> reads_;
  std::deque<DramBurst> writes_;
  std::deque<Answer> answers_;
  unsigned w_beat_ = 0;
  std::uint64_t w_address_ = 0;
  std::uint8_t w_response_ = 0;
};

}  // namespace npu_sim
