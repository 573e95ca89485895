// SPDX-License-Identifier: Apache-2.0
// Bench of the memory controller and the COPY/FILL engine: random traffic, errors, and cycle
// counts. Arguments: [seed] [rounds] [result.json]. One line per part; stops at the first
// difference.
#include "bench.hpp"
#include "speed.hpp"
#include "traffic.hpp"

namespace {

// A memory that answers writes late: a client issues as many bursts as answers are kept for.
void late_answers(uint64_t seed) {
  constexpr uint64_t kBursts = 256, kRequests = 2 * kBursts;
  Bench bench(seed);
  bench.slave.shape.latency_min = bench.slave.shape.latency_max = 80000;
  bench.writer.to_issue = kRequests;
  bench.run();
  check(bench.writer.acknowledged == kRequests, "late answers: %llu requests acknowledged",
        (unsigned long long)bench.writer.acknowledged);
  check(bench.slave.most_writes == kBursts, "late answers: %llu bursts unanswered, not 256",
        (unsigned long long)bench.slave.most_writes);
  const uint64_t compared = bench.memory.compare(kMemBase, kMemLimit, "late answers");
  summary.compared += compared;
  std::printf("late     %llu bursts unanswered, compared %llu bytes, differing 0\n",
              (unsigned long long)kBursts, (unsigned long long)compared);
}

// A few bad lines around the first and the last byte that the command may touch.
void spoil(Bench& bench, const CopyCommand& command) {
  bench.memory.clear_errors();
  for (uint64_t lines = bench.random.below(4); lines != 0; --lines) {
    const bool source = bench.random.chance(50);
    const TensorView& view = source ? command.src : command.dst;
    const uint64_t addr = view.base + bench.random.below(span_of(view));
    bench.memory.bad[(addr - kMemBase) / kLine] = true;
  }
}

void errors(uint64_t seed, uint64_t commands) {
  Bench bench(seed);
  uint64_t reads = 0, writes = 0, clean = 0;
  for (uint64_t i = 0; i < commands; ++i) {
    bench.shuffle_conditions();
    const CopyCommand command = random_copy(bench.random);
    spoil(bench, command);
    const bool source = !command.fill && touches_bad(bench.memory, command.src);
    const bool target = touches_bad(bench.memory, command.dst);
    if (!source && !target) command.apply(bench.memory);
    if (bench.random.chance(60)) bench.traffic(20);  // which must not see the errors
    bench.engine.start(command);
    bench.run();
    // Bytes that the command does not own must survive an error.
    if (source || target) accept(bench.memory, command.dst);
    summary.compared += bench.memory.compare(kMemBase, kMemLimit, "after an error");
    const unsigned got = bench.engine.err;
    const bool ok = source && target ? got == kBusRead || got == kBusWrite
                                     : got == (source   ? kBusRead
                                               : target ? kBusWrite
                                                        : 0u);
    check(ok, "command %llu: error %u, source bad %d, destination bad %d", (unsigned long long)i,
          got, source, target);
    reads += got == kBusRead, writes += got == kBusWrite, clean += got == 0;
  }
  check(reads && writes && clean, "errors: a case never happened");
  std::printf("errors   %llu commands: %llu read, %llu write, %llu clean\n",
              (unsigned long long)commands, (unsigned long long)reads, (unsigned long long)writes,
              (unsigned long long)clean);
}

}  // namespace

int main(int argc, char** argv) {
  return bench_main(argc, argv, [](uint64_t seed, uint64_t rounds) {
    speed();
    for (const bool gives : {false, true}) {
      Bench bench(seed);
      stuck_host(bench, gives, !gives);
    }
    late_answers(seed);
    Bench plain(seed), moving(seed + 1);
    clients(plain, rounds);
    copies(moving, rounds * 20);
    errors(seed + 2, std::max<uint64_t>(rounds * 10, 150));
  });
}
