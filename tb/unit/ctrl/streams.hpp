// SPDX-License-Identifier: Apache-2.0
// Two queues at work at a time: random streams that share memory, their order and whose turn it is.
#pragma once

#include "queue_pair.hpp"

class Streams : QueuePair {
 public:
  using QueuePair::QueuePair;

  // Random commands of both queues; nothing fails. Returns how many it compared.
  uint64_t random_round() {
    begin();
    d_.stalls.shuffle(d_.random, kStallPercents);
    d_.latency = unsigned(d_.random.below(3) * 40);
    d_.engine_latency = d_.random.chance(50) ? d_.random.below(400) : 0;
    const std::array<unsigned, 2> count{unsigned(d_.random.between(1, kMost)),
                                        unsigned(d_.random.between(1, kMost))};
    for (unsigned q = 0; q < 2; ++q)
      for (unsigned i = 0; i < count[q]; ++i) packets_[q].push_back(random_packet(q));
    const Waits before = waits();
    may_push_ = true;
    feed();
    may_push_ = pushes_ = false;
    for (unsigned q = 0; q < 2; ++q) compare(q, count[q], 0);
    compare_waits(before);
    const uint32_t irq = d_.read(csr::kIrqStatus);
    check(
        irq == (csr::kIrqStatusEmptyMask | csr::kIrqStatusEmpty1Mask | wanted(0) | wanted(1) << 3),
        "interrupts %x of two queues", irq);
    d_.write(csr::kIrqStatus, irq);
    return count[0] + count[1];
  }

  // Both queues want one engine all the time, or the checks: they take turns.
  void turns(bool engine) {
    begin();
    d_.stalls.all(0);
    d_.latency = 0;
    d_.fixed_latency = engine ? 0 : 30;
    d_.engine_latency = engine ? 60 : 0;
    for (unsigned i = 0; i < kMost; ++i)
      for (unsigned q = 0; q < 2; ++q)
        packets_[q].push_back(engine ? fill(q, 0x1000 * (q + 1) + kLineBytes * i)
                                     : described_copy(q));
    feed();
    d_.fixed_latency = 0;
    std::array<unsigned, 2> started{};
    for (const unsigned q : order_) {
      ++started[q];
      const unsigned behind = std::min(started[0], started[1]);
      check(behind == kMost || std::max(started[0], started[1]) - behind <= 3,
            "queue %u has started %u commands, the other one %u", q, started[q], started[!q]);
    }
    check(d_.read(csr::kCommandsLo) >= 2 * kMost, "COMMANDS counts one queue");
    d_.write(csr::kIrqStatus, kAllCauses);
  }

  // A queue stands still behind a long command, in each way; the other one goes on.
  void passes() {
    for (unsigned slow = 0; slow < 2; ++slow)
      for (unsigned way = 0; way < 4; ++way) passes(slow, way);
  }

  // Records are slow, nothing else: the queues complete in turns.
  void completions_turn() {
    begin();
    d_.stalls.all(0);
    d_.latency = 0;
    d_.fixed_latency = 60;
    d_.engine_latency = 0;
    for (auto& packets : packets_) packets.assign(kMost, Packet{});
    unsigned most = 0;
    d_.until("both queues are done", [&] {
      for (unsigned q = 0; q < 2; ++q) {
        const unsigned head = d_.read(kQueues[q].head);
        if (put(q, (head - tail_[q] - 1) % kSlots) != 0) d_.write(kQueues[q].tail, tail_[q]);
      }
      const unsigned done[] = {d_.read(kQueues[0].completed) - first_[0],
                               d_.read(kQueues[1].completed) - first_[1]};
      const auto [least, largest] = std::minmax(done[0], done[1]);
      if (largest < kMost - 8) most = std::max(most, largest - least);
      return least == kMost;
    });
    d_.fixed_latency = 0;
    check(most <= 6, "one queue is %u completions ahead of the other", most);
    d_.write(csr::kIrqStatus, kAllCauses);
  }

  // Both queues have packets to be read when the memory takes requests again: in turns.
  void lines_turn() {
    constexpr unsigned kLines = 4;  // that are read ahead
    begin_prompt();
    std::vector<unsigned> asked;
    d_.on_read = [&](uint64_t line) { asked.push_back(line >= kQueues[1].ring); };
    d_.stalls.percent[kReadRequest] = 100;
    for (unsigned q = 0; q < 2; ++q) {
      for (unsigned i = 0; i < kLines; ++i) packets_[q].push_back(fill(q, kLineBytes * i));
      put(q, kLines);
      d_.write(kQueues[q].tail, tail_[q]);
    }
    d_.stalls.all(0);
    feed();
    d_.on_read = nullptr;
    check(asked.size() == 2 * kLines, "%zu lines of two rings are read", asked.size());
    for (size_t i = 1; i < asked.size(); ++i)
      check(asked[i] != asked[i - 1], "lines %zu and %zu are of one ring", i - 1, i);
    d_.write(csr::kIrqStatus, kAllCauses);
  }

  // Both queues run, then CTRL.soft_reset.
  void soft_reset() {
    begin();
    d_.engine_latency = d_.random.below(300);
    for (unsigned i = 0; i < 10; ++i)
      for (unsigned q = 0; q < 2; ++q) packets_[q].push_back(random_packet(q));
    put_and_ring();
    for (uint64_t n = d_.random.below(800); n > 0; --n) d_.tick();
    d_.soft_reset();
    const size_t ran = d_.dispatched.size();
    check(d_.idle_and_empty() && d_.read(csr::kCompleted1) == 0 && d_.read(csr::kRing1Tail) == 0 &&
              d_.read(csr::kRing1Head) == 0,
          "the second queue after soft reset");
    for (unsigned i = 0; i < 300; ++i) d_.tick();
    check(d_.dispatched.size() == ran, "a command ran after soft reset");
    start();
  }

  // A command waits for two engines: while the later command of them is under way, for that one.
  void last_blocker_counts() {
    for (unsigned q = 0; q < 2; ++q) {
      begin();
      d_.stalls.all(0);
      d_.latency = 0;
      d_.engine_latency = 200;
      packets_[q] = {{uint32_t(Opcode::kCopy), 0, kData, 0, dst(q, 0x40), {8, 0}},
                     {uint32_t(Opcode::kMatmul),
                      0,
                      kData + 0x2000,
                      kData + 0x2100,
                      dst(q, 0x80),
                      {2, 2, 2, 1}},
                     {uint32_t(Opcode::kFill), 0, 0, 0, dst(q, 0x40), {32, 0}}};
      d_.slow_dispatch = 1;
      const Waits before = waits();
      feed();
      d_.slow_dispatch = SIZE_MAX;
      compare(q, 3, 0);
      const Waits now = waits();
      check(now.pairs[kCopy][kMatrix] > before.pairs[kCopy][kMatrix] &&
                now.pairs[kCopy][kCopy] == before.pairs[kCopy][kCopy],
            "COMMAND_WAIT counts the first of two commands that are waited for");
      d_.write(csr::kIrqStatus, kAllCauses);
    }
  }

  // A command of one queue may write the descriptor of a command of the other: that one is not read
  // before it has ended.
  void descriptors_of_the_other() {
    for (unsigned q = 0; q < 2; ++q) {
      const uint64_t line = descriptor(!q, 0);
      begin_prompt();
      packets_[q] = {{uint32_t(Opcode::kFill), 0, 0, 0, line + 4 * q, {1, 0}}};
      packets_[!q] = {described_copy(!q)};
      start_slow(q);
      bool early = false;
      d_.on_read = [&](uint64_t at) { early |= at == line && !d_.ended_at.contains(0); };
      feed();
      d_.on_read = nullptr;
      d_.slow_dispatch = SIZE_MAX;
      check(!early, "a descriptor was read while a command of queue %u may write it", q);
      for (unsigned each = 0; each < 2; ++each) compare(each, 1, 0);
      check(record(!q, 0).operand_wait != 0 && record(!q, 0).waited_queue == q,
            "queue %u did not wait for the other one, which may write its descriptor", !q);
      d_.write(csr::kIrqStatus, kAllCauses);
    }
  }

  // Two commands wait for the same one, each with its engine free: they start one after the other,
  // and neither has waited for an engine.
  void one_start_per_cycle() {
    for (unsigned q = 0; q < 2; ++q) {
      begin_prompt();
      const uint64_t awaited = dst(q, 0x40);
      packets_[q] = {
          {uint32_t(Opcode::kCopy), 0, kData, 0, awaited, {8, 0}},
          {uint32_t(Opcode::kMatmul), 0, awaited, kData + 0x2100, dst(q, 0x500), {2, 2, 2, 1}}};
      packets_[!q] = {{uint32_t(Opcode::kCopy), 0, awaited, 0, dst(!q, 0x900), {8, 0}}};
      const Waits before = waits();
      start_slow(q);
      feed();
      d_.slow_dispatch = SIZE_MAX;
      compare(q, 2, 0);
      compare(!q, 1, 0);
      const int64_t apart = int64_t(record(q, 1).start_cycle - record(!q, 0).start_cycle);
      check(apart == 1 || apart == -1, "queue %u: the two start %lld cycles apart", q,
            (long long)apart);
      check(record(q, 1).engine_wait == 0 && record(!q, 0).engine_wait == 0 &&
                waits().engine == before.engine,
            "queue %u: a command waited for an engine, and its engine is free", q);
      d_.write(csr::kIrqStatus, kAllCauses);
    }
  }

  // While a long command of one queue runs: a NOP behind it starts in its turn, and NOP, SYNC and
  // FENCE of the other queue end.
  void nothing_to_wait_for() {
    for (unsigned q = 0; q < 2; ++q) {
      begin_prompt();
      packets_[q] = {{uint32_t(Opcode::kCopy), 0, kData, 0, dst(q, 0x40), {8, 0}}, {}};
      packets_[!q] = {{},
                      {uint32_t(Opcode::kSync), 0, 0, 0, dst(!q, 0x700), {7}},
                      {uint32_t(Opcode::kFence), 0, 0, 0, 0, {}}};
      start_slow(q);
      feed();
      d_.slow_dispatch = SIZE_MAX;
      compare(q, 2, 0);
      compare(!q, 3, 0);
      const uint64_t end = record(q, 0).end_cycle;
      check(record(q, 1).operand_wait == 0 && record(q, 1).start_cycle < end,
            "queue %u: a NOP waited for a COPY", q);
      for (unsigned i = 0; i < 3; ++i)
        check(record(!q, i).end_cycle < end, "queue %u: command %u waited for the other queue", !q,
              i);
      d_.write(csr::kIrqStatus, kAllCauses);
    }
  }

 private:
  // ENGINE_WAIT, and COMMAND_WAIT of an engine for another.
  struct Waits {
    std::array<uint32_t, kEngines> engine{};
    std::array<std::array<uint32_t, kEngines>, kEngines> pairs{};
  };
  Waits waits() {
    Waits found;
    for (unsigned e = 0; e < kEngines; ++e) {
      found.engine[e] = d_.read(csr::kEngineWait + 4 * e);
      for (unsigned f = 0; f < kEngines; ++f)
        found.pairs[e][f] = d_.read(csr::kCommandWait + 4 * (kEngines * e + f));
    }
    return found;
  }

  // A cycle in which commands of both queues wait counts once: the counters have grown by no more
  // than the records of both say, and no less than those of either.
  void compare_waits(const Waits& before) {
    const Waits now = waits();
    for (unsigned e = 0; e < kEngines; ++e) {
      std::array<uint64_t, 2> engine{}, operand{};
      for (unsigned q = 0; q < 2; ++q)
        for (size_t i = 0; i < packets_[q].size(); ++i) {
          if (engine_of(packets_[q][i].opcode) != e) continue;
          engine[q] += record(q, unsigned(i)).engine_wait;
          operand[q] += record(q, unsigned(i)).operand_wait;
        }
      const uint64_t waited = now.engine[e] - before.engine[e];
      check(waited >= std::max(engine[0], engine[1]) && waited <= engine[0] + engine[1],
            "ENGINE_WAIT of engine %u: %llu cycles, records of the queues say %llu and %llu", e,
            (unsigned long long)waited, (unsigned long long)engine[0],
            (unsigned long long)engine[1]);
      uint64_t for_others = 0;
      for (unsigned f = 0; f < kEngines; ++f) for_others += now.pairs[e][f] - before.pairs[e][f];
      // Fewer where they waited for a SYNC, which has no engine.
      check(for_others <= operand[0] + operand[1],
            "COMMAND_WAIT of engine %u: %llu cycles, records of the queues say %llu and %llu", e,
            (unsigned long long)for_others, (unsigned long long)operand[0],
            (unsigned long long)operand[1]);
    }
  }

  // Queue `slow` has a long command, and behind it one that waits: for its memory, its engine, its
  // end or because it may fail. The commands of the other queue do not.
  void passes(unsigned slow, unsigned way) {
    begin_prompt();
    const Packet copy{uint32_t(Opcode::kCopy), 0, kData, 0, dst(slow, 0x40), {8, 0}};
    const Packet product{uint32_t(Opcode::kMatmul), 0,           dst(slow, 0x40), kData + 0x400,
                         dst(slow, 0x500),          {2, 2, 2, 1}};
    const Packet gather{
        uint32_t(Opcode::kGather),
        kSrc1DescMask | kSrc2DescMask | kDstDescMask | uint32_t(DType::kInt32) << kSrc2DtypeShift,
        descriptor(slow, 0),
        descriptor(slow, 1),
        descriptor(slow, 2),
        {0}};
    const Packet fence{uint32_t(Opcode::kFence), 0, 0, 0, 0, {}};
    const Packet sync{uint32_t(Opcode::kSync), 0, 0, 0, dst(slow, 0x700), {7}};
    const Packet other{uint32_t(Opcode::kMatmul), 0,           kData + 0x2000, kData + 0x2100,
                       dst(!slow, 0x2200),        {2, 2, 2, 1}};
    const std::array<std::pair<Packet, Packet>, 4> kWays{
        {{copy, product}, {copy, fill(slow, 0x600)}, {copy, fence}, {gather, sync}}};
    packets_[slow] = {kWays[way].first, kWays[way].second, fill(slow, 0x900)};
    packets_[!slow] = {other, other, other, other};
    const Waits before = waits();
    if (way == 1) d_.slow_too = 1;  // the engine has two channels
    start_slow(slow);
    for (unsigned i = 0; i < 60; ++i) d_.tick();
    feed();
    d_.slow_dispatch = d_.slow_too = SIZE_MAX;
    compare(slow, 3, 0);
    compare(!slow, 4, 0);
    const Completion first = record(slow, 0), last = record(!slow, 3);
    const Waits now = waits();
    if (way == 0)
      check(
          now.pairs[kMatrix][kCopy] - before.pairs[kMatrix][kCopy] == record(slow, 1).operand_wait,
          "COMMAND_WAIT does not count what a command of queue %u says", slow);
    if (way == 1)
      check(now.engine[kCopy] - before.engine[kCopy] ==
                record(slow, 1).engine_wait + record(slow, 2).engine_wait,
            "ENGINE_WAIT does not count what commands of queue %u say", slow);
    check(last.end_cycle < first.end_cycle, "queue %u waits for what queue %u waits for (%u)",
          !slow, slow, way);
    d_.write(csr::kIrqStatus, kAllCauses);
  }
};
