// SPDX-License-Identifier: Apache-2.0
// Cycle counts at DRAM latency 100 without stalls, each with the bound that it must keep.
#pragma once

#include "bench.hpp"
#include "copy.hpp"

constexpr uint64_t kLatency = 100;
// Cycles of a COPY besides its beats and the latencies of its first read and its last write.
constexpr uint64_t kOverhead = 16;

inline CopyCommand copy_2d(uint64_t rows, uint64_t columns, std::array<uint64_t, 2> src,
                           std::array<uint64_t, 2> dst) {
  const Dims size{1, 1, 1, rows, columns};
  // The strides of dimensions of size 1 mean nothing and must cost nothing.
  return {.src = view_of(DType::kFp32, size, {5, 7, 0, src[0], src[1]}, kConstBase),
          .dst = view_of(DType::kFp32, size, {0, 3, 9, dst[0], dst[1]}, kEngineBase)};
}

// Runs a command alone; it must take `beats` cycles and little else.
inline void time_copy(const char* name, const CopyCommand& command, uint64_t beats) {
  Bench bench(1);
  command.apply(bench.memory);
  bench.engine.start(command);
  bench.run();
  summary.compared += bench.memory.compare(kMemBase, kMemLimit, name);
  const AxiSlave& slave = bench.slave;
  const uint64_t total = bench.engine.finished - bench.engine.started;
  const uint64_t cycles = slave.last_read - slave.first_read + 1;
  const double rate = command.fill ? double(slave.write_beats) / double(total - kLatency)
                                   : double(slave.read_beats) / double(cycles);
  summary.figures[name] = rate;
  std::printf("speed    %-30s %6llu cycles, %5llu R beats, %5llu W beats, %.4f per cycle\n", name,
              (unsigned long long)total, (unsigned long long)slave.read_beats,
              (unsigned long long)slave.write_beats, rate);
  check(rate >= 0.99, "%s: %.4f beats per cycle", name, rate);
  check(total <= beats + 2 * kLatency + kOverhead, "%s: %llu cycles for %llu beats", name,
        (unsigned long long)total, (unsigned long long)beats);
  check(slave.read_beats <= beats && slave.write_beats <= beats, "%s: %llu R and %llu W beats",
        name, (unsigned long long)slave.read_beats, (unsigned long long)slave.write_beats);
}

// Two streams of two-beat reads: as many beats per cycle as long bursts, and a fair share for each.
inline void time_short_reads(uint64_t requests) {
  Bench bench(1);
  for (ReadClient* reader : {&bench.reader0, &bench.reader1}) {
    reader->stream_bytes = 2 * kBusBytes;
    reader->to_issue = requests / 2;
  }
  bench.until("one stream has issued all",
              [&] { return bench.reader0.to_issue == 0 || bench.reader1.to_issue == 0; });
  const uint64_t behind = bench.reader0.to_issue + bench.reader1.to_issue;
  check(behind < 4, "2-beat reads: one client is %llu requests behind", (unsigned long long)behind);
  bench.run();
  const AxiSlave& slave = bench.slave;
  const double rate = double(slave.read_beats) / double(slave.last_read - slave.first_read + 1);
  summary.figures["2-beat reads"] = rate;
  std::printf("speed    %-30s %6llu bursts, %.4f per cycle, most outstanding %llu\n",
              "2-beat reads", (unsigned long long)slave.read_bursts, rate,
              (unsigned long long)slave.most_reads);
  check(rate >= 0.99 && slave.most_reads >= 50, "2-beat reads: %.4f beats per cycle", rate);
  check(slave.most_reads <= 1024 / 2, "2-beat reads: %llu outstanding",
        (unsigned long long)slave.most_reads);
}

// Single beats of the critical client beside two streams of pages: it gets half of the bus at
// least, and does not find many of theirs in front of it.
inline void time_critical_client() {
  constexpr uint64_t kPage = 4096, kBurst = kPage / kBusBytes, kBeside = 128, kBeats = 4096;
  Bench bench(1);
  const CopyCommand command = copy_2d(64, 64, {1, 64}, {64, 1});
  command.apply(bench.memory);
  bench.engine.start(command);
  bench.until("64 beats are read", [&] { return bench.slave.read_beats >= 64; });
  for (ReadClient* reader : {&bench.reader0, &bench.reader1}) {
    reader->stream_bytes = kPage;
    reader->to_issue = 4 * kBeats / kBurst;
  }
  uint64_t most = 0;
  bench.until("the COPY has ended", [&] {
    if (bench.slave.unanswered_reads(0) >= 8)
      most = std::max(most, bench.slave.unanswered_reads(1) + bench.slave.unanswered_reads(2));
    return bench.engine.idle();
  });
  const uint64_t total = bench.engine.finished - bench.engine.started;
  const uint64_t others = bench.reader0.beats + bench.reader1.beats;
  const double rate = double(bench.slave.read_beats) / double(total - kLatency);
  summary.figures["critical client beside pages"] = rate;
  std::printf("speed    %-30s %6llu cycles, %llu beats of others, %llu bursts in flight, %.4f\n",
              "single beats beside pages", (unsigned long long)total, (unsigned long long)others,
              (unsigned long long)most, rate);
  check(total <= 2 * (kBeats + kBurst) + 3 * kLatency, "critical client: %llu cycles beside pages",
        (unsigned long long)total);
  check(others >= kBeats / 2, "critical client: %llu beats of others", (unsigned long long)others);
  check(most <= (kBeside + kBurst - 1) / kBurst + 1,
        "critical client: behind %llu bursts of others", (unsigned long long)most);
  check(rate >= 0.95, "critical client: %.4f beats per cycle", rate);
  bench.run();
  summary.compared += bench.memory.compare(kMemBase, kMemLimit, "critical client");
}

// After an error of the first read, the rest of a long command must not be requested. The writes
// fail as well: BUS_READ goes before BUS_WRITE.
inline void time_error() {
  Bench bench(1);
  const CopyCommand command = copy_2d(256, 256, {1, 256}, {1, 256});
  for (const uint64_t addr : {command.src.base, command.dst.base})
    bench.memory.bad[(addr - kMemBase) / kLine] = true;
  bench.engine.start(command);
  bench.run();
  const uint64_t reads = bench.slave.read_bursts, writes = bench.slave.write_bursts;
  std::printf("speed    %-30s %6llu cycles, %llu of 65536 reads sent\n", "COPY, first read fails",
              (unsigned long long)(bench.engine.finished - bench.engine.started),
              (unsigned long long)reads);
  check(bench.engine.err == kBusRead, "first read fails: error %u", bench.engine.err);
  check(reads < 300 && writes < 20, "first read fails: %llu reads and %llu writes were sent",
        (unsigned long long)reads, (unsigned long long)writes);
}

// Rows of one beat that end in two: the engine counts as active in each beat that it writes.
inline void count_active() {
  Bench bench(1);
  const uint64_t words = kBusBytes / 4;
  CopyCommand command = copy_2d(64, words, {words, 1}, {2 * words, 1});
  command.dst.base += 8;
  command.apply(bench.memory);
  bench.engine.start(command);
  bench.run();
  summary.compared += bench.memory.compare(kMemBase, kMemLimit, "rows that end in two beats");
  check(bench.engine.active >= bench.slave.write_beats, "active in %llu cycles, %llu W beats",
        (unsigned long long)bench.engine.active, (unsigned long long)bench.slave.write_beats);
}

inline void speed() {
  count_active();
  check_stalls<Bench>(
      "COPY",
      [](Bench& bench, bool is_long) {
        const CopyCommand command = copy_1d(is_long ? 65536 : 256, 0, 0);
        command.apply(bench.memory);
        bench.engine.start(command);
      },
      0.2, 0.45);
  constexpr uint64_t kBeats = 65536 / kBusBytes;
  time_copy("COPY 64 KiB", copy_1d(65536, 0, 0), kBeats);
  time_copy("COPY 64 KiB, offsets 3 and 8", copy_1d(65536, 3, 8), kBeats + 1);
  time_copy("COPY 255 KiB, offsets 9 and 5", copy_1d(261120, 9, 5), 261120 / kBusBytes + 1);
  CopyCommand fill = copy_1d(65536, 0, 0);
  fill.fill = true;
  time_copy("FILL 64 KiB", fill, kBeats);
  time_copy("COPY 64 rows of one KiB row", copy_2d(64, 256, {0, 1}, {256, 1}), kBeats);
  time_copy("COPY 64 rows of 1 KiB, pitched", copy_2d(64, 256, {320, 1}, {512, 1}), kBeats);
  CopyCommand split = copy_2d(1, 2, {3, 1}, {9, 1});
  split.resize({1, 1, 8192, 1, 2});
  split.src.stride[2] = split.dst.stride[2] = 2;
  time_copy("COPY 8192x1x2, contiguous", split, kBeats);
  time_copy("COPY 64x64 transposed", copy_2d(64, 64, {1, 64}, {64, 1}), 4096);
  time_copy("COPY 64x64, strided both sides", copy_2d(64, 64, {1, 64}, {1, 64}), 4096);
  time_short_reads(4096);
  time_critical_client();
  time_error();
}
