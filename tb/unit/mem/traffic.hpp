// SPDX-License-Identifier: Apache-2.0
// Random traffic of the clients, and random COPY and FILL beside it.
#pragma once

#include "bench.hpp"
#include "copy.hpp"

// A host that starts bursts and then neither gives nor takes anything must not hold up the engines.
inline void stuck_host(Bench& bench, bool gives, bool takes) {
  bench.host.to_read = bench.host.to_write = 40;
  bench.host.legal_only = true;
  bench.host.gives = gives;
  bench.host.takes = takes;
  for (int i = 0; i < 5000; ++i) bench.tick();
  const CopyCommand command = copy_1d(65536, 5, 7);
  command.apply(bench.memory);
  bench.engine.start(command);
  for (int i = 0; !bench.engine.idle(); ++i) {
    bench.tick();
    check(i < 100000, "a stuck host holds up COPY");
  }
  bench.host.gives = bench.host.takes = true;
  bench.run();
  const uint64_t compared = bench.memory.compare(kMemBase, kMemLimit, "after a stuck host");
  summary.compared += compared;
  std::printf("stuck    COPY past a host that %s nothing, compared %llu bytes, differing 0\n",
              gives ? "takes" : "gives", (unsigned long long)compared);
}

inline void clients(Bench& bench, uint64_t rounds) {
  uint64_t compared = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    bench.shuffle_conditions();
    for (auto&& bad : bench.memory.bad) bad = round % 4 == 3 && bench.random.below(200) == 0;
    bench.traffic(60);
    bench.run();
    compared += bench.memory.compare(kMemBase, kMemLimit, "memory");
  }
  check(bench.host.refused > rounds, "only %llu illegal bursts",
        (unsigned long long)bench.host.refused);
  compared +=
      bench.reader0.bytes_compared + bench.reader1.bytes_compared + bench.host.bytes_compared;
  summary.compared += compared;
  std::printf(
      "clients  compared %llu bytes, differing 0; %llu + %llu read beats, %llu write requests, "
      "%llu host bursts of which %llu refused\n",
      (unsigned long long)compared, (unsigned long long)bench.reader0.beats,
      (unsigned long long)bench.reader1.beats, (unsigned long long)bench.writer.acknowledged,
      (unsigned long long)(bench.host.reads + bench.host.writes),
      (unsigned long long)bench.host.refused);
}

inline void copies(Bench& bench, uint64_t commands) {
  uint64_t elements = 0, compared = 0;
  for (uint64_t i = 0; i < commands; ++i) {
    bench.shuffle_conditions();
    const CopyCommand command = random_copy(bench.random);
    command.apply(bench.memory);
    if (bench.random.chance(30)) bench.traffic(3);
    bench.engine.start(command);
    bench.run();
    check(bench.engine.err == 0, "command %llu: error %u", (unsigned long long)i, bench.engine.err);
    elements += command.count();
    compared += bench.memory.compare(kMemBase, kMemLimit, "copy");
  }
  summary.compared += compared;
  std::printf("copies   %llu commands, %llu elements, compared %llu bytes, differing 0\n",
              (unsigned long long)commands, (unsigned long long)elements,
              (unsigned long long)compared);
}
