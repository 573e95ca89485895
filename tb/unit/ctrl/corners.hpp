// SPDX-License-Identifier: Apache-2.0
// Situations that random streams seldom reach: single bytes of a hazard, registers that are used
// out of turn, ends in one cycle.
#pragma once

#include "batch.hpp"
#include "queue_pair.hpp"

// Each member is one situation, on a device of its own without stalls.
class Corners {
 public:
  // A command that reads what the one before writes, by one byte at either end, waits for it.
  static void single_bytes(uint64_t seed) {
    const Packet described{uint32_t(Opcode::kMatmul),
                           kDstDescMask,
                           kData + 0x100,
                           kData + 0x200,
                           kDescriptors,
                           {2, 2, 2, 1}};
    waits(seed, "first byte of a descriptor", bytes(kDescriptors - 15), described, kDescriptors);
    waits(seed, "last byte of a descriptor", bytes(kDescriptors + 63), described, kDescriptors);
    const uint32_t wide = uint32_t(DType::kInt64) << kSrcDtypeShift | uint32_t(DType::kInt64)
                                                                          << kDstDtypeShift;
    const uint32_t sums = uint32_t(DType::kInt8) << kSrcDtypeShift | uint32_t(DType::kInt32)
                                                                         << kDstDtypeShift;
    const uint64_t place = kData + 0x8000;
    waits(
        seed, "last byte of an int64", {uint32_t(Opcode::kCopy), wide, kData, 0, place, {1, 0}},
        {uint32_t(Opcode::kMatmul), sums, place + 7, kData + 0x9100, kData + 0x9200, {1, 1, 1, 1}},
        kNoLine);
  }

  // Packets that are on their way when their ring is disabled run, and the device is busy until
  // then.
  static void ring_disabled_while_fetching(uint64_t seed, unsigned queue) {
    Corners c(seed);
    constexpr unsigned kFetched = 4, kLog2Slots = 4;
    const QueuePlaces& places = kQueues[queue];
    c.d_.engine_latency = 100;
    c.d_.fixed_latency = 400;
    c.d_.write(places.base_lo, uint32_t(places.ring));
    c.d_.write(places.base_lo + 4, uint32_t(places.ring >> 32));
    c.d_.write(places.control, enabled_ring(kLog2Slots));
    for (unsigned i = 0; i <= kFetched; ++i)
      c.d_.memory.put(places.ring + kLineBytes * i, product());
    c.d_.write(places.tail, kFetched + 1);
    c.d_.until("packets are read", [&] { return c.d_.lines_read == kFetched; });
    c.d_.write(places.control, disabled_ring(kLog2Slots));
    c.d_.until("what was fetched is completed", [&] {
      const uint32_t state = c.d_.state(), done = c.d_.read(places.completed);
      check(done >= kFetched || state == 1, "queue %u: state %u with %u of %u completed", queue,
            state, done, kFetched);
      return done >= kFetched;
    });
  }

  // No interrupt "empty" while a pushed command runs behind one that is completed.
  static void empty_behind_pushed(uint64_t seed) {
    Corners c(seed);
    c.d_.engine_latency = 1500;
    c.d_.slow_dispatch = 1;
    c.session_.push(product());
    c.session_.push(fill());
    c.d_.until("one is completed", [&] { return c.d_.read(csr::kCompleted) == 1; });
    check(!(c.d_.read(csr::kIrqStatus) & csr::kIrqStatusEmptyMask),
          "interrupt: empty, while a pushed command runs");
    c.session_.wait();
  }

  // What a LOAD waits behind a slow record counts the same in its record and in its counter.
  static void wait_of_load(uint64_t seed) {
    Corners c(seed);
    c.d_.engine_latency = 100;
    c.d_.fixed_latency = 300;
    c.session_.append(product());
    c.session_.append({uint32_t(Opcode::kLoad), 0, kData + 0x1000, 0, 0, {kProgramRam, 1}});
    c.session_.ring_doorbell();
    c.session_.wait();
    const uint32_t waited = c.record(1).operand_wait;
    const uint32_t counted = c.d_.read(csr::kCommandWait + 4 * (kEngines * kVector + kMatrix));
    check(counted == waited && waited > 300, "a LOAD waited %u cycles, COMMAND_WAIT is %u", waited,
          counted);
  }

  // error_ack of a device without an error does nothing, also for the error that comes next.
  static void acknowledged_too_early(uint64_t seed) {
    Corners c(seed);
    c.d_.write(csr::kCtrl, csr::kCtrlErrorAckMask);
    c.ticks(20);
    check(c.d_.read(csr::kCtrl) == 0, "error_ack of an idle device stays set");
    c.session_.push(kUnknown);
    c.session_.wait();
    c.ticks(50);
    check(c.d_.state() == csr::kStatusStateError, "an error is left by an earlier error_ack");
  }

  // error_ack drops what waits in a ring that is disabled, too.
  static void acknowledged_while_disabled(uint64_t seed) {
    Corners c(seed);
    c.d_.write(csr::kRing1Ctrl, disabled_ring(4));
    c.d_.write(csr::kRing1Tail, 3);
    c.session_.push(kUnknown);
    c.session_.wait();
    c.d_.acknowledge_error();
    check(c.d_.read(csr::kRing1Head) == 3, "RING1_HEAD is %u after error_ack, RING1_TAIL is 3",
          c.d_.read(csr::kRing1Head));
  }

  // A destination with elements in one place is refused, also of two elements.
  static void window_written_twice(uint64_t seed) {
    npu::isa::Window window = elementary_window();
    window.size[3] = window.size[6] = 2;
    window.stride[3] = 0;
    ends(seed, {window},
         {uint32_t(Opcode::kMatmul), kDstDescMask, kData, kData, kDescriptors, {2, 2, 2, 1}},
         ErrorCode::kBadDescriptor);
  }

  // Sizes whose product is that of the packet but for a bit above the 32 lower ones.
  static void window_too_wide(uint64_t seed) {
    constexpr uint32_t kSize = 1 << 16;
    static_assert(uint32_t(uint64_t(kSize) * (kSize + 1)) == kSize);
    for (const unsigned axis : {1, 4}) {
      npu::isa::Window window = elementary_window();
      window.stride.fill(0);
      window.size[axis + 1] = kSize;
      window.size[axis + 2] = kSize + 1;
      const bool rows = axis == 1;
      const Packet packet{uint32_t(Opcode::kMatmul),
                          rows ? kSrc1DescMask : kSrc2DescMask,
                          rows ? kDescriptors : kData,
                          rows ? kData : kDescriptors,
                          kData + 0x1000,
                          {rows ? kSize : 1, 1, rows ? 1 : kSize, 1}};
      ends(seed, {window}, packet, ErrorCode::kBadDescriptor);
    }
  }

  // In an operand list, too, the type is a whole word of a descriptor.
  static void bits_above_a_type(uint64_t seed) {
    const Descriptor sound{kData, uint32_t(DType::kFp32), 1, {4}, {1}, 0};
    const Packet packet{uint32_t(Opcode::kVector), kOperandListMask, kDescriptors, 0, 0,
                        {elementwise_line()}};
    ends(seed, {sound, sound}, packet, ErrorCode::kNone);
    for (unsigned bit = 4; bit < 32; ++bit) {
      Descriptor source = sound;
      source.dtype |= 1u << bit;
      ends(seed, {source, sound}, packet, ErrorCode::kBadDescriptor);
    }
  }

  // Two commands whose engines end in one cycle have the same end_cycle.
  static void ends_together(uint64_t seed) {
    Corners c(seed);
    c.d_.end_at_multiples_of = 1000;
    c.session_.append(product());
    c.session_.append(fill());
    c.session_.ring_doorbell();
    c.session_.wait();
    check(c.d_.ended_at.at(0) == c.d_.ended_at.at(1), "the engines did not end together");
    check(c.record(0).end_cycle == c.record(1).end_cycle,
          "two ends in one cycle are recorded in cycles %llu and %llu",
          (unsigned long long)c.record(0).end_cycle, (unsigned long long)c.record(1).end_cycle);
  }

  // A soft reset of a device with an error waits for reads under way: busy, and no error any more.
  static void reset_from_error(uint64_t seed) {
    Corners c(seed);
    c.error_while_fetching();
    check(c.d_.read(csr::kErrorCode) == uint32_t(ErrorCode::kBadOpcode), "ERROR_CODE in ERROR");
    c.d_.write(csr::kCtrl, csr::kCtrlSoftResetMask);
    check(c.d_.read(csr::kCtrl) == csr::kCtrlSoftResetMask,
          "a reset does not wait for a read of the ring");
    check(c.d_.state() == csr::kStatusStateBusy, "not busy while a reset waits");
    check(c.d_.read(csr::kErrorCode) == 0, "ERROR_CODE is %u while a reset waits",
          c.d_.read(csr::kErrorCode));
    c.d_.until("the reset", [&] { return c.d_.read(csr::kCtrl) == 0; });
    check(c.d_.idle_and_empty() && c.d_.read(csr::kErrorCode) == 0,
          "state after a reset from ERROR");
  }

  // The last slots of a ring of every size, and its first one behind them. error_ack of an empty
  // ring that is disabled sets RING_HEAD.
  static void end_of_the_ring(uint64_t seed, unsigned queue, unsigned log2_slots) {
    Corners c(seed);
    constexpr uint32_t kLast = 2;
    const QueuePlaces& places = kQueues[queue];
    const uint32_t head = (1u << log2_slots) - kLast;
    // The records stay where they are while the ring moves: their upper word is neither its own nor
    // that of the other queue's records.
    c.d_.write(places.records_lo, uint32_t(places.records));
    c.d_.write(places.records_lo + 4, uint32_t(places.records >> 32));
    c.d_.write(places.records_control, enabled_ring(4));
    const QueuePlaces& other = kQueues[1 - queue];
    c.d_.write(other.records_control, disabled_ring(0));
    c.d_.write(other.records_lo + 4, 0);
    c.d_.write(places.control, disabled_ring(log2_slots));
    c.d_.write(places.tail, head);
    c.session_.push(kUnknown);
    c.session_.wait();
    c.d_.acknowledge_error();
    const auto run = [&](uint64_t base, uint32_t first, uint32_t count, uint32_t tail) {
      c.d_.write(places.control, disabled_ring(log2_slots));
      c.d_.write(places.base_lo, uint32_t(base));
      c.d_.write(places.base_lo + 4, uint32_t(base >> 32));
      for (uint32_t i = 0; i < count; ++i)
        c.d_.memory.put(base + kLineBytes * uint64_t(first + i), product());
      c.d_.dispatched.clear();
      c.d_.write(places.tail, tail);
      c.d_.write(places.control, enabled_ring(log2_slots));
      c.d_.until("the ring is empty", [&] {
        return c.d_.read(places.head) == tail && c.d_.state() != csr::kStatusStateBusy;
      });
      check(c.d_.dispatched.size() == count && c.d_.read(csr::kErrorCode) == 0,
            "a ring of 2^%u slots: %zu of %u commands from slot %u on, error %u", log2_slots,
            c.d_.dispatched.size(), count, first, c.d_.read(csr::kErrorCode));
    };
    // A large ring reaches beyond the memory: first its end lies there, then its beginning.
    run(places.ring - kLineBytes * uint64_t(head), head, kLast, 0);
    run(places.ring, 0, 1, 1);
  }

  // Thousands of commands, until the records have gone round: each of the last ones lies in the
  // slot of its number.
  static void many_records(uint64_t seed) {
    Corners c(seed);
    constexpr unsigned kLog2Slots = 11, kLog2Records = 13, kCount = (1 << kLog2Slots) - 1;
    constexpr uint64_t kManyRecords = kMemBase + 0x8'0000;
    static_assert(kManyRecords + (kLineBytes << kLog2Records) <= kMemLimit);
    static_assert(kData + (kLineBytes << kLog2Slots) <= kManyRecords);
    c.d_.write(csr::kRingCtrl, disabled_ring(0));
    c.d_.write(csr::kRingBaseLo, uint32_t(kData));
    c.d_.write(csr::kRingCtrl, enabled_ring(kLog2Slots));
    c.d_.write(csr::kCplBaseLo, uint32_t(kManyRecords));
    c.d_.write(csr::kCplCtrl, enabled_ring(kLog2Records));
    for (unsigned i = 0; i <= kCount; ++i) c.d_.memory.put(kData + kLineBytes * i, Packet{});
    uint32_t completed = 0, tail = 0;
    while (completed <= 1 << kLog2Records) {
      completed += kCount;
      tail = (tail + kCount) % (kCount + 1);
      c.d_.write(csr::kRingTail, tail);
      c.d_.until("a ring of NOPs", [&] { return c.d_.read(csr::kCompleted) == completed; });
    }
    for (uint32_t seq = completed - (1u << kLog2Records); seq < completed; ++seq) {
      const uint64_t slot = seq % (1u << kLog2Records);
      const auto record = c.d_.memory.get<Completion>(kManyRecords + kLineBytes * slot);
      check(record.seq == seq, "record %u lies in the slot of %u", record.seq, seq);
    }
  }

  // So does error_ack: until then the error stands.
  static void acknowledged_while_fetching(uint64_t seed) {
    Corners c(seed);
    c.error_while_fetching();
    c.d_.write(csr::kCtrl, csr::kCtrlErrorAckMask);
    check(c.d_.read(csr::kCtrl) == csr::kCtrlErrorAckMask && c.d_.state() == csr::kStatusStateError,
          "error_ack does not wait for a read of the ring");
    c.d_.until("error_ack is done", [&] { return c.d_.read(csr::kCtrl) == 0; });
    check(c.d_.idle_and_empty() && c.d_.dispatched.empty(), "state after error_ack");
    c.d_.read_delay = 0;
    c.session_.push(product());
    c.session_.wait();
    check(c.d_.dispatched.size() == 1, "a command behind error_ack does not run");
  }

  static void all(uint64_t seed) {
    reset_from_error(seed);
    acknowledged_while_fetching(seed);
    for (unsigned log2_slots = 2; log2_slots <= 16; ++log2_slots)
      for (unsigned queue = 0; queue < 2; ++queue) end_of_the_ring(seed, queue, log2_slots);
    many_records(seed);
    single_bytes(seed);
    for (unsigned queue = 0; queue < 2; ++queue) ring_disabled_while_fetching(seed, queue);
    empty_behind_pushed(seed);
    wait_of_load(seed);
    acknowledged_too_early(seed);
    acknowledged_while_disabled(seed);
    window_written_twice(seed);
    window_too_wide(seed);
    bits_above_a_type(seed);
    ends_together(seed);
    std::printf("corners     ok\n");
  }

 private:
  static constexpr uint64_t kNoLine = 0;
  static constexpr Packet kUnknown{77, 0, 0, 0, 0, {}};

  // The first read of the ring is under way, and a pushed packet has failed.
  void error_while_fetching() {
    d_.read_delay = 3000;
    session_.append(product());
    session_.ring_doorbell();
    d_.until("the ring is read", [&] { return d_.lines_read != 0; });
    session_.push(kUnknown);
    d_.until("an error", [&] { return d_.state() == csr::kStatusStateError; });
  }

  explicit Corners(uint64_t seed) : d_(seed), session_(d_) {
    d_.stalls.all(0);
    d_.latency = 0;
  }

  static Packet product() {
    return {uint32_t(Opcode::kMatmul), 0, kData, kData, kData + 0x1000, {2, 2, 2, 1}};
  }
  static Packet fill() { return {uint32_t(Opcode::kFill), 0, 0, 0, kData + 0x2000, {4, 0}}; }
  // Writes 16 bytes.
  static Packet bytes(uint64_t at) {
    return {uint32_t(Opcode::kFill), uint32_t(DType::kInt8) << kDstDtypeShift, 0, 0, at, {16, 0}};
  }

  // One element.
  static npu::isa::Window elementary_window() {
    npu::isa::Window window{};
    window.base = kData + 0x1000;
    window.rank = npu::isa::kWindowRank;
    window.size.fill(1);
    window.stride.fill(1);
    return window;
  }

  // Where a program of one source and one result begins.
  static uint32_t elementwise_line() {
    for (const auto& named : named_programs()) {
      const npu::VectorProgram& program = *programs().find(named.line);
      if (program.sources == 1 && program.results == 1 && program.reduce == npu::isa::Reduce::kNone)
        return named.line;
    }
    fail("no program of one source");
  }

  // A packet with these descriptors, one behind the other, ends so.
  template <typename Described>
  static void ends(uint64_t seed, std::initializer_list<Described> descriptors,
                   const Packet& packet, ErrorCode error) {
    Corners c(seed);
    uint64_t line = kDescriptors;
    for (const Described& descriptor : descriptors) {
      c.d_.memory.put(line, descriptor);
      line += kLineBytes;
    }
    const auto outcome = c.session_.single(packet);
    check(outcome.error == error, "error code %u, expected %u", unsigned(outcome.error),
          unsigned(error));
  }

  // `second` waits for the end of `first`, and does not read the line `guarded` before.
  static void waits(uint64_t seed, const char* what, const Packet& first, const Packet& second,
                    uint64_t guarded) {
    constexpr uint64_t kLong = 600;
    Corners c(seed);
    c.d_.engine_latency = kLong;
    c.d_.memory.put(kDescriptors, Descriptor{kData, 0, 3, {1, 2, 2}, {4, 2, 1}, 0});
    uint64_t started = 0;
    c.d_.on_read = [&](uint64_t line) {
      check(line != guarded || started == 0 || c.d_.cycle > started + kLong,
            "%s: read while a command writes it", what);
    };
    c.session_.append(first);
    c.session_.append(second);
    c.session_.ring_doorbell();
    c.d_.until("a command starts", [&] { return !c.d_.dispatched.empty(); });
    started = c.d_.cycle;
    c.session_.wait();
    check(c.record(1).operand_wait != 0, "%s: the command that reads it did not wait", what);
    c.d_.on_read = nullptr;
  }

  Completion record(unsigned i) const {
    return d_.memory.get<Completion>(kRecords + kLineBytes * i);
  }
  void ticks(unsigned count) {
    for (unsigned i = 0; i < count; ++i) d_.tick();
  }

  Device d_;
  Session session_;
};
