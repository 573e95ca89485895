// SPDX-License-Identifier: Apache-2.0
// Registers that are written in the cycle of an event: an interrupt cause that is cleared as it is
// set, counters that are cleared as they count. The write comes one cycle later each time, until it
// has met the event and passed it.
#pragma once

#include "queue_pair.hpp"

class SameCycle : QueuePair {
 public:
  explicit SameCycle(uint64_t seed) : QueuePair(seed) {
    d_.stalls.all(0);
    d_.latency = 0;
    d_.host_is_prompt = true;
    d_.engine_latency = kRuns;
  }

  // Of a cause that is set and cleared in one cycle the pin says nothing: it stays high. Before
  // that it falls and rises, after that it falls.
  void causes() {
    for (unsigned cause = 0; cause < 5; ++cause) {
      unsigned before = 0, met = 0, behind = 0;
      for (unsigned after = 0; after < kSteps; ++after) {
        event(cause, kSteps);
        d_.write(csr::kIrqEnable, 1u << cause);
        d_.tick();
        check(d_.top.irq_o, "cause %u was not set", cause);
        const uint64_t falls = d_.irq_falls;
        event(cause, after);
        const bool fell = d_.irq_falls != falls;
        check(fell || d_.top.irq_o, "cause %u: the pin is low and did not fall", cause);
        before += fell && d_.top.irq_o;
        behind += fell && !d_.top.irq_o;
        met += !fell;
        d_.write(csr::kIrqEnable, kAllCauses);
      }
      check(before > 3 && behind > 3 && met == 1,
            "cause %u: the pin fell and rose %u times, stayed high %u times, stayed low %u times",
            cause, before, met, behind);
    }
    std::printf("same cycle  5 causes, %u cycles each\n", kSteps);
  }

  // With all events in each cycle of a command the counters say the same, whenever they are
  // cleared; and a cycle less for each cycle that this was later.
  void counters() {
    d_.all_events = true;
    uint32_t before = 0;
    unsigned fewer = 0;
    for (unsigned after = 0; after < kSteps; ++after) {
      one(
          {0, fill(0, 0x200), false}, [&] { d_.write(csr::kPerfCtrl, csr::kPerfCtrlClearMask); },
          after);
      const uint32_t active = d_.read(csr::kActiveCyclesLo);
      for (const unsigned counter :
           {csr::kOperandStallLo, csr::kResultStallLo, csr::kReadBeatsLo, csr::kWriteBeatsLo})
        check(d_.read(counter) == active, "counter at %x says %u, ACTIVE_CYCLES %u", counter,
              d_.read(counter), active);
      check(after == 0 || active == before || active + 1 == before,
            "cleared a cycle later: %u cycles, before %u", active, before);
      fewer += after != 0 && active + 1 == before;
      before = active;
    }
    check(before == 0 && fewer >= kRuns / 2, "counters that are cleared count on: %u", before);
    d_.all_events = false;
    d_.write(csr::kIrqStatus, kAllCauses);
  }

 private:
  static constexpr unsigned kRuns = 20, kSteps = 60;

  struct One {
    unsigned queue;
    Packet packet;
    bool fails;
  };

  // One command, and something `after` cycles behind its start.
  template <typename Something>
  void one(const One& command, Something&& something, unsigned after) {
    begin();
    if (command.fails) failing_[command.queue] = 0;
    packets_[command.queue] = {command.packet};
    put(command.queue, 1);
    d_.write(kQueues[command.queue].tail, tail_[command.queue]);
    d_.until("the command starts", [&] { return !d_.dispatched.empty(); });
    for (unsigned i = 0; i < after; ++i) d_.tick();
    something();
    d_.until("it has ended", [&] { return d_.state() != csr::kStatusStateBusy; });
    for (unsigned i = 0; i < 4; ++i) d_.tick();
  }

  // A command whose end sets a cause, which is cleared `after` cycles behind its start; not at all
  // at kSteps.
  void event(unsigned cause, unsigned after) {
    constexpr unsigned kError = 2;
    const unsigned queue = cause > kError;
    Packet packet = fill(queue, 0x200);
    packet.flags |= uint32_t(kIrqMask);
    const auto clear = [&] {
      if (after != kSteps) d_.write(csr::kIrqStatus, 1u << cause);
    };
    one({queue, packet, cause == kError}, clear, after == kSteps ? 0 : after);
    if (cause != kError) return;
    check(d_.state() == csr::kStatusStateError, "no error");
    d_.acknowledge_error();
  }
};
