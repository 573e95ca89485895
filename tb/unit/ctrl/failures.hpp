// SPDX-License-Identifier: Apache-2.0
// Two queues at work, and commands that fail: what is reported, and what the failure of one means
// for the other.
#pragma once

#include "queue_pair.hpp"

class Failures : QueuePair {
 public:
  using QueuePair::QueuePair;

  // The word of a SYNC that was put aside cannot be written.
  void parked_sync_fails() {
    for (unsigned queue = 0; queue < 2; ++queue) parked_sync_fails(queue);
  }

  // One command fails, in its checks, its engine, its record or its fetch. Returns how many
  // commands it compared.
  uint64_t error_round() {
    begin();
    d_.engine_latency = d_.random.below(200);
    const unsigned count = 12, q = unsigned(d_.random.below(2));
    const unsigned victim = unsigned(d_.random.below(count));
    for (unsigned i = 0; i < count; ++i)
      for (unsigned p = 0; p < 2; ++p) packets_[p].push_back(random_packet(p));
    const ErrorCode code = inject_fault(q, victim);
    feed();
    const uint32_t found = d_.read(csr::kErrorCode);
    check(d_.state() == csr::kStatusStateError, "no error");
    check(found == (uint32_t(code) | q << 8), "error %x, expected %x", found,
          uint32_t(code) | q << 8);
    check(d_.read(csr::kErrorSeq) == first_[q] + victim, "error of command %u, expected %u",
          d_.read(csr::kErrorSeq) - first_[q], victim);
    check(d_.read(csr::kIrqStatus) & csr::kIrqStatusErrorMask, "no interrupt of the error");
    compare(q, victim + 1, uint32_t(code));
    // Of the other one everything that has started is completed.
    const unsigned done = d_.read(kQueues[!q].completed) - first_[!q];
    check(seen_[!q] <= done, "%u commands of the other queue have run, %u are completed",
          unsigned(seen_[!q]), done);
    compare(!q, done, 0);
    d_.memory.bad_lines.clear();
    acknowledge();
    return victim + 1 + done;
  }

  // Both queues' commands fail at a time: that of the first queue is reported, the other one's
  // number is given back. Whichever queue's command was completed last.
  void two_errors() {
    for (unsigned last = 0; last < 2; ++last) two_errors(last);
  }

  void two_errors(unsigned last) {
    begin();
    packets_[last] = {fill(last, 0x200)};
    feed();
    compare(last, 1, 0);
    d_.write(csr::kIrqStatus, kAllCauses);
    begin();
    d_.engine_latency = 500;
    packets_[0] = {Packet{uint32_t(Opcode::kMatmul), 0, kData, kData, dst(0, 0x100), {2, 2, 2, 1}}};
    packets_[1] = {fill(1, 0x200)};
    d_.failing_dispatch = 0;
    d_.failing_too = 1;
    d_.engine_error = uint32_t(ErrorCode::kBusWrite);
    feed();
    d_.failing_too = SIZE_MAX;
    check(d_.read(csr::kErrorCode) == uint32_t(ErrorCode::kBusWrite), "error of the first queue");
    check(d_.read(csr::kCompleted1) == first_[1], "the second error is completed as well");
    acknowledge();
    begin();
    packets_[1] = {fill(1, 0x200)};
    feed();
    compare(1, 1, 0);
    d_.write(csr::kIrqStatus, kAllCauses);
  }

  // The records of both queues' only commands cannot be written: the same, and the records of the
  // next commands are written.
  void two_bad_records() {
    begin();
    for (unsigned q = 0; q < 2; ++q) {
      packets_[q] = {fill(q, 0x200)};
      d_.memory.bad_lines.insert(record_of(q, 0) / kLineBytes);
    }
    d_.engine_latency = 500;
    feed();
    check(d_.read(csr::kErrorCode) == uint32_t(ErrorCode::kBusWrite), "error of two bad records");
    check(d_.read(csr::kCompleted) == first_[0] + 1 && d_.read(csr::kCompleted1) == first_[1],
          "the second bad record is completed as well");
    d_.memory.bad_lines.clear();
    acknowledge();
    begin();
    for (unsigned q = 0; q < 2; ++q) packets_[q] = {fill(q, 0x200)};
    feed();
    for (unsigned q = 0; q < 2; ++q) compare(q, 1, 0);
    d_.write(csr::kIrqStatus, kAllCauses);
  }

 private:
  void parked_sync_fails(unsigned queue) {
    begin_prompt();
    const uint64_t word = dst(queue, 0x700);
    packets_[queue] = {{uint32_t(Opcode::kCopy), 0, kData, 0, dst(queue, 0x40), {8, 0}},
                       {uint32_t(Opcode::kSync), 0, 0, 0, word, {7}}};
    packets_[!queue].assign(2, {uint32_t(Opcode::kMatmul),
                                0,
                                kData + 0x2000,
                                kData + 0x2100,
                                dst(!queue, 0x2200),
                                {2, 2, 2, 1}});
    d_.memory.bad_lines.insert(word / kLineBytes);
    start_slow(queue);
    for (unsigned i = 0; i < 60; ++i) d_.tick();
    feed();
    d_.slow_dispatch = SIZE_MAX;
    const uint32_t expected = uint32_t(ErrorCode::kBusWrite) | queue << 8;
    check(d_.read(csr::kErrorCode) == expected,
          "error %x of a SYNC that was put aside, expected %x", d_.read(csr::kErrorCode), expected);
    d_.memory.bad_lines.clear();
    acknowledge();
  }

  // The code that must come of it.
  ErrorCode inject_fault(unsigned q, unsigned victim) {
    const uint64_t way = d_.random.below(4);
    Packet& packet = packets_[q][victim];
    if (way == 0) {
      packet.opcode = 77;
      return ErrorCode::kBadOpcode;
    }
    if (way == 1) {
      d_.memory.bad_lines.insert(record_of(q, victim) / kLineBytes);
      return ErrorCode::kBusWrite;
    }
    if (way == 2) {
      const unsigned slot = (tail_[q] + victim) % kSlots;
      d_.memory.bad_lines.insert(kQueues[q].ring / kLineBytes + slot);
      packet = {};
      return ErrorCode::kBusRead;
    }
    packet = fill(q, 0x100);
    failing_[q] = victim;
    return q == 0 ? ErrorCode::kBusWrite : ErrorCode::kBusRead;
  }

  void acknowledge() {
    const size_t ran = d_.dispatched.size();
    const uint64_t lines = d_.lines_read;
    for (unsigned i = 0; i < 100; ++i) d_.tick();
    check(d_.lines_read == lines, "a ring is read in state ERROR");
    d_.write(csr::kIrqStatus, kAllCauses);
    d_.acknowledge_error();
    check(d_.idle_and_empty(), "state after error_ack");
    for (unsigned q = 0; q < 2; ++q)
      check(d_.read(kQueues[q].head) == tail_[q], "error_ack drops both rings");
    for (unsigned i = 0; i < 100; ++i) d_.tick();
    check(d_.dispatched.size() == ran, "a command ran after the error");
  }
};
