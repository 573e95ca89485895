// SPDX-License-Identifier: Apache-2.0
// What the completion record of one command says, compared with what its engine did.
#pragma once

#include "device.hpp"
#include "expected.hpp"

// A command in its engine; one that none saw has `dispatched` false.
struct EngineRun {
  bool dispatched = false;
  uint64_t offered_at = 0, ended_at = 0;  // cycles of the device
  Events events;
};

// The record of packet `i` of those that begin with the sequence number `first`; not whom it waited
// for.
inline void compare_record(const Completion& record, uint32_t first, size_t i, uint32_t opcode,
                           ErrorCode error, const EngineRun& run) {
  check(record.seq == uint32_t(first + i) && record.opcode == opcode, "record %zu", i);
  check(record.status == uint32_t(error), "record %zu: status %u, expected %u", i, record.status,
        uint32_t(error));
  if (run.dispatched) {  // the channel's register lies between start and engine
    check(record.start_cycle + 1 == run.offered_at && record.end_cycle == run.ended_at,
          "record %zu: started in cycle %llu, ended in %llu; its engine in %llu and %llu", i,
          (unsigned long long)record.start_cycle, (unsigned long long)record.end_cycle,
          (unsigned long long)run.offered_at, (unsigned long long)run.ended_at);
  } else {
    const bool sync = opcode == uint32_t(Opcode::kSync);  // ends when its word is written
    check(sync ? record.end_cycle >= record.start_cycle : record.end_cycle == record.start_cycle,
          "record %zu: ran without an engine", i);
    check(record.engine_wait == 0, "record %zu: without an engine, waited %u cycles for it", i,
          record.engine_wait);
  }
  const Events counted{record.active_cycles, record.operand_stall, record.result_stall,
                       record.read_beats, record.write_beats};
  check(counted == run.events, "record %zu: counts", i);
}

// The same for a queue alone: it waits for its own commands.
inline void compare_waits(const Completion& record, uint32_t first, size_t i) {
  check(record.waited_queue == 0, "record %zu: waited for the other queue", i);
  const bool waited = record.operand_wait != 0;
  check(waited ? record.waited_for - first < record.seq - first : record.waited_for == 0,
        "record %zu: waited %u cycles for %u", i, record.operand_wait, record.waited_for);
}
