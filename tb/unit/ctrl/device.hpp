// SPDX-License-Identifier: Apache-2.0
// npu_ctrl with everything around it: AXI4-Lite host, memory behind the two client ports, the
// engines. Latencies and ready signals are random; what the engines are given is kept for the test
// to compare.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "answer.hpp"
#include "common.hpp"
#include "dispatch.hpp"
#include "program_table.hpp"
#include "registers.hpp"

using namespace npu::isa;

enum Stalling { kReadRequest, kReadData, kWriteRequest, kWriteData, kEngine, kStalling };
constexpr unsigned kStallPercents[] = {0, 25, 50, 75};

class Device {
 public:
  explicit Device(uint64_t seed) : random(seed), host_(seed ^ 0x5A5A) {
    top.clk_i = top.rst_ni = top.changed_i = top.info_changed_i = top.age_i = 0;
    top.eval();  // the first: runs what is initial
    take_info(0);
    top.s_axil_awvalid_i = top.s_axil_wvalid_i = top.s_axil_bready_i = 0;
    top.s_axil_arvalid_i = top.s_axil_rready_i = 0;
    for (uint64_t i = 0; i < kResetCycles; ++i) tick();
    top.rst_ni = 1;
    tick();
  }

  Vbench top;
  Random random;
  Memory memory;
  uint64_t cycle = 0;
  Stalls<kStalling> stalls{{20, 20, 20, 20, 20}};
  unsigned latency = 30, fixed_latency = 0;
  std::vector<Dispatch> dispatched;
  size_t failing_dispatch = SIZE_MAX;  // the engine answers this one with engine_error
  size_t failing_too = SIZE_MAX;       // and this one
  uint32_t engine_error = 0;
  size_t slow_dispatch = SIZE_MAX;  // this one runs for kSlowCycles
  size_t slow_too = SIZE_MAX;       // and this one
  static constexpr uint64_t kSlowCycles = 8000;
  uint64_t read_delay = 0;
  uint64_t engine_latency = 0;          // least cycles that a command runs
  uint64_t end_at_multiples_of = 0;     // of this many cycles, if not 0, commands end
  std::map<size_t, uint64_t> ended_at;  // cycle in which the engine of each dispatch was done
  uint64_t lines_read = 0;
  uint64_t soft_resets = 0;
  uint64_t irq_falls = 0;       // how often the interrupt's pin fell
  bool host_is_prompt = false;  // the register port's host never hesitates
  bool all_events = false;      // each event in each cycle of a command
  std::vector<Events> events;   // of each dispatched command, in the cycles that its engine ran
  Events total;                 // of all of them
  unsigned most_running = 0;    // channels at a time
  // Called with the number of a dispatch that starts, and those that run, itself included.
  std::function<void(size_t, const std::vector<size_t>&)> on_start;
  // Called with the address of each line that is read.
  std::function<void(uint64_t)> on_read;

  void tick() {
    top.clk_i = 0;
    drive_reads();
    drive_writes();
    drive_engines();
    take_inputs();
    // The directory of programs answers in the same cycle.
    const uint32_t info = program_info_bits(programs().find(top.program_line_o));
    if (info != top.program_info_i) take_info(info);
    if (top.rst_ni) {
      sample_reads();
      sample_writes();
      sample_engines();
      count_events();
      if (top.soft_rst_o) quiet_at_reset();
    }
    const bool irq = top.irq_o;
    top.clk_i = 1;
    top.eval();
    irq_falls += irq && !top.irq_o;
    ++cycle;
  }

  // The number of this cycle in the device, which counts from its reset.
  uint64_t device_cycle() const { return cycle - kResetCycles + age_; }

  // An idle device has completed so many commands in each queue, and its counters are there.
  void grow_old(uint32_t commands, uint64_t count) {
    top.age_commands_i = commands;
    top.age_count_i = count;
    top.clk_i = 0;
    top.age_i = 1;
    top.eval();
    top.age_i = 0;
    top.eval();
    age_ += count - device_cycle();
    total = {count, count, count, count, count};
  }

  // Ticks until it is so.
  template <typename Condition>
  void until(const char* what, Condition&& so) {
    for (const uint64_t start = cycle; !so(); tick()) in_time(start, what);
  }

  // A failure when that takes for ever.
  void in_time(uint64_t start, const char* what) {
    constexpr uint64_t kForEver = 1'000'000;
    check(cycle - start < kForEver, "%s: not within %u cycles", what, unsigned(kForEver));
  }

  // Write of the bytes that are enabled; returns the AXI response. Address and data come apart now
  // and then, and the response is taken late.
  unsigned write(uint32_t offset, uint32_t value, unsigned strobes = 0xF) {
    top.s_axil_awaddr_i = offset;
    top.s_axil_wdata_i = value;
    top.s_axil_wstrb_i = strobes;
    const uint64_t start = cycle, address_at = start + hesitation(), data_at = start + hesitation();
    bool address = false, data = false;
    Answer answer{hesitation()};
    while (!answer.taken) {
      top.s_axil_awvalid_i = !address && cycle >= address_at;
      top.s_axil_wvalid_i = !data && cycle >= data_at;
      top.s_axil_bready_i = answer.may_take();
      top.clk_i = 0;
      take_inputs();
      address |= top.s_axil_awvalid_i && top.s_axil_awready_o;
      data |= top.s_axil_wvalid_i && top.s_axil_wready_o;
      answer.sample(top.s_axil_bvalid_o, top.s_axil_bready_i, top.s_axil_bresp_o, 0);
      tick();
      in_time(start, "a register is written");
    }
    top.s_axil_awvalid_i = top.s_axil_wvalid_i = top.s_axil_bready_i = 0;
    return answer.response;
  }

  // 32-bit read; the AXI response is left in `response`.
  uint32_t read(uint32_t offset, unsigned* response = nullptr) {
    top.s_axil_araddr_i = offset;
    const uint64_t start = cycle;
    bool address = false;
    Answer answer{hesitation()};
    while (!answer.taken) {
      top.s_axil_arvalid_i = !address;
      top.s_axil_rready_i = answer.may_take();
      top.clk_i = 0;
      take_inputs();
      address |= top.s_axil_arvalid_i && top.s_axil_arready_o;
      answer.sample(top.s_axil_rvalid_o, top.s_axil_rready_i, top.s_axil_rresp_o,
                    top.s_axil_rdata_o);
      tick();
      in_time(start, "a register is read");
    }
    top.s_axil_arvalid_i = top.s_axil_rready_i = 0;
    if (response != nullptr) *response = answer.response;
    return answer.data;
  }

  uint32_t state() { return read(csr::kStatus) & csr::kStatusStateMask; }
  // Also that nothing is queued.
  bool idle_and_empty() { return read(csr::kStatus) == (csr::kStatusStateIdle | kNothingQueued); }

  void acknowledge_error() { control(csr::kCtrlErrorAckMask, "error_ack ends"); }
  void soft_reset() { control(csr::kCtrlSoftResetMask, "soft reset ends"); }

  // A packet by CMD_PUSH.
  void push(const Packet& packet) {
    const auto words = std::bit_cast<std::array<uint32_t, 16>>(packet);
    for (unsigned i = 0; i < 16; ++i) write(csr::kCmdWord + 4 * i, words[i]);
    write(csr::kCmdPush, csr::kCmdPushPushMask);
  }

 private:
  static constexpr uint64_t kResetCycles = 4;
  // The pins as they are now take effect.
  void take_inputs() {
    top.changed_i = !top.changed_i;
    top.eval();
  }
  void take_info(uint32_t info) {
    top.program_info_i = info;
    top.info_changed_i = !top.info_changed_i;
    top.eval();
  }
  void control(uint32_t request, const char* end) {
    write(csr::kCtrl, request);
    until(end, [&] { return read(csr::kCtrl) == 0; });
  }
  struct Read {
    uint64_t addr, due;
    unsigned beat;
  };

  uint64_t hesitation() { return host_is_prompt || host_.chance(90) ? 0 : host_.between(1, 6); }

  bool stall(Stalling channel) { return random.chance(stalls.percent[channel]); }
  uint64_t due() { return cycle + 1 + fixed_latency + (latency ? random.below(latency) : 0); }

  void drive_reads() {
    top.rd_req_ready_i = !stall(kReadRequest);
    top.rd_rsp_valid_i = !reads_.empty() && reads_.front().due <= cycle && !stall(kReadData);
    if (!top.rd_rsp_valid_i) return;
    const uint64_t addr = reads_.front().addr + reads_.front().beat * kBusBytes;
    // One beat of a bad line fails, not always the same one.
    const uint64_t bad_beat = addr / kLineBytes % kLineBeats;
    top.rd_rsp_err_i = memory.error_at(addr) && reads_.front().beat == bad_beat;
    for (unsigned i = 0; i < kBusBytes / 4; ++i)
      top.rd_rsp_data_i[i] =
          memory.error_at(addr) ? 0xDEADBEEF : memory.get<uint32_t>(addr + 4 * i);
  }

  void sample_reads() {
    if (top.rd_rsp_valid_i && top.rd_rsp_ready_o && ++reads_.front().beat == kLineBeats)
      reads_.pop_front();
    if (!top.rd_req_valid_o || !top.rd_req_ready_i) return;
    check(top.rd_req_bytes_o == kLineBytes && top.rd_req_addr_o % kLineBytes == 0,
          "read of %u bytes at %llx", top.rd_req_bytes_o, (unsigned long long)top.rd_req_addr_o);
    reads_.push_back({top.rd_req_addr_o, due() + read_delay, 0});
    check(top.rd_req_addr_o >= kMemBase && top.rd_req_addr_o + kLineBytes <= kMemLimit,
          "a line outside the memory is read: %llx", (unsigned long long)top.rd_req_addr_o);
    ++lines_read;
    if (on_read) on_read(top.rd_req_addr_o);
  }

  void drive_writes() {
    top.wr_req_ready_i = !stall(kWriteRequest);
    top.wr_data_ready_i = !stall(kWriteData);
    top.wr_rsp_valid_i = write_due_ != 0 && write_due_ <= cycle;
    top.wr_rsp_err_i = write_error_;
  }

  void sample_writes() {
    if (top.wr_rsp_valid_i) write_due_ = 0;
    if (top.wr_req_valid_o && top.wr_req_ready_i) {
      write_addr_ = top.wr_req_addr_o;
      write_bytes_ = top.wr_req_bytes_o;
    }
    if (top.wr_data_valid_o && top.wr_data_ready_i) {
      std::vector<uint8_t> data(kBusBytes);
      std::memcpy(data.data(), top.wr_data_o.data(), kBusBytes);
      write_beats_.push_back({data, top.wr_strb_o});
    }
    const uint64_t lanes = write_addr_ % kBusBytes + write_bytes_;
    if (write_bytes_ != 0 && write_beats_.size() == (lanes + kBusBytes - 1) / kBusBytes)
      finish_write();
  }

  // All of a write is here: exactly its bytes must be enabled.
  void finish_write() {
    const uint64_t first = write_addr_ / kBusBytes * kBusBytes;
    write_error_ = memory.error_at(write_addr_);
    for (uint64_t at = first; at < first + write_beats_.size() * kBusBytes; ++at) {
      const auto& beat = write_beats_[(at - first) / kBusBytes];
      const bool enabled = beat.second >> (at - first) % kBusBytes & 1;
      check(enabled == (at >= write_addr_ && at < write_addr_ + write_bytes_), "strobe at %llx",
            (unsigned long long)at);
      if (enabled && !write_error_) memory.put(at, beat.first[(at - first) % kBusBytes]);
    }
    write_beats_.clear();
    write_bytes_ = 0;
    write_due_ = due();
  }

  // The pins of each channel, so that one loop serves them all.
  struct Pins {
    CData &valid, &ready, &done, &err, &stats;
  };
  Pins pins(unsigned channel) {
    return {top.engine_valid_o[channel], top.engine_ready_i[channel], top.engine_done_i[channel],
            top.engine_err_i[channel], top.engine_stats_i[channel]};
  }

  void drive_engines() {
    pending_.fill({});
    seen_ = {};
    const unsigned reader = unsigned(random.below(2 * kChannels));
    const unsigned writer = unsigned(random.below(2 * kChannels));
    top.engine_rd_beat_i = top.engine_wr_beat_i = 0;
    for (unsigned i = 0; i < kChannels; ++i) {
      Pins engine = pins(i);
      Run& run = runs_[i];
      const bool running = run.due != 0;
      engine.ready = !running && !stall(kEngine);
      engine.done = running && run.due <= cycle;
      const bool fails = run.number == failing_dispatch || run.number == failing_too;
      engine.err = fails ? engine_error : 0;
      // A member of npu_stats_t per bit, the first one uppermost.
      engine.stats = !running ? 0 : all_events ? 7 : uint8_t(random.below(8));
      if (!running) continue;
      if (reader == i || all_events) top.engine_rd_beat_i |= 1 << i;
      if (writer == i || all_events) top.engine_wr_beat_i |= 1 << i;
      const unsigned stats = engine.stats;
      pending_[i] = {stats >> 2 & 1, stats >> 1 & 1, stats & 1, reader == i, writer == i};
      seen_.active |= stats >> 2 & 1;
      seen_.operand_stall |= stats >> 1 & 1;
      seen_.result_stall |= stats & 1;
    }
    // Beats of the host and of the processor count for the device alone.
    const bool busy = !running_numbers().empty();
    top.rd_beat_i = top.engine_rd_beat_i != 0 || (busy && random.chance(10));
    top.wr_beat_i = top.engine_wr_beat_i != 0 || (busy && random.chance(10));
    seen_.read_beats = top.rd_beat_i;
    seen_.write_beats = top.wr_beat_i;
  }

  // The pins of this cycle belong to the commands that ran when they were driven.
  void count_events() {
    total += seen_;
    for (unsigned i = 0; i < kChannels; ++i)
      if (runs_[i].number < events.size()) events[runs_[i].number] += pending_[i];
  }

  void sample_engines() {
    unsigned running = 0;
    for (unsigned i = 0; i < kChannels; ++i) {
      Run& run = runs_[i];
      if (run.due != 0 && pins(i).done) {
        run.due = 0;
        ended_at[run.number] = device_cycle();
      }
      if (run.due != 0) check(run.command == command_words(i), "the command changed under way");
      if (pins(i).valid && !run.offered) offer(i);
      if (pins(i).valid && pins(i).ready) {
        run.offered = false;
        const bool slow = run.number == slow_dispatch || run.number == slow_too;
        run.due = due() + (slow ? kSlowCycles : engine_latency);
        const uint64_t unit = end_at_multiples_of;
        if (unit != 0) run.due = (cycle / unit + 1) * unit;
      }
      running += run.due != 0;
    }
    most_running = std::max(most_running, running);
  }

  // Commands start in order; engines take them when they are ready.
  void offer(unsigned channel) {
    Run& run = runs_[channel];
    run.command = command_words(channel);
    Dispatch d = DispatchReader(run.command).read();
    d.engine = engine_of_channel(channel);
    run.number = dispatched.size();
    run.offered = true;
    d.offered_at = device_cycle();
    dispatched.push_back(d);
    events.push_back({});
    if (on_start) on_start(run.number, running_numbers());
  }

  // Numbers of the dispatches that run now.
  std::vector<size_t> running_numbers() const {
    std::vector<size_t> numbers;
    for (const Run& run : runs_)
      if (run.offered || run.due != 0) numbers.push_back(run.number);
    return numbers;
  }

  std::vector<uint32_t> command_words(unsigned channel) {
    std::vector<uint32_t> words;
    for (unsigned i = 0; i < DispatchReader::kWords; ++i)
      words.push_back(top.engine_cmd_o[channel][i]);
    return words;
  }

  void quiet_at_reset() {
    check(reads_.empty() && write_due_ == 0 && running_numbers().empty(),
          "soft reset with work under way");
    ++soft_resets;
  }

  uint64_t age_ = 0;  // what CYCLE is ahead of the cycles since reset
  std::deque<Read> reads_;
  uint64_t write_addr_ = 0, write_bytes_ = 0, write_due_ = 0;
  bool write_error_ = false;
  std::vector<std::pair<std::vector<uint8_t>, uint64_t>> write_beats_;
  // What a channel is doing: dispatch `number` until cycle `due`; 0 when it is free.
  struct Run {
    size_t number = SIZE_MAX;
    bool offered = false;
    uint64_t due = 0;
    std::vector<uint32_t> command;
  };
  std::array<Run, kChannels> runs_;
  std::array<Events, kChannels> pending_;  // what the pins say in this cycle
  Events seen_;                            // of the whole device
  Random host_;                            // what the host's port does, apart from all else
};
