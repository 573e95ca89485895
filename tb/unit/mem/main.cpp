// SPDX-License-Identifier: Apache-2.0
// Bench of the memory controller and the COPY/FILL engine: random traffic, errors, and cycle counts.
// Usage: mem_bench [seed] [rounds]. Prints one line per part; exit status 1 on the first difference.
#include <memory>

#include "clients.hpp"
#include "host.hpp"
#include "move.hpp"

namespace {

class Bench {
 public:
  Bench(uint64_t seed)
      : random(seed), memory(random), slave(memory, random), reader0(0, memory, random),
        reader1(1, memory, random), writer(memory, random), host(memory, random) {
    top.rst_ni = 0;
    for (int i = 0; i < 4; ++i) tick();
    top.rst_ni = 1;
    tick();
  }

  void tick() {
    top.clk_i = 0;
    for (Model* model : models_) model->drive(top);
    top.eval();
    if (top.rst_ni)
      for (Model* model : models_) model->sample(top, cycle);
    top.clk_i = 1;
    top.eval();
    ++cycle;
  }

  void run(uint64_t limit) {
    const uint64_t start = cycle;
    do {
      tick();
      check(cycle - start < limit, "still busy after %llu cycles", (unsigned long long)limit);
    } while (!std::all_of(models_.begin(), models_.end(), [](Model* m) { return m->idle(); }));
  }

  void stalls(unsigned percent) {
    slave.shape.stall_percent = reader0.stall_percent = reader1.stall_percent = percent;
    writer.stall_percent = host.stall_percent = percent;
  }

  void traffic(uint64_t requests) {
    reader0.to_issue = reader1.to_issue = writer.to_issue = requests;
    host.to_read = host.to_write = requests;
  }

  Vmem_bench top;
  Random random;
  Memory memory;
  AxiSlave slave;
  ReadClient reader0, reader1;
  WriteClient writer;
  Host host;
  Mover mover;
  uint64_t cycle = 0;

 private:
  std::vector<Model*> models_{&slave, &reader0, &reader1, &writer, &host, &mover};
};

void shuffle_conditions(Bench& bench) {
  static constexpr unsigned kStalls[] = {0, 5, 30, 70};
  bench.stalls(kStalls[bench.random.below(4)]);
  bench.slave.shape.latency_min = unsigned(bench.random.below(20));
  bench.slave.shape.latency_max =
      bench.slave.shape.latency_min + unsigned(bench.random.below(2) * bench.random.below(200));
  bench.slave.shape.reorder = bench.random.chance(70);
}

void clients(uint64_t seed, uint64_t rounds) {
  Bench bench(seed);
  uint64_t compared = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    shuffle_conditions(bench);
    for (auto&& bad : bench.memory.bad) bad = round % 4 == 3 && bench.random.chance(10);
    bench.traffic(60);
    bench.run(4000000);
    compared += bench.memory.compare(kMemBase, kMemLimit, "memory");
  }
  check(bench.host.refused > rounds, "only %llu illegal bursts", (unsigned long long)bench.host.refused);
  std::printf("clients  compared %llu bytes, differing 0; %llu + %llu read beats, %llu write requests, "
              "%llu host bursts of which %llu refused\n",
              (unsigned long long)(compared + bench.reader0.bytes_compared +
                                   bench.reader1.bytes_compared + bench.host.bytes_compared),
              (unsigned long long)bench.reader0.beats, (unsigned long long)bench.reader1.beats,
              (unsigned long long)bench.writer.acknowledged,
              (unsigned long long)(bench.host.reads + bench.host.writes),
              (unsigned long long)bench.host.refused);
}

void moves(uint64_t seed, uint64_t commands) {
  Bench bench(seed);
  uint64_t elements = 0, compared = 0;
  for (uint64_t i = 0; i < commands; ++i) {
    shuffle_conditions(bench);
    const MoveCommand move = random_move(bench.random);
    move.apply(bench.memory);
    if (bench.random.chance(30)) bench.traffic(3);
    bench.mover.start(move);
    bench.run(4000000);
    check(bench.mover.err == 0, "move %llu: error %u", (unsigned long long)i, bench.mover.err);
    elements += move.count();
    compared += bench.memory.compare(kMemBase, kMemLimit, "move");
  }
  std::printf("moves    %llu commands, %llu elements, compared %llu bytes, differing 0\n",
              (unsigned long long)commands, (unsigned long long)elements,
              (unsigned long long)compared);
}

// Bytes that the command does not own must survive an error; its destination is unspecified.
void accept_destination(Bench& bench, const MoveCommand& move) {
  move.each([&](uint64_t, uint64_t to) {
    for (unsigned b = 0; b < move.elem(); ++b) bench.memory.want(to + b) = bench.memory.at(to + b);
  });
}

void errors(uint64_t seed, uint64_t commands) {
  Bench bench(seed);
  uint64_t reads = 0, writes = 0, clean = 0;
  for (uint64_t i = 0; i < commands; ++i) {
    shuffle_conditions(bench);
    const MoveCommand move = random_move(bench.random);
    for (auto&& bad : bench.memory.bad) bad = bench.random.chance(3);
    const bool source = !move.fill && move.touches_bad(bench.memory, true);
    const bool target = move.touches_bad(bench.memory, false);
    if (!source && !target) move.apply(bench.memory);
    bench.mover.start(move);
    bench.run(4000000);
    accept_destination(bench, move);
    bench.memory.compare(kMemBase, kMemLimit, "after an error");
    const unsigned got = bench.mover.err;
    const bool ok = source && target ? got == 8 || got == 9 : got == (source ? 8u : target ? 9u : 0u);
    check(ok, "move %llu: error %u, source bad %d, destination bad %d", (unsigned long long)i, got,
          source, target);
    reads += got == 8, writes += got == 9, clean += got == 0;
  }
  check(reads && writes && clean, "errors: a case never happened%s", "");
  std::printf("errors   %llu commands: %llu read, %llu write, %llu clean\n",
              (unsigned long long)commands, (unsigned long long)reads, (unsigned long long)writes,
              (unsigned long long)clean);
}

MoveCommand copy_1d(uint64_t bytes, uint64_t src_offset, uint64_t dst_offset) {
  MoveCommand move;
  move.dtype = 3;
  move.size = {1, 1, 1, 1, static_cast<uint32_t>(bytes)};
  move.src_stride = move.dst_stride = {0, 0, 0, 0, 1};
  move.src += src_offset;
  move.dst += dst_offset;
  return move;
}

// Runs a command alone at latency 100 without stalls and prints its cycles.
void time_move(const char* name, const MoveCommand& move, double least_rate) {
  Bench bench(1);
  move.apply(bench.memory);
  bench.mover.start(move);
  bench.run(4000000);
  bench.memory.compare(kMemBase, kMemLimit, name);
  const AxiSlave& slave = bench.slave;
  const uint64_t total = bench.mover.finished - bench.mover.started;
  const uint64_t window = slave.last_read - slave.first_read + 1;
  const double rate = move.fill ? double(slave.write_beats) / double(total - 100)
                                : double(slave.read_beats) / double(window);
  std::printf("speed    %-28s %6llu cycles, %5llu R beats, %5llu W beats, %.4f beats/cycle, "
              "most reads outstanding %llu\n",
              name, (unsigned long long)total, (unsigned long long)slave.read_beats,
              (unsigned long long)slave.write_beats, rate, (unsigned long long)slave.most_reads);
  check(rate >= least_rate, "%s: %.4f beats per cycle, expected at least %.4f", name, rate, least_rate);
}

void time_short_reads(uint64_t requests) {
  Bench bench(1);
  bench.reader0.stream_bytes = 2 * kBusBytes;
  bench.reader0.to_issue = requests;
  bench.run(4000000);
  const AxiSlave& slave = bench.slave;
  const double rate = double(slave.read_beats) / double(slave.last_read - slave.first_read + 1);
  std::printf("speed    %-28s %6llu bursts, %.4f beats/cycle, most outstanding %llu\n",
              "2-beat reads", (unsigned long long)slave.read_bursts, rate,
              (unsigned long long)slave.most_reads);
  check(rate >= 0.99 && slave.most_reads >= 50, "2-beat reads: %.4f beats per cycle", rate);
}

void speed() {
  time_move("COPY 64 KiB", copy_1d(65536, 0, 0), 0.99);
  time_move("COPY 64 KiB, offsets 3 and 8", copy_1d(65536, 3, 8), 0.99);
  MoveCommand fill = copy_1d(65536, 0, 0);
  fill.fill = true;
  time_move("FILL 64 KiB", fill, 0.99);
  MoveCommand bias = copy_1d(1, 0, 0);
  bias.dtype = 0;
  bias.size = {1, 1, 1, 64, 256};
  bias.src_stride = {0, 0, 0, 0, 1};
  bias.dst_stride = {0, 0, 0, 256, 1};
  time_move("COPY 64 rows of one KiB row", bias, 0.99);
  MoveCommand transpose = copy_1d(1, 0, 0);
  transpose.dtype = 0;
  transpose.size = {1, 1, 1, 64, 64};
  transpose.src_stride = {0, 0, 0, 1, 64};
  transpose.dst_stride = {0, 0, 0, 64, 1};
  time_move("COPY 64x64 transposed", transpose, 0.99);
  time_short_reads(4096);
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1;
  const uint64_t rounds = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 20;
  Verilated::randReset(2);
  Verilated::randSeed(static_cast<int>(seed % 0x7fffffff) + 1);
  try {
    speed();
    clients(seed, rounds);
    moves(seed + 1, rounds * 20);
    errors(seed + 2, rounds * 10);
  } catch (const Failure& failure) {
    std::printf("FAILED   bus %d seed %llu: %s\n", BUS_BITS, (unsigned long long)seed, failure.what());
    return 1;
  }
  return 0;
}
