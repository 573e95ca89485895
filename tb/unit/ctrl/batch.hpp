// SPDX-License-Identifier: Apache-2.0
// Drives the device as software does, and compares what a batch of packets left behind.
#pragma once

#include <utility>

#include "order.hpp"
#include "packets.hpp"
#include "records.hpp"

struct Outcome {
  uint64_t commands = 0;
  ErrorCode error = ErrorCode::kNone;
};

class Session {
 public:
  static constexpr unsigned kLog2Ring = 4, kLog2Records = 3;
  static constexpr unsigned kSlots = 1 << kLog2Ring, kRecordSlots = 1 << kLog2Records;

  explicit Session(Device& device) : d_(device), maker_(device.memory, device.random) {
    d_.write(csr::kRingBaseLo, uint32_t(kRing));
    d_.write(csr::kRingBaseHi, uint32_t(kRing >> 32));
    d_.write(csr::kRingCtrl, enabled_ring(kLog2Ring));
    d_.write(csr::kCplBaseLo, uint32_t(kRecords));
    d_.write(csr::kCplBaseHi, uint32_t(kRecords >> 32));
    d_.write(csr::kCplCtrl, enabled_ring(kLog2Records));
    d_.write(csr::kIrqEnable, kCauses);
    watch_order(d_);
  }

  // See Device: between two batches.
  void grow_old(uint32_t commands, uint64_t count) {
    d_.grow_old(commands, count);
    commands_ = busy_ = count;
    looked_ = d_.cycle;
  }

  void push(const Packet& packet) { d_.push(packet); }
  void append(const Packet& packet) {
    d_.memory.put(kRing + kLineBytes * tail_, packet);
    tail_ = (tail_ + 1) % kSlots;
  }
  void ring_doorbell() { d_.write(csr::kRingTail, tail_); }

  // Until the device is no longer busy, and its interrupts have had their two cycles.
  void wait() {
    d_.until("no longer busy", [&] { return d_.state() != csr::kStatusStateBusy; });
    d_.tick();
    d_.tick();
  }

  // A few packets through one of the two ways in; at most one fault.
  Outcome random_batch() {
    const bool by_ring = d_.random.chance(60);
    const unsigned count = unsigned(d_.random.between(1, by_ring ? kSlots - 1 : 4));
    begin();
    for (unsigned i = 0; i < count; ++i)
      packets_.push_back(d_.random.chance(25) ? maker_.mutated() : maker_.sound());
    return run(by_ring, d_.random.below(12));
  }

  // One packet with two things wrong: the first that the contract looks at is reported.
  Outcome twice_wrong() {
    begin();
    packets_.push_back(maker_.mutated());
    d_.random.chance(50) ? maker_.mutate(packets_.back()) : maker_.spoil_descriptor();
    return run(false, kNoFault);
  }

  // One packet by CMD_PUSH.
  Outcome single(const Packet& packet) {
    begin();
    packets_.push_back(packet);
    return run(false, kNoFault);
  }

 private:
  static constexpr uint64_t kNoFault = UINT64_MAX;

  void begin() {
    d_.memory.bad_lines.clear();
    d_.dispatched.clear();
    d_.events.clear();
    d_.failing_dispatch = SIZE_MAX;
    packets_.clear();
    expected_.clear();
  }

  Outcome run(bool by_ring, uint64_t fault) {
    const uint32_t seq = d_.read(csr::kCompleted), head = d_.read(csr::kRingHead);
    inject_fault(fault, seq, head, by_ring);
    predict(seq, head, by_ring);
    for (const auto& packet : packets_) by_ring ? append(packet) : push(packet);
    if (by_ring) ring_doorbell();
    // The registers may have no clock while no access is under way.
    if (d_.random.chance(50)) d_.until("an interrupt", [&] { return d_.top.irq_o; });
    wait();
    compare_state(seq, head, by_ring);
    compare_dispatches();
    compare_records(seq);
    compare_counters();
    compare_interrupts(by_ring);
    recover();
    return outcome_;
  }

  // One of four faults, or none: a bad ring slot, record or destination, an engine that fails.
  void inject_fault(uint64_t fault, uint32_t seq, uint32_t head, bool by_ring) {
    const uint64_t victim = d_.random.below(packets_.size());
    if (fault == 0 && by_ring)
      d_.memory.bad_lines.insert(kRing / kLineBytes + (head + victim) % kSlots);
    if (fault == 1)
      d_.memory.bad_lines.insert(kRecords / kLineBytes + (seq + victim) % kRecordSlots);
    if (fault == 2) d_.memory.bad_lines.insert(packets_[victim].dst / kLineBytes);
    if (fault == 3) {
      d_.failing_dispatch = victim;
      static constexpr ErrorCode kCodes[] = {ErrorCode::kBusRead, ErrorCode::kBusWrite,
                                             ErrorCode::kBadIndex, ErrorCode::kBadImage};
      d_.engine_error = uint32_t(kCodes[d_.random.below(std::size(kCodes))]);
    }
  }

  // What must come of the packets: everything up to and including the first that fails. When that
  // fails late, by its engine or its record, the packets behind it may have started as well.
  void predict(uint32_t seq, uint32_t head, bool by_ring) {
    outcome_ = {};
    behind_.clear();
    bool late = false;
    size_t dispatches = 0;
    for (unsigned i = 0; i < packets_.size() && (outcome_.error == ErrorCode::kNone || late); ++i) {
      Expected expected =
          foresee(i, by_ring ? kRing + kLineBytes * ((head + i) % kSlots) : 0, dispatches);
      if (late) {
        if (expected.error != ErrorCode::kNone || is(i, Opcode::kFence) || is(i, Opcode::kSync))
          break;
        if (expected.dispatched) behind_.push_back(i);
        continue;
      }
      ++outcome_.commands;
      outcome_.error = expected.error;
      const bool in_engine = expected.dispatched && engine_of(packets_[i]) != kGather;
      late = expected.error != ErrorCode::kNone && in_engine;
      if (expected.error == ErrorCode::kNone && d_.memory.error_at(record_of(seq + i))) {
        outcome_.error = ErrorCode::kBusWrite;
        late = true;
      }
      expected_.push_back(expected);
    }
  }
  bool is(unsigned i, Opcode opcode) const { return packets_[i].opcode == uint32_t(opcode); }

  Expected foresee(unsigned i, uint64_t slot, size_t& dispatches) {
    Expected expected;
    if (slot != 0 && d_.memory.error_at(slot)) {
      packets_[i].opcode = 0;  // what its record will say
      expected.error = ErrorCode::kBusRead;
      return expected;
    }
    expected = expected_of(d_.memory, packets_[i]);
    if (expected.error != ErrorCode::kNone) return expected;
    if (packets_[i].opcode == uint32_t(Opcode::kSync) && d_.memory.error_at(packets_[i].dst))
      expected.error = ErrorCode::kBusWrite;
    expected.dispatched = engine_of(packets_[i]) != kNoEngine;
    if (expected.dispatched && dispatches++ == d_.failing_dispatch)
      expected.error = ErrorCode(d_.engine_error);
    return expected;
  }

  static Engine engine_of(const Packet& packet) { return ::engine_of(packet.opcode); }
  static uint64_t record_of(uint32_t seq) { return kRecords + kLineBytes * (seq % kRecordSlots); }
  bool failed() const { return outcome_.error != ErrorCode::kNone; }

  void compare_state(uint32_t seq, uint32_t head, bool by_ring) {
    const uint32_t ran = uint32_t(outcome_.commands);
    const uint32_t code = d_.read(csr::kErrorCode), expected = uint32_t(outcome_.error);
    check(code != 0 || expected == 0, "no error, expected %u at command %u", expected, ran - 1);
    check(code == expected, "error code %u at command %u, expected %u at command %u", code,
          d_.read(csr::kErrorSeq) - seq, expected, ran - 1);
    check(d_.state() == (failed() ? csr::kStatusStateError : csr::kStatusStateDone), "state %u",
          d_.state());
    check(d_.read(csr::kCompleted) == seq + ran, "completed %u", d_.read(csr::kCompleted) - seq);
    if (failed()) check(d_.read(csr::kErrorSeq) == seq + ran - 1, "error sequence number");
    const uint32_t now = by_ring ? (head + ran) % kSlots : head;
    check(d_.read(csr::kRingHead) == now, "ring head %u, expected %u", d_.read(csr::kRingHead),
          now);
  }

  static bool same(const View& a, const View& b) {
    bool equal = a.base == b.base;
    for (unsigned i = 0; i < kMaxRank; ++i)
      equal &= a.size[i] == b.size[i] && (a.size[i] == 1 || a.stride[i] == b.stride[i]);
    return equal;
  }

  void compare_dispatches() {
    size_t next = 0;
    for (size_t i = 0; i < expected_.size(); ++i) {
      const Packet& p = packets_[i];
      const Expected& v = expected_[i];
      if (p.opcode == uint32_t(Opcode::kSync) && v.error == ErrorCode::kNone && last_sync_to(i))
        check(d_.memory.get<uint32_t>(p.dst) == p.param[kSyncValue], "SYNC's word");
      if (!v.dispatched) continue;
      check(next < d_.dispatched.size(), "command %zu never reached an engine", i);
      const Dispatch& got = d_.dispatched[next++];
      check(got.engine == engine_of(p) && got.opcode == p.opcode,
            "command %zu of opcode %u: engine %u has opcode %u", i, p.opcode, got.engine,
            got.opcode);
      if (got.engine == kMatrix) compare_product(i, got);
      for (size_t s = 0; s < v.sources.size(); ++s) {
        check(same(got.sources[s], v.sources[s]), "command %zu: src%zu", i, s + 1);
        check(got.src_dtypes[s] == v.src_dtypes[s], "command %zu: type of src%zu", i, s + 1);
      }
      for (size_t r = 0; r < v.results.size(); ++r) {
        check(same(got.results[r], v.results[r]), "command %zu: result %zu", i, r + 1);
        check(got.dst_dtypes[r] == v.dst_dtypes[r], "command %zu: type of result %zu", i, r + 1);
      }
      check(got.accumulate == bool(p.flags & kAccumulateMask), "command %zu: accumulate", i);
      if (p.opcode == uint32_t(Opcode::kFill))
        check(got.value == p.param[kFillValue], "command %zu: value", i);
      if (got.engine == kVector) compare_program(i, got);
      if (got.engine == kGather) check(got.dim == v.dim, "command %zu: dim", i);
    }
    for (const unsigned i : behind_) {
      if (next == d_.dispatched.size()) return;
      const Dispatch& got = d_.dispatched[next++];
      check(got.engine == engine_of(packets_[i]) && got.opcode == packets_[i].opcode,
            "command %u behind a failed one: wrong engine", i);
    }
    check(next == d_.dispatched.size(), "%zu commands too many", d_.dispatched.size() - next);
  }

  void compare_product(size_t i, const Dispatch& got) const {
    for (unsigned s = 0; s < got.product.size(); ++s)
      check(got.product[s] == packets_[i].param[s], "command %zu: size %u of the product", i, s);
    for (unsigned s = 0; s < got.windows.size(); ++s)
      check((s == kScales && !got.int4_group) || expected_[i].windows[s].matches(got.windows[s]),
            "command %zu: window %u", i, s);
    check(got.int4_group == npu::int4_group(packets_[i]), "command %zu: group of scales", i);
  }

  void compare_program(size_t i, const Dispatch& got) const {
    const Packet& p = packets_[i];
    if (p.opcode == uint32_t(Opcode::kLoad)) {
      check(got.program == p.param[kLoadLine] && got.lines == p.param[kLoadLines],
            "command %zu: lines", i);
      return;
    }
    check(got.program == p.param[kVectorProgram], "command %zu: program", i);
    check(got.info == program_info_bits(program_of(p)), "command %zu: what the program is", i);
    const bool listed = npu::has_flag(p, kOperandListMask);
    for (unsigned k = 0; k < kImmediates; ++k) {
      const uint32_t word = listed || k < kPlainImmediates ? p.param[kVectorImm0 + k] : 0;
      check(got.imm[k] == word, "command %zu: imm%u", i, k);
    }
  }

  bool last_sync_to(size_t i) const {
    for (size_t j = i + 1; j < expected_.size(); ++j)
      if (packets_[j].opcode == uint32_t(Opcode::kSync) && packets_[j].dst == packets_[i].dst)
        return false;
    return true;
  }

  void compare_records(uint32_t seq) {
    first_seq_ = seq;
    uint64_t before = 0;
    size_t dispatches = 0;
    for (size_t i = 0; i < expected_.size(); ++i) {
      EngineRun run;
      if (expected_[i].dispatched) {
        run = {true, d_.dispatched.at(dispatches).offered_at, d_.ended_at.at(dispatches),
               d_.events.at(dispatches)};
        ++dispatches;
      }
      if (expected_.size() - i > kRecordSlots || d_.memory.error_at(record_of(seq + uint32_t(i))))
        continue;
      const auto record = d_.memory.get<Completion>(record_of(seq + uint32_t(i)));
      compare_record(record, first_seq_, i, packets_[i].opcode, expected_[i].error, run);
      compare_waits(record, first_seq_, i);
      check(record.start_cycle > before, "record %zu: started before the one before it", i);
      before = record.start_cycle;
    }
  }

  uint64_t counter(unsigned low) { return d_.read(low) | uint64_t(d_.read(low + 4)) << 32; }

  // All counters since the last clear, and now and then a clear.
  void compare_counters() {
    commands_ += outcome_.commands;
    const Events counted{counter(csr::kActiveCyclesLo), counter(csr::kOperandStallLo),
                         counter(csr::kResultStallLo), counter(csr::kReadBeatsLo),
                         counter(csr::kWriteBeatsLo)};
    check(counted == d_.total, "counters of events");
    check(counter(csr::kCommandsLo) == commands_, "COMMANDS");
    const uint64_t busy = counter(csr::kBusyCyclesLo);
    check(busy != busy_ && busy - busy_ <= d_.cycle - looked_, "BUSY_CYCLES");
    busy_ = busy, looked_ = d_.cycle;
    compare_engines();
    if (!d_.random.chance(30)) return;
    d_.write(csr::kPerfCtrl, csr::kPerfCtrlClearMask);
    for (unsigned low = csr::kBusyCyclesLo; low <= csr::kCommandsLo; low += 8)
      check(counter(low) == 0, "PERF_CTRL.clear leaves the counter at %x", low);
    for (unsigned at = csr::kEngineBusy; at < csr::kCommandWait + 64; at += 4)
      check(d_.read(at) == 0, "PERF_CTRL.clear leaves the counter at %x", at);
    before_.fill({});
    d_.total = {};
    commands_ = busy_ = 0;
    looked_ = d_.cycle;
  }

  // Cycles that an engine was busy, that commands waited for it, and that its own commands waited.
  using EngineCounts = std::array<uint32_t, 3>;

  EngineCounts engine_counts(unsigned e) {
    EngineCounts counts{d_.read(csr::kEngineBusy + 4 * e), d_.read(csr::kEngineWait + 4 * e), 0};
    for (unsigned f = 0; f < kEngines; ++f)
      counts[2] += d_.read(csr::kCommandWait + 4 * (kEngines * e + f));
    return counts;
  }

  // They are the sums over the records, where all of these are at hand.
  void compare_engines() {
    std::array<EngineCounts, kEngines> now{}, sums{};
    unsigned loads = 0;
    std::array<uint64_t, kEngines> busy_until{};  // a cycle with two commands of an engine is one
    for (unsigned e = 0; e < kEngines; ++e) now[e] = engine_counts(e);
    const auto before = std::exchange(before_, now);
    if (failed() || expected_.size() > kRecordSlots) return;
    for (size_t i = 0; i < expected_.size(); ++i) {
      const auto record = d_.memory.get<Completion>(record_of(first_seq_ + uint32_t(i)));
      const Engine engine = engine_of(packets_[i]);
      loads += packets_[i].opcode == uint32_t(Opcode::kLoad);
      if (engine == kNoEngine) continue;
      const uint64_t from = std::max(record.start_cycle, busy_until[engine]);
      busy_until[engine] = std::max(record.end_cycle, from);
      const uint32_t ran = uint32_t(busy_until[engine] - from);
      const EngineCounts more{ran, record.engine_wait, record.operand_wait};
      for (unsigned k = 0; k < more.size(); ++k) sums[engine][k] += more[k];
    }
    for (unsigned e = 0; e < kEngines; ++e) {
      // The end of a command waits while that of another engine is noted; LOAD also waits for
      // commands without an engine.
      const uint32_t busy = now[e][0] - before[e][0], waited = now[e][2] - before[e][2];
      check(busy >= sums[e][0] && busy <= sums[e][0] + kChannels * expected_.size(),
            "ENGINE_BUSY of engine %u: %u cycles, records say %u", e, busy, sums[e][0]);
      check(now[e][1] - before[e][1] == sums[e][1], "ENGINE_WAIT of engine %u", e);
      check(waited == sums[e][2] || (e == kVector && loads != 0 && waited < sums[e][2]),
            "COMMAND_WAIT of engine %u: %u cycles, records say %u", e, waited, sums[e][2]);
    }
  }

  void compare_interrupts(bool by_ring) {
    uint32_t expected = failed() ? csr::kIrqStatusErrorMask : csr::kIrqStatusEmptyMask;
    for (size_t i = 0; i < expected_.size(); ++i) {
      const bool last_failed = failed() && i + 1 == expected_.size();
      if (!last_failed && packets_[i].flags & kIrqMask) expected |= csr::kIrqStatusCompleteMask;
    }
    const uint32_t status = d_.read(csr::kIrqStatus);
    // Packets pushed one by one may find the queue empty in between.
    const uint32_t maybe = by_ring ? 0 : csr::kIrqStatusEmptyMask;
    check(status == expected || status == (expected | maybe), "interrupts %u, expected %u", status,
          expected);
    check(d_.top.irq_o, "irq is low");
    d_.write(csr::kIrqStatus, status);
    check(d_.read(csr::kIrqStatus) == 0 && !d_.top.irq_o, "interrupt not cleared");
  }

  void recover() {
    if (!failed()) return;
    const size_t ran = d_.dispatched.size();
    for (unsigned i = 0; i < 100; ++i) d_.tick();
    const uint64_t lines = d_.lines_read;
    append({});
    ring_doorbell();
    push({});
    for (unsigned i = 0; i < 100; ++i) d_.tick();
    check(d_.lines_read == lines, "the ring is read in state ERROR");
    d_.acknowledge_error();
    check(d_.idle_and_empty(), "state after error_ack");
    check(d_.read(csr::kRingHead) == tail_, "error_ack drops the ring");
    for (unsigned i = 0; i < 100; ++i) d_.tick();
    check(d_.dispatched.size() == ran, "a command ran after the error");
  }

  Device& d_;
  PacketMaker maker_;
  uint32_t tail_ = 0;
  uint64_t commands_ = 0, busy_ = 0;  // since the counters were cleared
  uint64_t looked_ = 0;               // when BUSY_CYCLES was read or cleared
  std::array<EngineCounts, kEngines> before_{};
  std::vector<Packet> packets_;
  std::vector<Expected> expected_;
  std::vector<unsigned> behind_;  // packets that may have started although an earlier one failed
  uint32_t first_seq_ = 0;        // of this batch
  Outcome outcome_;
};
