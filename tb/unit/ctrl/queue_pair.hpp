// SPDX-License-Identifier: Apache-2.0
// The two command queues of the device: packets into both rings, and what is checked of every
// command that starts and of every record.
#pragma once

#include "order.hpp"
#include "packets.hpp"
#include "records.hpp"

// The registers of one queue, and its places in memory.
struct QueuePlaces {
  unsigned base_lo, control, head, tail, records_lo, records_control, completed;
  uint64_t ring, records;
};
inline constexpr std::array<QueuePlaces, 2> kQueues{
    {{csr::kRingBaseLo, csr::kRingCtrl, csr::kRingHead, csr::kRingTail, csr::kCplBaseLo,
      csr::kCplCtrl, csr::kCompleted, kRing, kRecords},
     {csr::kRing1BaseLo, csr::kRing1Ctrl, csr::kRing1Head, csr::kRing1Tail, csr::kCpl1BaseLo,
      csr::kCpl1Ctrl, csr::kCompleted1, kMemBase + 0x8000, kMemBase + 0xA000}}};

class QueuePair {
 public:
  explicit QueuePair(uint64_t seed) : d_(seed) { start(); }

 protected:
  static constexpr unsigned kMost = 40, kLog2Ring = 4, kSlots = 1 << kLog2Ring;
  static constexpr unsigned kLog2Records = 6, kRecordSlots = 1 << kLog2Records;

  void start() {
    for (const QueuePlaces& queue : kQueues) {
      d_.write(queue.base_lo, uint32_t(queue.ring));
      d_.write(queue.base_lo + 4, uint32_t(queue.ring >> 32));
      d_.write(queue.control, enabled_ring(kLog2Ring));
      d_.write(queue.records_lo, uint32_t(queue.records));
      d_.write(queue.records_lo + 4, uint32_t(queue.records >> 32));
      d_.write(queue.records_control, enabled_ring(kLog2Records));
    }
    d_.write(csr::kIrqEnable, kAllCauses);
    tail_ = {};
    d_.on_start = [this](size_t number, const std::vector<size_t>& running) {
      started(number, running);
    };
    // Descriptors of GATHER: of each queue table, indices and result.
    for (unsigned q = 0; q < 2; ++q)
      for (unsigned i = 0; i < 3; ++i)
        d_.memory.put(descriptor(q, i), Descriptor{i == 2 ? dst(q, 0x800) : kData + 0x400 * i,
                                                   i == 1 ? uint32_t(DType::kInt32) : 0,
                                                   1,
                                                   {8},
                                                   {1},
                                                   0});
  }
  static uint64_t descriptor(unsigned q, unsigned i) {
    return kDescriptors + kLineBytes * (3 * q + i);
  }

  // A result's address tells its queue: bit 2.
  static uint64_t dst(unsigned q, uint64_t offset) { return kData + offset / 8 * 8 + 4 * q; }
  static Packet fill(unsigned q, uint64_t offset) {
    return {uint32_t(Opcode::kFill), 0, 0, 0, dst(q, offset), {4, 0}};
  }
  static Packet described_copy(unsigned q) {
    return {uint32_t(Opcode::kCopy), kSrc1DescMask | kDstDescMask,
            descriptor(q, 0),        0,
            descriptor(q, 2),        {}};
  }
  static unsigned queue_of(const Dispatch& d) {
    if (is_load(d)) return d.lines - 1;
    return (d.engine == kMatrix ? d.windows.back().base : d.results[0].base) >> 2 & 1;
  }

  // In little memory, so that commands meet.
  Packet random_packet(unsigned q) {
    const uint64_t from = kData + 8 * d_.random.below(200), to = dst(q, 8 * d_.random.below(200));
    const uint32_t n = uint32_t(d_.random.between(1, 20));
    const uint32_t irq = d_.random.chance(5) ? uint32_t(kIrqMask) : 0;
    switch (d_.random.below(12)) {
      case 0:
        return {uint32_t(Opcode::kNop), irq, 0, 0, 0, {}};
      case 1:
        return {uint32_t(Opcode::kFence), irq, 0, 0, 0, {}};
      case 2:
        return {uint32_t(Opcode::kSync), irq, 0, 0, to, {uint32_t(d_.random.below(1u << 31))}};
      case 3:
        return {uint32_t(Opcode::kGather),
                irq | kSrc1DescMask | kSrc2DescMask | kDstDescMask |
                    uint32_t(DType::kInt32) << kSrc2DtypeShift,
                descriptor(q, 0),
                descriptor(q, 1),
                descriptor(q, 2),
                {0}};
      case 4:
        return {uint32_t(Opcode::kLoad), irq, kData + 0x1000, 0, 0, {kProgramRam, q + 1}};
      case 5:
      case 6:
      case 7:
        return {uint32_t(Opcode::kMatmul), irq, from, from + 64, to, {2, 3, n % 4 + 1, 1}};
      case 8:
      case 9:
        return {uint32_t(Opcode::kCopy), irq, from, 0, to, {n, 0}};
      default:
        return {uint32_t(Opcode::kFill), irq, 0, 0, to, {n, 0}};
    }
  }

  void begin() {
    d_.dispatched.clear();
    d_.events.clear();
    d_.ended_at.clear();
    d_.failing_dispatch = SIZE_MAX;
    order_.clear();
    seen_ = {};
    failing_ = {SIZE_MAX, SIZE_MAX};
    for (unsigned q = 0; q < 2; ++q) {
      packets_[q].clear();
      runs_[q].clear();
      first_[q] = d_.read(kQueues[q].completed);
      put_[q] = 0;
    }
  }

  // The same with a memory and engines that keep nothing waiting.
  void begin_prompt() {
    begin();
    d_.stalls.all(0);
    d_.latency = d_.engine_latency = 0;
  }

  static bool in_engine(const Packet& packet) { return engine_of(packet.opcode) != kNoEngine; }

  // A command starts: the next one of its queue, beside none that is in its way.
  void started(size_t number, const std::vector<size_t>& running) {
    const Dispatch& later = d_.dispatched[number];
    const unsigned q = queue_of(later);
    order_.push_back(q);
    while (seen_[q] < packets_[q].size() && !in_engine(packets_[q][seen_[q]])) ++seen_[q];
    check(seen_[q] < packets_[q].size() && packets_[q][seen_[q]].opcode == later.opcode,
          "queue %u: command %zu has opcode %u", q, seen_[q], later.opcode);
    runs_[q][seen_[q]] = number;
    if (seen_[q]++ == failing_[q]) {
      d_.failing_dispatch = number;
      d_.engine_error = uint32_t(q == 0 ? ErrorCode::kBusWrite : ErrorCode::kBusRead);
    }
    for (const size_t other : running) {
      if (other == number) continue;
      const Dispatch& earlier = d_.dispatched[other];
      check(!is_load(later) && !is_load(earlier), "a LOAD runs beside a command");
      check(!depends(earlier, later), "command %zu started beside %zu, which uses its memory",
            number, other);
      check(queue_of(earlier) != q || earlier.engine != kGather,
            "a command started behind an unfinished GATHER of its queue");
    }
  }

  unsigned put(unsigned q, unsigned most) {
    unsigned count = 0;
    for (; put_[q] < packets_[q].size() && count < most; ++count) {
      d_.memory.put(kQueues[q].ring + kLineBytes * tail_[q], packets_[q][put_[q]++]);
      tail_[q] = (tail_[q] + 1) % kSlots;
    }
    return count;
  }
  // Puts all packets of a queue into its ring; the first one runs long, and has started.
  void start_slow(unsigned q) {
    d_.slow_dispatch = 0;
    put(q, kSlots - 1);
    d_.write(kQueues[q].tail, tail_[q]);
    d_.until("the slow one starts", [&] { return !d_.dispatched.empty(); });
  }
  // Packets of the first queue come in turns by its ring and by CMD_PUSH, where that is allowed;
  // the order of the two ways is defined only when nothing waits.
  void put_and_ring() {
    if (may_push_ && d_.read(kQueues[0].completed) - first_[0] == put_[0])
      pushes_ = d_.random.chance(40);
    if (pushes_) push();
    for (unsigned q = pushes_ ? 1 : 0; q < 2; ++q) {
      const unsigned head = d_.read(kQueues[q].head);
      const unsigned room = (head - tail_[q] - 1) % kSlots;
      if (put(q, unsigned(d_.random.between(0, room))) != 0) d_.write(kQueues[q].tail, tail_[q]);
    }
  }

  void push() {
    while (put_[0] < packets_[0].size() && d_.random.chance(70) &&
           (d_.read(csr::kStatus) & csr::kStatusCsrQueueFullMask) == 0)
      d_.push(packets_[0][put_[0]++]);
  }

  // Puts all packets into the rings, while there is room, until nothing runs.
  void feed() {
    d_.until("both queues are empty", [&] {
      put_and_ring();
      const uint32_t state = d_.state();
      const bool all = put_[0] == packets_[0].size() && put_[1] == packets_[1].size();
      return state == csr::kStatusStateError ||
             (all && state == csr::kStatusStateDone && done(0) && done(1));
    });
    for (unsigned i = 0; i < 3; ++i) d_.tick();
  }
  bool done(unsigned q) { return d_.read(kQueues[q].completed) - first_[q] == packets_[q].size(); }

  uint32_t wanted(unsigned q) const {
    for (const Packet& packet : packets_[q])
      if (packet.flags & kIrqMask) return 1;
    return 0;
  }

  // The records of `count` commands; the last one has `status`. A record that could not be written
  // is passed over.
  void compare(unsigned q, unsigned count, uint32_t status) {
    check(d_.read(kQueues[q].completed) - first_[q] == count, "queue %u: %u commands completed", q,
          d_.read(kQueues[q].completed) - first_[q]);
    check(count < packets_[q].size() || status != 0 || d_.read(kQueues[q].head) == tail_[q],
          "queue %u: head of its ring", q);
    uint64_t ended = 0, before = 0, fenced = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (d_.memory.error_at(record_of(q, i))) continue;
      const Completion record = this->record(q, i);
      const Packet& packet = packets_[q][i];
      const auto error = ErrorCode(i + 1 == count ? status : 0);
      compare_record(record, first_[q], i, packet.opcode, error, run_of(q, i));
      check(record.start_cycle > before && record.start_cycle > fenced, "queue %u: order", q);
      before = record.start_cycle;
      const Opcode opcode = Opcode(packet.opcode);
      const bool waits =
          opcode == Opcode::kFence || opcode == Opcode::kSync || opcode == Opcode::kLoad;
      if (waits && record.status == 0) {
        check(record.start_cycle > ended, "queue %u: command %u does not wait", q, i);
        fenced = record.end_cycle;
      }
      if (opcode == Opcode::kSync) {
        fenced = record.end_cycle;
        check(record.status != 0 || record.end_cycle > record.start_cycle,
              "queue %u: a SYNC wrote its word in no cycle", q);
      }
      ended = std::max(ended, record.end_cycle);
      check(record.waited_queue <= 1 && (record.operand_wait != 0 || record.waited_queue == 0),
            "queue %u: waited for queue %u", q, record.waited_queue);
      if (record.operand_wait == 0) continue;
      if (record.waited_queue == q)
        check(record.waited_for - first_[q] < i, "queue %u: waited for %u", q,
              record.waited_for - first_[q]);
      else
        compare_other(q, i, record);
    }
  }

  // What command `i` says of the command of the other queue that it waited for.
  void compare_other(unsigned q, unsigned i, const Completion& record) {
    const uint32_t other = record.waited_for - first_[!q];
    check(other < packets_[!q].size(), "queue %u: command %u waited for %u of the other", q, i,
          other);
    const auto awaited = runs_[!q].find(other), own = runs_[q].find(i);
    if (awaited == runs_[!q].end() || own == runs_[q].end()) return;  // a SYNC, or one that failed
    const Dispatch& earlier = d_.dispatched[awaited->second];
    const Dispatch& later = d_.dispatched[own->second];
    check(awaited->second < own->second && d_.ended_at[awaited->second] <= record.start_cycle,
          "queue %u: command %u did not wait for %u of the other", q, i, other);
    // Its descriptors may be what it waited for.
    const bool described = packets_[q][i].flags & (kSrc1DescMask | kSrc2DescMask | kDstDescMask);
    check(described || is_load(later) || is_load(earlier) || depends(earlier, later),
          "queue %u: command %u had no reason to wait for %u of the other", q, i, other);
  }

  // Where the record of command `i` lies, and the record.
  uint64_t record_of(unsigned q, unsigned i) const {
    return kQueues[q].records + kLineBytes * ((first_[q] + i) % kRecordSlots);
  }
  Completion record(unsigned q, unsigned i) { return d_.memory.get<Completion>(record_of(q, i)); }

  EngineRun run_of(unsigned q, size_t i) {
    const auto found = runs_[q].find(i);
    if (found == runs_[q].end()) return {};
    const size_t number = found->second;
    return {true, d_.dispatched[number].offered_at, d_.ended_at.at(number), d_.events[number]};
  }

  Device d_;
  std::array<std::vector<Packet>, 2> packets_;
  std::array<uint32_t, 2> first_{};  // sequence number of the first command
  std::array<unsigned, 2> tail_{};
  std::array<size_t, 2> put_{};      // packets in the rings so far
  std::array<size_t, 2> seen_{};     // and those that have started, in an engine or not
  std::array<size_t, 2> failing_{};  // command that its engine answers with an error
  std::vector<unsigned> order_;      // queues of the commands as they started
  std::array<std::map<size_t, size_t>, 2> runs_;  // command → its dispatch, if there was one
  bool may_push_ = false, pushes_ = false;
};
