// SPDX-License-Identifier: Apache-2.0
// Random engines on the plain client ports, each with its own scoreboard.
#pragma once

#include <deque>

#include "world.hpp"

struct Range {
  uint64_t addr, bytes;
  uint64_t first_line() const { return addr / kBusBytes; }
  uint64_t last_line() const { return (addr + bytes - 1) / kBusBytes; }
};

inline Range random_range(Random& random, uint64_t base, uint64_t end) {
  const uint64_t bytes = random.size(65536);
  return {base + random.below(end - base - bytes + 1), bytes};
}

// Whole pages, so that no request of a stream is split.
constexpr uint64_t kStreamBase = kConstEnd - 0x80000, kStreamBytes = 0x80000;

// Pins of read client `index` + 1.
class ReadClient : public Model {
 public:
  ReadClient(unsigned index, Memory& memory, Random& random)
      : index_(index), memory_(memory), random_(random) {}
  uint64_t requests = 0, beats = 0, bytes_compared = 0;
  unsigned stall_percent = 0;
  uint64_t to_issue = 0;
  // Non-zero: requests of this many bytes at consecutive addresses instead of random ones.
  uint64_t stream_bytes = 0;

  void drive(Vbench& top) override {
    if (!offered_ && to_issue != 0 && !stall()) {
      next_ = stream_bytes
                  ? Range{kStreamBase + requests * stream_bytes % kStreamBytes, stream_bytes}
                  : random_range(random_, kConstBase, kConstEnd);
      offered_ = true;
    }
    set(top.rd_req_valid, offered_);
    set(top.rd_rsp_ready, !stall());
    (index_ ? top.rd_req_addr1 : top.rd_req_addr0) = next_.addr;
    (index_ ? top.rd_req_bytes1 : top.rd_req_bytes0) = static_cast<uint32_t>(next_.bytes);
  }

  void sample(Vbench& top, uint64_t) override {
    if (offered_ && get(top.rd_req_ready)) {
      open_.push_back(next_);
      offered_ = false;
      --to_issue;
      ++requests;
    }
    if (!get(top.rd_rsp_valid) || !get(top.rd_rsp_ready)) return;
    check(!open_.empty(), "read client %u: data without a request", index_);
    const uint64_t line = open_.front().first_line() + line_++, addr = line * kBusBytes;
    const bool bad = memory_.bad_at(addr);
    check(bool(top.rd_rsp_err) == bad, "read client %u: err %d at %llx", index_, top.rd_rsp_err,
          (unsigned long long)addr);
    check(to_beat(top.rd_rsp_data) == memory_.line(addr), "read client %u: wrong beat at %llx",
          index_, (unsigned long long)addr);
    ++beats;
    bytes_compared += kBusBytes;
    if (line == open_.front().last_line()) {
      open_.pop_front();
      line_ = 0;
    }
  }

  bool idle() const override { return to_issue == 0 && !offered_ && open_.empty(); }

 private:
  bool stall() { return stall_percent != 0 && random_.chance(stall_percent); }
  template <typename Pins>
  void set(Pins& pins, bool value) {
    pins = static_cast<Pins>((pins & ~(1u << index_)) | unsigned(value) << index_);
  }
  template <typename Pins>
  bool get(Pins pins) const {
    return pins >> index_ & 1;
  }

  unsigned index_;
  Memory& memory_;
  Random& random_;
  std::deque<Range> open_;
  Range next_{kConstBase, 1};
  bool offered_ = false;
  uint64_t line_ = 0;
};

// Pins of write client 1. Data runs ahead of, with, or behind its request.
class WriteClient : public Model {
 public:
  WriteClient(Memory& memory, Random& random) : memory_(memory), random_(random) {}
  uint64_t requests = 0, beats = 0, acknowledged = 0;
  unsigned stall_percent = 0;
  uint64_t to_issue = 0;

  void drive(Vbench& top) override {
    if (to_issue != 0 && requests_.size() < 4 && !stall()) invent();
    if (!request_held_) request_held_ = !requests_.empty() && !stall();
    if (!data_held_) data_held_ = !data_.empty() && !stall();
    top.wr_req_valid = request_held_;
    top.wr_data_valid = data_held_;
    if (request_held_) {
      top.wr_req_addr = requests_.front().addr;
      top.wr_req_bytes = static_cast<uint32_t>(requests_.front().bytes);
    }
    if (data_held_) {
      from_beat(top.wr_data, data_.front().data);
      top.wr_strb = data_.front().strobes;
    }
  }

  void sample(Vbench& top, uint64_t) override {
    if (request_held_ && top.wr_req_ready) {
      open_.push_back(requests_.front());
      requests_.pop_front();
      request_held_ = false;
      ++requests;
    }
    if (data_held_ && top.wr_data_ready) {
      data_.pop_front();
      data_held_ = false;
      ++beats;
    }
    if (!top.wr_rsp_valid) return;
    check(!open_.empty(), "write client: response without a request");
    const Range range = open_.front();
    const bool bad = memory_.bad_within(range.addr, range.addr + range.bytes - 1);
    check(bool(top.wr_rsp_err) == bad, "write client: err %d at %llx", top.wr_rsp_err,
          (unsigned long long)range.addr);
    open_.pop_front();
    ++acknowledged;
  }

  bool idle() const override {
    return to_issue == 0 && requests_.empty() && open_.empty() && data_.empty();
  }

 private:
  struct DataBeat {
    Beat data;
    uint64_t strobes;
  };
  bool stall() { return stall_percent != 0 && random_.chance(stall_percent); }

  void invent() {
    const Range range = random_range(random_, kClientBase, kClientEnd);
    requests_.push_back(range);
    --to_issue;
    for (uint64_t line = range.first_line(); line <= range.last_line(); ++line) {
      DataBeat beat{random_.beat(), 0};
      for (unsigned lane = 0; lane < kBusBytes; ++lane) {
        const uint64_t addr = line * kBusBytes + lane;
        if (addr < range.addr || addr >= range.addr + range.bytes || random_.chance(10)) continue;
        beat.strobes |= uint64_t(1) << lane;
        memory_.want(addr) = beat.data[lane];
      }
      data_.push_back(beat);
    }
  }

  Memory& memory_;
  Random& random_;
  std::deque<Range> requests_, open_;
  std::deque<DataBeat> data_;
  bool request_held_ = false, data_held_ = false;
};
