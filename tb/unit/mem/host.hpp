// SPDX-License-Identifier: Apache-2.0
// A host on the s_axi port: legal and illegal bursts of every type and size, checked per id.
#pragma once

#include "axi_slave.hpp"

// Whether the port must pass the burst on, written from the AXI specification: look at every
// byte.
inline bool host_legal(const AxiBurst& burst) {
  const uint64_t bytes = 1u << burst.size;
  if (burst.burst == 3 || bytes > kBusBytes) return false;
  if (burst.burst == 0 && burst.len > 15) return false;
  if (burst.burst == 2) {
    const unsigned beats = burst.len + 1;
    if (beats != 2 && beats != 4 && beats != 8 && beats != 16) return false;
    if (burst.addr % bytes != 0) return false;
  }
  const uint64_t page = burst.addr / kPage;
  for (unsigned beat = 0; beat <= burst.len; ++beat) {
    const uint64_t low = burst.beat_addr(beat) / bytes * bytes;
    if (low / kPage != page || !Memory::inside(low) || !Memory::inside(low + bytes - 1))
      return false;
  }
  return true;
}

class Host : public Model {
 public:
  Host(Memory& memory, Random& random) : memory_(memory), random_(random) {}
  uint64_t reads = 0, writes = 0, refused = 0, bytes_compared = 0;
  unsigned stall_percent = 0;
  uint64_t to_read = 0, to_write = 0;
  // A stuck host: gives addresses but no data; takes no data and no responses.
  bool gives = true, takes = true;
  bool legal_only = false;

  void drive(Vbench& top) override {
    if (!ar_held_ && to_read != 0 && !stall()) {
      ar_ = invent(kConstBase, kConstEnd);
      ar_held_ = true;
    }
    if (to_write != 0 && aw_.size() < 3 && !stall()) invent_write();
    if (!aw_held_) aw_held_ = !aw_.empty() && !stall();
    if (!w_held_) w_held_ = !w_.empty() && gives && !stall();
    top.s_arvalid = ar_held_;
    top.s_arid = ar_.id, top.s_araddr = ar_.addr, top.s_arlen = ar_.len;
    top.s_arsize = ar_.size, top.s_arburst = ar_.burst;
    top.s_awvalid = aw_held_;
    if (aw_held_) {
      const AxiBurst& aw = aw_.front();
      top.s_awid = aw.id, top.s_awaddr = aw.addr, top.s_awlen = aw.len;
      top.s_awsize = aw.size, top.s_awburst = aw.burst;
    }
    top.s_wvalid = w_held_;
    if (w_held_) {
      from_beat(top.s_wdata, w_.front().data);
      top.s_wstrb = w_.front().strobes;
      top.s_wlast = w_.front().last;
    }
    top.s_rready = takes && !stall();
    top.s_bready = takes && !stall();
  }

  void sample(Vbench& top, uint64_t) override {
    stable(top);
    if (top.s_arvalid && top.s_arready) {
      open_reads_[ar_.id].push_back(ar_);
      ar_held_ = false;
      --to_read;
      ++reads;
    }
    if (top.s_awvalid && top.s_awready) {
      open_writes_[aw_.front().id].push_back(aw_.front());
      aw_.pop_front();
      aw_held_ = false;
      ++writes;
    }
    if (top.s_wvalid && top.s_wready) {
      w_.pop_front();
      w_held_ = false;
    }
    if (top.s_rvalid && top.s_rready) took_read(top);
    if (top.s_bvalid && top.s_bready) took_ack(top);
  }

  bool idle() const override {
    for (unsigned id = 0; id < 16; ++id)
      if (!open_reads_[id].empty() || !open_writes_[id].empty()) return false;
    return to_read == 0 && to_write == 0 && !ar_held_ && aw_.empty() && w_.empty();
  }

 private:
  struct WriteBeat {
    Beat data;
    uint64_t strobes;
    bool last;
  };
  bool stall() { return stall_percent != 0 && random_.chance(stall_percent); }

  AxiBurst invent(uint64_t base, uint64_t end) {
    AxiBurst burst = any_burst(base, end);
    while (legal_only && !host_legal(burst)) burst = any_burst(base, end);
    return burst;
  }

  AxiBurst any_burst(uint64_t base, uint64_t end) {
    AxiBurst burst{};
    burst.id = static_cast<unsigned>(random_.below(16));
    burst.size = random_.chance(50) ? __builtin_ctz(kBusBytes) : unsigned(random_.below(8));
    burst.burst = random_.chance(70) ? 1 : unsigned(random_.below(4));
    burst.len = unsigned(random_.chance(70) ? random_.below(18) : random_.below(256));
    if (burst.burst == 2 && random_.chance(80)) burst.len = (1u << random_.below(7)) - 1;
    burst.addr = base + random_.below(end - base);
    // Half of the bursts start on a page, so that long ones are legal; some leave the memory.
    if (random_.chance(50)) burst.addr = burst.addr / kPage * kPage;
    if (random_.chance(10)) burst.addr = kMemLimit - 64 + random_.below(128);
    if (random_.chance(5)) burst.addr = kMemBase - 64 + random_.below(128);
    if (random_.chance(3)) burst.addr = random_.engine();
    if (burst.burst == 2 && random_.chance(80)) burst.addr = burst.addr >> burst.size << burst.size;
    if (random_.chance(10)) ends_with_its_page(burst);
    return burst;
  }

  // Or a byte or a beat later.
  void ends_with_its_page(AxiBurst& burst) {
    if (random_.chance(50)) burst.size = 0;
    const uint64_t late = random_.below(2) << burst.size;
    burst.addr = (burst.addr / kPage + 1) * kPage - (uint64_t(burst.len + 1) << burst.size) + late;
  }

  // Every id writes its own part of the host's region, because writes of different ids may
  // overtake.
  void invent_write() {
    AxiBurst burst = invent(kHostBase, kHostEnd);
    const uint64_t part = (kHostEnd - kHostBase) / 16;
    if (host_legal(burst)) {
      burst.addr = kHostBase + burst.id * part + burst.addr % part;
      if (!host_legal(burst)) fail("bench: moving a burst made it illegal");
    }
    const bool legal = host_legal(burst);
    --to_write;
    for (unsigned beat = 0; beat <= burst.len; ++beat) {
      WriteBeat data{random_.beat(), 0, beat == burst.len};
      const uint64_t bytes = 1u << burst.size, addr = burst.beat_addr(beat);
      const uint64_t end = addr / bytes * bytes + bytes;
      for (uint64_t at = addr; at < end; ++at) {
        if (random_.chance(10)) continue;
        data.strobes |= uint64_t(1) << (at % kBusBytes);
        if (legal) memory_.want(at) = data.data[at % kBusBytes];
      }
      w_.push_back(data);
    }
    aw_.push_back(burst);
  }

  void took_read(Vbench& top) {
    auto& open = open_reads_[top.s_rid];
    check(!open.empty(), "host: data for id %u without a burst", top.s_rid);
    const AxiBurst& burst = open.front();
    unsigned& beat = beat_[top.s_rid];
    const bool legal = host_legal(burst);
    const uint64_t addr = burst.beat_addr(beat), bytes = 1u << burst.size;
    const unsigned resp = !legal ? 3 : memory_.response_at(addr);
    check(top.s_rresp == resp, "host: rresp %u for %llx, expected %u", top.s_rresp,
          (unsigned long long)addr, resp);
    check(top.s_rlast == (beat == burst.len), "host: rlast in beat %u of %u", beat, burst.len + 1);
    if (legal) {
      const Beat got = to_beat(top.s_rdata), want = memory_.line(addr);
      for (uint64_t at = addr; at < addr / bytes * bytes + bytes; ++at, ++bytes_compared)
        check(got[at % kBusBytes] == want[at % kBusBytes], "host: wrong byte at %llx",
              (unsigned long long)at);
    }
    if (beat++ == burst.len) {
      refused += !legal;
      beat = 0;
      open.pop_front();
    }
  }

  void took_ack(Vbench& top) {
    auto& open = open_writes_[top.s_bid];
    check(!open.empty(), "host: response for id %u without a burst", top.s_bid);
    const bool legal = host_legal(open.front());
    const unsigned resp = !legal ? 3 : burst_response(memory_, open.front());
    check(top.s_bresp == resp, "host: bresp %u for %llx, expected %u", top.s_bresp,
          (unsigned long long)open.front().addr, resp);
    refused += !legal;
    open.pop_front();
  }

  void stable(Vbench& top) {
    if (r_waiting_)
      check(top.s_rvalid && top.s_rid == r_id_ && to_beat(top.s_rdata) == r_data_ &&
                top.s_rlast == r_last_ && top.s_rresp == r_resp_,
            "host: R changed before ready");
    if (b_waiting_)
      check(top.s_bvalid && top.s_bid == b_id_ && top.s_bresp == b_resp_,
            "host: B changed before ready");
    r_waiting_ = top.s_rvalid && !top.s_rready;
    b_waiting_ = top.s_bvalid && !top.s_bready;
    r_id_ = top.s_rid, r_data_ = to_beat(top.s_rdata), r_last_ = top.s_rlast, b_id_ = top.s_bid;
    r_resp_ = top.s_rresp, b_resp_ = top.s_bresp;
  }

  Memory& memory_;
  Random& random_;
  AxiBurst ar_{};
  std::deque<AxiBurst> aw_;
  std::deque<WriteBeat> w_;
  std::deque<AxiBurst> open_reads_[16], open_writes_[16];
  unsigned beat_[16] = {};
  bool ar_held_ = false, aw_held_ = false, w_held_ = false;
  bool r_waiting_ = false, b_waiting_ = false, r_last_ = false;
  unsigned r_id_ = 0, b_id_ = 0, r_resp_ = 0, b_resp_ = 0;
  Beat r_data_;
};
