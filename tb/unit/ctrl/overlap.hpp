// SPDX-License-Identifier: Apache-2.0
// Commands that overlap: pairs with one dependence and without, descriptors that a running command
// writes, what is waited for and how long.
#pragma once

#include "batch.hpp"

class Overlap {
 public:
  explicit Overlap(uint64_t seed) : d_(seed), session_(d_) {
    d_.stalls.all(0);
    d_.latency = 0;
    d_.engine_latency = kLong;
    d_.on_read = [this](uint64_t line) {
      check(line != guarded_ || d_.events.empty() || !writer_runs(),
            "a descriptor is read while a command writes it");
    };
  }

  // One operand of the second command meets one of the first, by its last or its first byte, or
  // misses it by one. Returns how many pairs it compared.
  uint64_t pairs() {
    uint64_t compared = 0;
    for (const bool write_first : {false, true})
      for (const bool write_second : {false, true})
        for (const int64_t gap : {-1, 0, 1})
          for (const bool below : {false, true}) {
            pair(write_first, write_second, gap, below);
            ++compared;
          }
    return compared;
  }

  // The descriptor of the second command lies where the first one writes, or beside it.
  void descriptor(bool written) {
    const uint64_t target = kDescriptors + (written ? 0 : kLineBytes);
    guarded_ = written ? kDescriptors : 0;
    run({Packet{uint32_t(Opcode::kFill), 0, 0, 0, target, {4, 0}}, described()});
    check((record(1).operand_wait != 0) == written, "waited %u cycles for a descriptor",
          record(1).operand_wait);
    guarded_ = 0;
  }

  // The descriptor of the second command lies where the first one reads.
  void descriptor_that_is_read() {
    run({copy(kDescriptors, kData + 0x2000), described()});
    check(record(1).operand_wait == 0 && record(1).start_cycle < record(0).end_cycle,
          "waited %u cycles for a command that only reads a descriptor", record(1).operand_wait);
  }

  // Engines at work at a time, and two commands of one engine; a third one waits for it alone.
  void engines() {
    d_.most_running = 0;
    d_.memory.put(kDescriptors, Descriptor{kData + 0x3000, 0, 1, {4}, {1}, 0});
    d_.memory.put(kDescriptors + kLineBytes, Descriptor{kData + 0x3100, 4, 1, {4}, {1}, 0});
    d_.memory.put(kDescriptors + 2 * kLineBytes, Descriptor{kData + 0x3200, 0, 1, {4}, {1}, 0});
    const uint32_t indexed =
        kSrc1DescMask | kSrc2DescMask | kDstDescMask | uint32_t(DType::kInt32) << kSrc2DtypeShift;
    run({copy(kData, kData + 0x100),
         Packet{uint32_t(Opcode::kMatmul),
                0,
                kData + 0x1000,
                kData + 0x1100,
                kData + 0x1200,
                {2, 2, 2, 1}},
         Packet{uint32_t(Opcode::kFill), 0, 0, 0, kData + 0x2000, {4, 0}},
         Packet{uint32_t(Opcode::kFill), 0, 0, 0, kData + 0x2100, {4, 0}},
         Packet{uint32_t(Opcode::kGather),
                indexed,
                kDescriptors,
                kDescriptors + kLineBytes,
                kDescriptors + 2 * kLineBytes,
                {0}},
         copy(kData + 0x4000, kData + 0x4100)});
    check(record(1).start_cycle < record(0).end_cycle, "MATMUL waits for an independent COPY");
    check(record(2).start_cycle < record(0).end_cycle && record(2).engine_wait == 0,
          "FILL waits %u cycles for the engine of a COPY", record(2).engine_wait);
    check(record(3).start_cycle > record(0).end_cycle && record(3).operand_wait == 0 &&
              record(3).engine_wait > kLong / 2,
          "third command of an engine: waits %u and %u", record(3).engine_wait,
          record(3).operand_wait);
    check(record(4).start_cycle < record(3).end_cycle, "GATHER waits for an independent FILL");
    check(record(5).start_cycle > record(4).end_cycle && record(5).operand_wait != 0 &&
              record(5).waited_for == first_ + 4,
          "COPY behind GATHER: waited for %u", record(5).waited_for);
    check(d_.most_running >= 3, "%u channels at a time", d_.most_running);
    waits_of_engines();
  }

 private:
  // After engines(): the second FILL waited for COPY's engine, the last COPY for the GATHER.
  void waits_of_engines() {
    const uint32_t busy = uint32_t(record(4).end_cycle - record(4).start_cycle);
    check(d_.read(csr::kEngineBusy + 4 * kGather) == busy, "ENGINE_BUSY");
    const uint64_t moved =
        record(3).end_cycle - record(0).start_cycle + record(5).end_cycle - record(5).start_cycle;
    check(d_.read(csr::kEngineBusy + 4 * kCopy) == moved,
          "ENGINE_BUSY with two commands at a time");
    check(d_.read(csr::kEngineBusy + 4 * kVector) == 0, "ENGINE_BUSY without a command");
    for (unsigned i = 0; i < kEngines; ++i)
      check(d_.read(csr::kEngineWait + 4 * i) == (i == kCopy ? record(3).engine_wait : 0),
            "ENGINE_WAIT of engine %u", i);
    for (unsigned i = 0; i < kEngines * kEngines; ++i)
      check(d_.read(csr::kCommandWait + 4 * i) ==
                (i == kCopy * kEngines + kGather ? record(5).operand_wait : 0),
            "COMMAND_WAIT of pair %u", i);
  }

  static constexpr uint64_t kLong = 600;

  // A MATMUL whose destination has its descriptor, written here, at kDescriptors.
  Packet described() {
    d_.memory.put(kDescriptors, Descriptor{kData, 0, 3, {1, 2, 2}, {4, 2, 1}, 0});
    return {uint32_t(Opcode::kMatmul),
            kDstDescMask,
            kData + 0x100,
            kData + 0x200,
            kDescriptors,
            {2, 2, 2, 1}};
  }

  static Packet copy(uint64_t from, uint64_t to) {
    return {uint32_t(Opcode::kCopy), 0, from, 0, to, {4, 0}};
  }

  Completion record(unsigned i) const {
    return d_.memory.get<Completion>(kRecords +
                                     kLineBytes * ((first_ + i) % Session::kRecordSlots));
  }

  bool writer_runs() const { return d_.cycle < started_ + kLong; }

  void run(const std::vector<Packet>& packets) {
    first_ = d_.read(csr::kCompleted);
    d_.write(csr::kPerfCtrl, csr::kPerfCtrlClearMask);
    d_.dispatched.clear();
    d_.events.clear();
    for (const Packet& packet : packets) session_.append(packet);
    session_.ring_doorbell();
    d_.until("the first starts", [&] { return !d_.dispatched.empty(); });
    started_ = d_.cycle;
    session_.wait();
    check(d_.read(csr::kErrorCode) == 0, "error %u", d_.read(csr::kErrorCode));
    check(d_.read(csr::kCompleted) == first_ + packets.size(), "commands completed");
  }

  // A COPY of 16 bytes, then a MATMUL of bytes 1 × 1 (destination of 4): the last byte of the lower
  // operand is `gap` bytes below the first one of the upper; 0 is the byte before it.
  void pair(bool write_first, bool write_second, int64_t gap, bool below) {
    const uint64_t place = kData + 0x8000;
    const unsigned second_bytes = write_second ? 4 : 1;
    // A word of a destination is aligned: then a miss is four bytes away.
    const int64_t step = write_second ? 4 : 1;
    const uint64_t other = below ? place - uint64_t(gap < 0 ? int64_t(second_bytes) - step
                                                            : int64_t(second_bytes) + gap * step)
                                 : place + uint64_t(16 + (gap < 0 ? -step : gap * step));
    const Packet first = {uint32_t(Opcode::kCopy),     kBytes, write_first ? kData : place, 0,
                          write_first ? place : kData, {16, 0}};
    const Packet second = {uint32_t(Opcode::kMatmul),
                           kSums,
                           write_second ? kData + 0x9000 : other,
                           kData + 0x9100,
                           write_second ? other : kData + 0x9200,
                           {1, 1, 1, 1}};
    run({first, second});
    const bool waits = gap < 0 && (write_first || write_second);
    const Completion done = record(1);
    check((done.operand_wait != 0) == waits && (done.start_cycle > record(0).end_cycle) == waits,
          "COPY %s, MATMUL %s, gap %d: waited %u cycles", write_first ? "writes" : "reads",
          write_second ? "writes" : "reads", int(gap), done.operand_wait);
    check(done.waited_for == (waits ? first_ : 0), "waited for %u", done.waited_for);
  }

  static constexpr uint32_t kBytes =
      uint32_t(DType::kInt8) << kSrcDtypeShift | uint32_t(DType::kInt8) << kDstDtypeShift;
  static constexpr uint32_t kSums =
      uint32_t(DType::kInt8) << kSrcDtypeShift | uint32_t(DType::kInt32) << kDstDtypeShift;
  Device d_;
  Session session_;
  uint32_t first_ = 0;    // sequence number of the first command of a run
  uint64_t started_ = 0;  // cycle in which it started
  uint64_t guarded_ = 0;  // line that is not to be read while it runs
};
