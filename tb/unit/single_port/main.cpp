// SPDX-License-Identifier: Apache-2.0
// Bench of the memory controller with whole writes, behind it a memory that serves one burst at a
// time: the traffic of bench `mem`. Arguments: [seed] [rounds] [result.json]. One line per part;
// stops at the first difference.
#include "traffic.hpp"

namespace {

struct SinglePort : Bench {
  explicit SinglePort(uint64_t seed) : Bench(seed) { slave.shape.single_port = true; }
};

// Reads and writes of the longest bursts in turn: each takes its beats, its latency and little
// else.
void long_copy(uint64_t seed) {
  constexpr uint64_t kBytes = 65536, kLatency = 100, kOverhead = 8;
  SinglePort bench(seed);
  const CopyCommand command = copy_1d(kBytes, 5, 7);
  command.apply(bench.memory);
  bench.engine.start(command);
  bench.run();
  const uint64_t beats = bench.slave.read_beats + bench.slave.write_beats;
  const uint64_t bursts = bench.slave.read_bursts + bench.slave.write_bursts;
  const uint64_t cycles = bench.engine.finished - bench.engine.started;
  const uint64_t most = beats + bursts * (kLatency + kOverhead);
  check(cycles <= most, "a COPY of %llu bytes takes %llu cycles, at most %llu",
        (unsigned long long)kBytes, (unsigned long long)cycles, (unsigned long long)most);
  const uint64_t compared = bench.memory.compare(kMemBase, kMemLimit, "long copy");
  summary.compared += compared;
  std::printf("long     %llu beats in %llu bursts, %llu cycles, compared %llu bytes, differing 0\n",
              (unsigned long long)beats, (unsigned long long)bursts, (unsigned long long)cycles,
              (unsigned long long)compared);
}

}  // namespace

int main(int argc, char** argv) {
  return bench_main(argc, argv, [](uint64_t seed, uint64_t rounds) {
    long_copy(seed);
    for (const bool gives : {false, true}) {
      SinglePort bench(seed);
      stuck_host(bench, gives, !gives);
    }
    SinglePort plain(seed), moving(seed + 1);
    clients(plain, rounds);
    copies(moving, rounds * 20);
  });
}
