// SPDX-License-Identifier: Apache-2.0
// DRAM behind the m_axi port: random stalls and latency, out of order between ids, interleaved
// data, SLVERR on bad lines; checks the rules of the protocol on everything it receives.
#pragma once

#include <algorithm>
#include <deque>

#include "world.hpp"

enum AxiChannel { kAr, kAw, kW, kR, kB, kAxiChannels };

struct SlaveShape {
  Stalls<kAxiChannels> stalls;  // ready low, valid late
  unsigned latency_min = 100, latency_max = 100;
  bool reorder = false;
  bool single_port = false;  // serves one burst at a time, and takes data behind its address only
};

struct AxiBurst {
  unsigned id, len, size, burst;
  uint64_t addr;
  uint64_t beat_addr(unsigned beat) const {
    const uint64_t bytes = 1u << size, span = (len + 1) * bytes;
    if (burst == 0 || beat == 0) return addr;
    const uint64_t linear = addr / bytes * bytes + beat * bytes;
    if (burst == 1) return linear;
    const uint64_t low = addr / span * span;
    return low + (linear - low) % span;
  }
};

// How a write is answered: as its first bad line says.
inline unsigned burst_response(const Memory& memory, const AxiBurst& burst) {
  for (unsigned beat = 0; beat <= burst.len; ++beat)
    if (memory.bad_at(burst.beat_addr(beat))) return memory.response_at(burst.beat_addr(beat));
  return 0;
}

class AxiSlave : public Model {
 public:
  AxiSlave(Memory& memory, Random& random) : memory_(memory), random_(random) {}
  SlaveShape shape;
  uint64_t read_beats = 0, write_beats = 0, read_bursts = 0, write_bursts = 0;
  uint64_t first_read = 0, last_read = 0, most_reads = 0, most_writes = 0;
  uint64_t last_transfer = 0;  // cycle, on any channel

  void drive(Vbench& top) override {
    const bool free = !shape.single_port || idle(), write_turn = shape.single_port && now_ % 2;
    top.m_arready = free && !stall(kAr) && !write_turn;
    top.m_awready = free && !stall(kAw) && (!shape.single_port || write_turn);
    top.m_wready = !stall(kW) && (!shape.single_port || !addresses_.empty());
    if (!r_held_) r_held_ = !stall(kR) && choose(reads_, r_choice_);
    top.m_rvalid = r_held_;
    if (r_held_) {
      const auto& read = reads_[r_choice_];
      const uint64_t addr = read.burst.beat_addr(read.beat);
      from_beat(top.m_rdata, memory_.line(addr));
      top.m_rid = read.burst.id;
      top.m_rresp = memory_.response_at(addr);
      top.m_rlast = read.beat == read.burst.len;
    }
    if (!b_held_) b_held_ = !stall(kB) && choose(acks_, b_choice_);
    top.m_bvalid = b_held_;
    if (b_held_) {
      top.m_bid = acks_[b_choice_].burst.id;
      top.m_bresp = acks_[b_choice_].response;
    }
  }

  void sample(Vbench& top, uint64_t cycle) override {
    now_ = cycle;
    const AxiBurst ar{top.m_arid, top.m_arlen, top.m_arsize, top.m_arburst, top.m_araddr};
    const AxiBurst aw{top.m_awid, top.m_awlen, top.m_awsize, top.m_awburst, top.m_awaddr};
    ar_stable_.see(top.m_arvalid, top.m_arready, ar, "AR");
    aw_stable_.see(top.m_awvalid, top.m_awready, aw, "AW");
    w_stable(top);
    if ((top.m_arvalid && top.m_arready) || (top.m_awvalid && top.m_awready) ||
        (top.m_wvalid && top.m_wready) || (top.m_rvalid && top.m_rready) ||
        (top.m_bvalid && top.m_bready))
      last_transfer = cycle;
    if (top.m_arvalid && top.m_arready) {
      legal(ar, "AR");
      reads_.push_back({ar, 0, due(), 0});
      if (reads_.size() > most_reads) most_reads = reads_.size();
      ++read_bursts;
    }
    if (top.m_awvalid && top.m_awready) {
      legal(aw, "AW");
      addresses_.push_back(aw);
      most_writes = std::max<uint64_t>(most_writes, addresses_.size() + acks_.size());
      ++write_bursts;
    }
    if (top.m_wvalid && top.m_wready) {
      data_.push_back({to_beat(top.m_wdata), uint64_t(top.m_wstrb), bool(top.m_wlast)});
      ++write_beats;
    }
    match_writes();
    if (top.m_rvalid && top.m_rready) took_read(cycle);
    if (top.m_bvalid && top.m_bready) {
      acks_.erase(acks_.begin() + static_cast<long>(b_choice_));
      b_held_ = false;
    }
    check(top.rd_beat == (top.m_rvalid && top.m_rready), "rd_beat_o does not count R");
    check(top.wr_beat == (top.m_wvalid && top.m_wready), "wr_beat_o does not count W");
  }

  // Bursts of a read client, or of a write client, that are not answered yet.
  uint64_t unanswered_reads(unsigned client) const {
    return uint64_t(std::count_if(reads_.begin(), reads_.end(), [client](const Pending& entry) {
      return entry.burst.id >> 4 == client;
    }));
  }
  uint64_t unanswered_writes(unsigned client) const {
    const auto own = [client](const AxiBurst& burst) { return burst.id >> 4 == client; };
    const auto open = [&](const Pending& entry) { return own(entry.burst); };
    return uint64_t(std::count_if(acks_.begin(), acks_.end(), open) +
                    std::count_if(addresses_.begin(), addresses_.end(), own));
  }

  bool idle() const override {
    return reads_.empty() && acks_.empty() && addresses_.empty() && data_.empty();
  }

 private:
  struct Pending {
    AxiBurst burst;
    unsigned beat;
    uint64_t due;
    unsigned response;
  };
  struct WriteBeat {
    Beat data;
    uint64_t strobes;
    bool last;
  };
  // Payload must not change between valid and ready, and valid must not fall.
  struct Stability {
    bool waiting = false;
    AxiBurst before{};
    void see(bool valid, bool ready, const AxiBurst& now, const char* channel) {
      if (waiting) {
        check(valid, "%s: valid fell before ready", channel);
        check(now.id == before.id && now.len == before.len && now.size == before.size &&
                  now.burst == before.burst && now.addr == before.addr,
              "%s: payload changed before ready", channel);
      }
      waiting = valid && !ready;
      before = now;
    }
  };

  bool stall(AxiChannel channel) {
    const unsigned percent = shape.stalls.percent[channel];
    return percent != 0 && random_.chance(percent);
  }
  uint64_t due() { return now_ + random_.between(shape.latency_min, shape.latency_max); }

  // The oldest entry of a random id whose time has come; entries of one id keep their order.
  bool choose(const std::deque<Pending>& queue, size_t& choice) {
    uint32_t seen[8] = {};
    std::vector<size_t> ready;
    for (size_t i = 0; i < queue.size(); ++i) {
      const unsigned id = queue[i].burst.id;
      if (seen[id / 32] >> (id % 32) & 1) continue;
      seen[id / 32] |= 1u << (id % 32);
      if (queue[i].due <= now_ + 1) ready.push_back(i);
      if (!shape.reorder) break;
    }
    if (ready.empty()) return false;
    choice = ready[shape.reorder ? random_.below(ready.size()) : 0];
    return true;
  }

  void legal(const AxiBurst& burst, const char* channel) {
    const uint64_t bytes = 1u << burst.size;
    uint64_t low = ~uint64_t(0), high = 0;
    for (unsigned beat = 0; beat <= burst.len; ++beat) {
      const uint64_t addr = burst.beat_addr(beat);
      low = std::min(low, addr);
      high = std::max(high, addr / bytes * bytes + bytes - 1);
    }
    const auto at = (unsigned long long)burst.addr;
    check(low / kPage == high / kPage, "%s: burst at %llx crosses a page", channel, at);
    check(Memory::inside(low) && Memory::inside(high), "%s: burst at %llx out of range", channel,
          at);
    check(bytes <= kBusBytes, "%s: size %u", channel, burst.size);
    if (burst.id >> 4 != 0xf)
      check(
          burst.burst == 1 && bytes == kBusBytes && burst.addr % kBusBytes == 0 && !(burst.id & 15),
          "%s: engine burst at %llx is not whole beats", channel, at);
  }

  void w_stable(Vbench& top) {
    const WriteBeat now{to_beat(top.m_wdata), uint64_t(top.m_wstrb), bool(top.m_wlast)};
    if (w_waiting_)
      check(top.m_wvalid && now.data == w_before_.data && now.strobes == w_before_.strobes &&
                now.last == w_before_.last,
            "W: changed before ready");
    w_waiting_ = top.m_wvalid && !top.m_wready;
    w_before_ = now;
  }

  void took_read(uint64_t cycle) {
    if (read_beats++ == 0) first_read = cycle;
    last_read = cycle;
    r_held_ = false;
    if (reads_[r_choice_].beat++ == reads_[r_choice_].burst.len)
      reads_.erase(reads_.begin() + static_cast<long>(r_choice_));
  }

  void match_writes() {
    while (!addresses_.empty() && !data_.empty()) {
      const AxiBurst& burst = addresses_.front();
      const WriteBeat& beat = data_.front();
      const uint64_t addr = burst.beat_addr(beat_);
      check(beat.last == (beat_ == burst.len), "WLAST wrong in beat %u of %u", beat_,
            burst.len + 1);
      for (unsigned lane = 0; lane < kBusBytes; ++lane)
        if (beat.strobes >> lane & 1)
          memory_.at(addr / kBusBytes * kBusBytes + lane) = beat.data[lane];
      if (beat.last) {
        acks_.push_back({burst, 0, due(), burst_response(memory_, burst)});
        addresses_.pop_front();
      }
      beat_ = beat.last ? 0 : beat_ + 1;
      data_.pop_front();
    }
  }

  Memory& memory_;
  Random& random_;
  std::deque<Pending> reads_, acks_;
  std::deque<AxiBurst> addresses_;
  std::deque<WriteBeat> data_;
  Stability ar_stable_, aw_stable_;
  WriteBeat w_before_{};
  bool w_waiting_ = false, r_held_ = false, b_held_ = false;
  size_t r_choice_ = 0, b_choice_ = 0;
  unsigned beat_ = 0;
  uint64_t now_ = 0;
};
