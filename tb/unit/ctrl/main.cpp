// SPDX-License-Identifier: Apache-2.0
// Bench of the command processor: registers, queues, recovery, and random packets against the
// cmodel's checks. Prints one line per part; stops at the first difference.
#include <algorithm>
#include <array>

#include "bench_main.hpp"
#include "corners.hpp"
#include "failures.hpp"
#include "overlap.hpp"
#include "same_cycle.hpp"
#include "streams.hpp"

namespace {

void registers(uint64_t seed) {
  Device device(seed);
  check(device.read(csr::kId) == 0x4E505530, "ID");
  check(device.read(csr::kVersion) == npu::isa::kVersion, "VERSION");
  check(device.read(csr::kConfig) == (16 | BUS_BITS << 8 | 4 << 24), "CONFIG");
  check(device.read(csr::kProgramRam) == (kProgramRam | kProgramRamLines << 16), "PROGRAM_RAM");
  check(device.idle_and_empty(), "STATUS after reset");
  check(device.read(csr::kErrorSeq) == 0 && device.read(csr::kCompleted) == 0,
        "numbers after reset");
  for (uint32_t offset : {0x02Cu, 0x0C4u, 0x13Cu, 0x1000u, 0xFFFCu}) {
    unsigned response = 0;
    device.read(offset, &response);
    check(response == 2, "read of %x answered %u", offset, response);
    check(device.write(offset, 1) == 2, "write of %x not refused", offset);
  }
  check(device.write(csr::kId, 0) == 0 && device.read(csr::kId) == 0x4E505530, "ID was written");
  device.write(csr::kRingBaseLo, 0xFFFFFFFF);
  check(device.read(csr::kRingBaseLo) == 0xFFFFFFC0, "RING_BASE_LO low bits");
  device.write(csr::kIrqEnable, 0xFFFFFFFF);
  check(device.read(csr::kIrqEnable) == kAllCauses, "IRQ_ENABLE width");
  for (uint32_t pattern : {0x5555'1230u, 0xAAAA'EDC0u}) {
    for (unsigned i = 0; i < 16; ++i) device.write(csr::kCmdWord + 4 * i, pattern + i);
    for (unsigned i = 0; i < 16; ++i)
      check(device.read(csr::kCmdWord + 4 * i) == pattern + i, "CMD_WORD %u", i);
    for (unsigned base : {csr::kRingBaseHi, csr::kCplBaseHi}) {
      device.write(base, pattern);
      check(device.read(base) == pattern, "upper word of the base at %x", base);
    }
  }
  for (unsigned byte = 0; byte < 4; ++byte) {
    const uint32_t held = device.read(csr::kCmdWord), mask = 0xFFu << 8 * byte;
    device.write(csr::kCmdWord, ~held, 1u << byte);
    check(device.read(csr::kCmdWord) == (held ^ mask), "byte %u of CMD_WORD alone", byte);
  }
  const uint32_t before = device.read(csr::kCycleLo);
  check(device.read(csr::kCycleLo) > before && device.read(csr::kCycleHi) == 0, "CYCLE");
  device.write(csr::kCtrl, csr::kCtrlSoftResetMask);
  check(device.read(csr::kCtrl) == 0 && device.soft_resets == 1, "soft reset of an idle device");
  check(device.read(csr::kIrqEnable) == 0 && device.read(csr::kCmdWord) == 0,
        "registers after reset");
  std::printf("registers   ok\n");
}

// RING_HEAD is 3 and the ring is empty. A smaller ring goes on at RING_HEAD modulo its slots.
void resized_ring(Device& device) {
  const uint64_t lines = device.lines_read;
  const uint32_t completed = device.read(csr::kCompleted);
  device.write(csr::kRingCtrl, enabled_ring(0));
  for (unsigned i = 0; i < 500; ++i) device.tick();
  check(device.read(csr::kStatus) == (csr::kStatusStateDone | kNothingQueued) &&
            device.read(csr::kRingHead) == 0 && device.lines_read == lines,
        "a ring without slots is not empty");
  device.write(csr::kRingCtrl, disabled_ring(1));
  check(device.read(csr::kRingHead) == 1, "RING_HEAD of two slots");
  device.memory.put(kRing + kLineBytes, Packet{uint32_t(Opcode::kFill), 0, 0, 0, kData, {1, 0}});
  device.write(csr::kRingTail, 1);
  device.write(csr::kRingCtrl, enabled_ring(1));
  device.write(csr::kRingTail, 0);
  device.until("the packet of the last slot has run",
               [&] { return device.read(csr::kRingHead) == 0; });
  check(device.read(csr::kCompleted) == completed + 1 && device.lines_read == lines + 1,
        "two slots: packets that were run");
}

// A command runs, the next one is checked; four more wait, the seventh is dropped. Then queue
// before ring.
void queues(uint64_t seed) {
  Device device(seed);
  Session session(device);
  device.engine_latency = 3000;
  Packet fill{uint32_t(Opcode::kFill), 0, 0, 0, kData, {1, 0}};
  for (unsigned i = 0; i < 7; ++i) {
    fill.param[kFillValue] = i;
    session.push(fill);
  }
  check(device.read(csr::kStatus) ==
            (csr::kStatusStateBusy | csr::kStatusCsrQueueFullMask | kRingsEmpty),
        "a full queue");
  session.wait();
  check(device.dispatched.size() == 6 && device.read(csr::kCompleted) == 6,
        "the seventh push must be lost");

  device.dispatched.clear();
  for (unsigned i = 0; i < 3; ++i) {
    fill.param[kFillValue] = i;
    session.append(fill);
  }
  const uint64_t lines = device.lines_read;
  session.ring_doorbell();
  device.until("a command starts", [&] { return !device.dispatched.empty(); });
  for (unsigned i = 0; i < 500; ++i) device.tick();
  check(device.lines_read == lines + 3, "the ring is not read ahead");
  fill.param[kFillValue] = 100;
  session.push(fill);
  session.wait();
  const std::array<uint32_t, 4> order{0, 1, 100, 2};
  for (unsigned i = 0; i < 4; ++i)
    check(device.dispatched.at(i).value == order[i], "command %u out of order", i);
  check(device.read(csr::kRingHead) == 3 &&
            device.read(csr::kStatus) == (csr::kStatusStateDone | kNothingQueued),
        "ring head");
  check(device.read(csr::kCommandsLo) == 10, "COMMANDS");
  device.write(csr::kPerfCtrl, csr::kPerfCtrlClearMask);
  check(device.read(csr::kCommandsLo) == 0 && device.read(csr::kBusyCyclesLo) == 0,
        "PERF_CTRL.clear");
  resized_ring(device);
  std::printf("queues      ok\n");
}

// Soft reset with a command under way, a queue and prefetched packets behind it.
void soft_reset(uint64_t seed) {
  Device device(seed);
  for (unsigned round = 0; round < 40; ++round) {
    Session session(device);
    device.dispatched.clear();
    device.engine_latency = device.random.below(300);
    for (unsigned i = 0; i < 8; ++i)
      session.append({uint32_t(Opcode::kFill), 0, 0, 0, kData, {1, i}});
    session.ring_doorbell();
    // Every other time the ring is slow, and commands of the other queue run meanwhile.
    device.read_delay = round % 2 * 2000;
    for (unsigned i = 0; i < round % 2 * 4; ++i)
      session.push({uint32_t(Opcode::kFill), 0, 0, 0, kData, {1, i}});
    for (uint64_t n = device.random.below(600); n > 0; --n) device.tick();
    const uint64_t resets = device.soft_resets;
    device.write(csr::kCtrl, csr::kCtrlSoftResetMask);
    const size_t under_way = device.dispatched.size() + 1;
    device.until("soft reset ends", [&] { return device.read(csr::kCtrl) == 0; });
    check(device.soft_resets == resets + 1, "one reset");
    const size_t ran = device.dispatched.size();
    check(ran <= under_way, "commands start while a reset is pending");
    check(device.idle_and_empty() && device.read(csr::kCompleted) == 0 &&
              device.read(csr::kRingTail) == 0 && device.read(csr::kIrqStatus) == 0,
          "state after soft reset");
    for (unsigned i = 0; i < 300; ++i) device.tick();
    check(device.dispatched.size() == ran, "a command ran after soft reset");
  }
  std::printf("soft reset  ok, 40 times\n");
}

// A packet whose checks fail after a soft reset was asked for leaves no record.
void reset_during_checks(uint64_t seed) {
  Device device(seed);
  Session session(device);
  device.memory.put(kDescriptors, Descriptor{kData, 0, 0, {}, {}, 0});  // of rank 0
  device.memory.put(kRecords, Completion{});
  session.append({uint32_t(Opcode::kCopy), kSrc1DescMask, kDescriptors, 0, kData, {}});
  device.on_read = [&](uint64_t) { device.read_delay = 2000; };  // the descriptor comes late
  const uint64_t lines = device.lines_read;
  session.ring_doorbell();
  device.until("the descriptor is asked for", [&] { return device.lines_read == lines + 2; });
  device.write(csr::kCtrl, csr::kCtrlSoftResetMask);
  device.until("soft reset ends", [&] { return device.read(csr::kCtrl) == 0; });
  for (unsigned i = 0; i < 300; ++i) device.tick();
  check(device.memory.get<Completion>(kRecords).status == 0,
        "a record of a packet that did not start before the reset");
  std::printf("soft reset  ok, during checks\n");
}

// Operands that end just inside the memory, and just outside, of every type; the same below it.
void edges(uint64_t seed) {
  Device device(seed);
  Session session(device);
  unsigned inside = 0, outside = 0;
  for (uint32_t dtype = 0; dtype < uint32_t(DType::kInt64); ++dtype) {
    for (uint32_t count = 1; count <= 4; ++count) {
      const uint64_t element = kDTypeBytes[dtype], end = kMemLimit - count * element;
      for (uint64_t base : {end - element, end, end + element, kMemBase - element, kMemBase}) {
        const Packet fill{uint32_t(Opcode::kFill), dtype << kDstDtypeShift, 0, 0, base, {count, 0}};
        const bool failed = session.single(fill).error != ErrorCode::kNone;
        ++(failed ? outside : inside);
      }
    }
  }
  check(inside == 72 && outside == 48, "%u inside, %u outside", inside, outside);
  std::printf("edges       %u operands inside, %u outside\n", inside, outside);
}

// Commands at the same time.
void overlap(uint64_t seed) {
  Overlap bench(seed);
  const uint64_t compared = bench.pairs();
  bench.descriptor(false);
  bench.descriptor(true);
  bench.descriptor_that_is_read();
  bench.engines();
  std::printf("overlap     %llu pairs, differing 0\n", (unsigned long long)compared);
  summary.compared += compared;
}

// Two queues.
void streams(uint64_t seed, uint64_t rounds) {
  Streams bench(seed);
  uint64_t commands = 0, before_errors = 0;
  bench.turns(true);
  bench.turns(false);
  bench.completions_turn();
  bench.passes();
  bench.last_blocker_counts();
  bench.descriptors_of_the_other();
  bench.nothing_to_wait_for();
  bench.one_start_per_cycle();
  for (uint64_t i = 0; i < rounds; ++i) commands += bench.random_round();
  for (uint64_t i = 0; i < 40; ++i) bench.soft_reset();
  bench.lines_turn();
  Failures failures(seed);
  failures.parked_sync_fails();
  for (uint64_t i = 0; i < rounds; ++i) before_errors += failures.error_round();
  failures.two_errors();
  failures.two_bad_records();
  std::printf("two queues  %llu commands, %llu before errors, differing 0\n",
              (unsigned long long)commands, (unsigned long long)before_errors);
  summary.compared += commands + before_errors;
}

void random_batches(uint64_t seed, uint64_t batches) {
  Device device(seed);
  Session session(device);
  std::array<uint64_t, 13> errors{};
  uint64_t commands = 0;
  for (uint64_t i = 0; i < batches; ++i) {
    device.stalls.shuffle(device.random, kStallPercents);
    device.latency = unsigned(device.random.below(3) * 40);
    const Outcome outcome = session.random_batch();
    commands += outcome.commands;
    ++errors[size_t(outcome.error)];
  }
  std::printf("random      %llu commands in %llu batches, differing 0; by error code:",
              (unsigned long long)commands, (unsigned long long)batches);
  for (uint64_t count : errors) std::printf(" %llu", (unsigned long long)count);
  std::printf("\n");
  for (size_t code = 0; code < errors.size(); ++code)
    check(errors[code] >= batches / 400, "error code %zu hardly seen", code);
  summary.compared += commands;
}

// Sequence numbers and counters carry into each of their upper bits, which no run is long enough
// for, and sequence numbers begin again at 0.
void old_devices(uint64_t seed) {
  uint64_t commands = 0;
  for (unsigned power = 8; power <= 64; power += 8) {
    for (const unsigned bits : {power - 1, power}) {
      Device device(seed + bits);
      Session session(device);
      const uint64_t carry = bits < 64 ? uint64_t(1) << bits : 0;
      const uint32_t numbers = uint32_t(uint64_t(1) << std::min(bits, 32u));
      session.grow_old(numbers - 3, carry - 4);
      const uint64_t first = commands;
      while (commands < first + 6) commands += session.random_batch().commands;
    }
  }
  std::printf("carries     %llu commands, differing 0\n", (unsigned long long)commands);
  summary.compared += commands;
}

// Which of two wrong things is reported.
void order_of_checks(uint64_t seed, uint64_t packets) {
  Device device(seed);
  Session session(device);
  uint64_t refused = 0;
  for (uint64_t i = 0; i < packets; ++i) refused += session.twice_wrong().error != ErrorCode::kNone;
  check(refused > packets / 2, "only %llu packets were refused", (unsigned long long)refused);
  std::printf("order       %llu packets with two things wrong, %llu refused, differing 0\n",
              (unsigned long long)packets, (unsigned long long)refused);
  summary.compared += packets;
}

// Cycles that the device is busy with a command, at 100 cycles of memory latency.
uint64_t overhead(const char* name, const Packet& packet) {
  Device device(1);
  Session session(device);
  device.stalls.all(0);
  device.latency = 0;
  device.fixed_latency = 100;
  device.memory.put(kDescriptors, Descriptor{kData, 0, 2, {4, 4}, {4, 1}, 0});
  session.append(packet);
  session.ring_doorbell();
  session.wait();
  check(device.read(csr::kErrorCode) == 0, "%s failed", name);
  const auto record = device.memory.get<Completion>(kRecords);
  const uint32_t busy = device.read(csr::kBusyCyclesLo);
  std::printf("overhead    %-26s %3llu cycles in its record, BUSY for %u\n", name,
              (unsigned long long)(record.end_cycle - record.start_cycle), busy);
  summary.figures[name] = busy;
  return busy;
}

// A program of three sources, all operands the same descriptor.
Packet with_descriptors() {
  uint32_t number = 0;
  for (const auto& named : named_programs())
    if (programs().find(named.line)->sources == 3) number = named.line;
  return {uint32_t(Opcode::kVector),
          kSrc1DescMask | kSrc2DescMask | kSrc3DescMask | kDstDescMask,
          kDescriptors,
          kDescriptors,
          kDescriptors,
          {number, 0, 0, 0, 0, 0, uint32_t(kDescriptors), uint32_t(kDescriptors >> 32)}};
}

}  // namespace

int main(int argc, char** argv) {
  return bench_main(argc, argv, [](uint64_t seed, uint64_t rounds) {
    const uint64_t batches = 100 * rounds;
    registers(seed);
    queues(seed);
    soft_reset(seed);
    reset_during_checks(seed);
    edges(seed);
    Corners::all(seed);
    SameCycle same_cycle(seed);
    same_cycle.causes();
    same_cycle.counters();
    overlap(seed);
    // The long streams come last: few mistakes need them, and most of those that do show in some.
    streams(seed + 1, batches / 400);
    random_batches(seed, batches);
    old_devices(seed);
    order_of_checks(seed + 1, batches);
    streams(seed, batches / 20);
    overhead("NOP", {});
    const uint64_t matmul =
        overhead("MATMUL", {uint32_t(Opcode::kMatmul), 0, kData, kData, kData, {16, 16, 16, 2}});
    const uint64_t vector = overhead("VECTOR of four descriptors", with_descriptors());
    check(vector < matmul + 150, "descriptors are read one after the other");
  });
}
