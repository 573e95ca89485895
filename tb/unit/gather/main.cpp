// SPDX-License-Identifier: Apache-2.0
// Bench of the GATHER/SCATTER engine behind the memory controller, with other traffic beside it:
// random commands, errors, and cycle counts. Arguments: [seed] [rounds] [result.json]. One
// line per part; stops at the first difference.
#include "bench.hpp"
#include "gather.hpp"

using Bench = BenchOf<GatherEngine>;

namespace {

constexpr uint64_t kLatency = 100;

void commands(uint64_t seed, uint64_t count) {
  Bench bench(seed);
  GatherMaker maker(bench.memory, bench.random);
  std::array<uint64_t, 3> elements{};
  for (uint64_t i = 0; i < count; ++i) {
    bench.shuffle_conditions();
    const GatherCommand command = maker.make();
    command.apply(bench.memory);
    if (bench.random.chance(30)) bench.traffic(3);
    bench.engine.start(command);
    bench.run();
    check(bench.engine.err == 0, "command %llu: error %u", (unsigned long long)i, bench.engine.err);
    elements[command.scatter + command.add] += count_of(command.size());
    summary.compared += bench.memory.compare(kMemBase, kMemLimit, "command");
  }
  std::printf("commands %llu; elements gathered %llu, scattered %llu, added %llu; differing 0\n",
              (unsigned long long)count, (unsigned long long)elements[0],
              (unsigned long long)elements[1], (unsigned long long)elements[2]);
}

void spoil(Bench& bench, GatherMaker& maker, const GatherCommand& c) {
  Memory& memory = bench.memory;
  memory.clear_errors();
  const TensorView* const views[] = {&c.index, &c.table, &c.plain};
  for (uint64_t lines = bench.random.below(3); lines != 0; --lines) {
    const TensorView& view = *views[bench.random.below(3)];
    memory.bad[(view.base + bench.random.below(span_of(view)) - kMemBase) / kLine] = true;
  }
  if (bench.random.chance(50)) maker.spoil_index(c);
}

void errors(uint64_t seed, uint64_t count) {
  Bench bench(seed);
  GatherMaker maker(bench.memory, bench.random);
  std::array<uint64_t, 11> codes{};
  for (uint64_t i = 0; i < count; ++i) {
    bench.shuffle_conditions();
    bench.memory.clear_errors();
    const GatherCommand command = maker.make();
    spoil(bench, maker, command);
    const Outcome outcome = outcome_of(command, bench.memory);
    if (outcome.clean()) command.apply(bench.memory);
    bench.engine.start(command);
    bench.run();
    const unsigned code = bench.engine.err;
    check(outcome.allows(code), "command %llu: error %u, expected %u or a write error: %d",
          (unsigned long long)i, code, outcome.error, outcome.write_bad);
    // The destination is unspecified after an error; every other byte must survive.
    if (code != 0) accept(bench.memory, command.destination());
    summary.compared += bench.memory.compare(kMemBase, kMemLimit, "after an error");
    ++codes[code];
  }
  check(codes[0] && codes[kBusRead] && codes[kBusWrite] && codes[kBadIndex],
        "errors: a case never happened");
  std::printf("errors   %llu commands: %llu read, %llu write, %llu index, %llu clean\n",
              (unsigned long long)count, (unsigned long long)codes[kBusRead],
              (unsigned long long)codes[kBusWrite], (unsigned long long)codes[kBadIndex],
              (unsigned long long)codes[0]);
}

// Rows of `columns` elements, or with one column single elements, from or to random places.
GatherCommand rows_of(uint64_t rows, uint64_t columns, bool scatter, bool add) {
  GatherCommand c{.scatter = scatter, .add = add, .dim = 3};
  const Dims size{1, 1, 1, rows, columns}, stride{0, 0, 0, columns, 1};
  c.index = view_of(DType::kInt32, size, {0, 0, 0, 1, 0}, kConstBase);
  c.plain = view_of(DType::kFp32, size, stride, scatter ? kIndexEnd : kEngineBase);
  c.table = view_of(DType::kFp32, {1, 1, 1, 64 * 512 / columns, columns}, stride,
                    scatter ? kEngineBase : kIndexEnd);
  return c;
}

// Runs a command alone; its cycles per `unit`, a beat or an element, must keep a bound.
void time_command(const char* name, const GatherCommand& c, uint64_t units, double most) {
  Bench bench(1);
  for (uint64_t i = 0; i < c.size()[3]; ++i)
    store(bench.memory, c.index.base + 4 * i, 4, bench.random.below(c.table_size()));
  c.apply(bench.memory);
  bench.engine.start(c);
  bench.run();
  summary.compared += bench.memory.compare(kMemBase, kMemLimit, name);
  const uint64_t total = bench.engine.finished - bench.engine.started;
  // Beside the work: the first index, the first data, the last write.
  const double rate = double(total - 3 * kLatency) / double(units);
  summary.figures[name] = rate;
  std::printf("speed    %-36s %6llu cycles, %.3f per unit\n", name, (unsigned long long)total,
              rate);
  check(bench.engine.err == 0 && rate <= most, "%s: %.3f cycles per unit", name, rate);
}

void stalls() {
  for (const bool scatter : {false, true})
    check_stalls<Bench>(
        scatter ? "SCATTER" : "GATHER",
        [scatter](Bench& bench, bool is_long) {
          const GatherCommand c = rows_of(is_long ? 64 : 4, is_long ? 512 : 16, scatter, false);
          for (uint64_t i = 0; i < c.size()[3]; ++i)
            store(bench.memory, c.index.base + 4 * i, 4, bench.random.below(c.table_size()));
          c.apply(bench.memory);
          bench.engine.start(c);
        },
        0.2, 0.45);
}

void speed() {
  stalls();
  constexpr uint64_t kRow = 512 * 4 / kBusBytes;
  time_command("GATHER 64 rows of 2 KiB, per beat", rows_of(64, 512, false, false), 64 * kRow,
               1.05);
  time_command("SCATTER 64 rows of 2 KiB, per beat", rows_of(64, 512, true, false), 64 * kRow,
               1.05);
  // The indices' beats come over the same bus.
  time_command("GATHER elements, per beat", rows_of(8192, 1, false, false),
               8192 + 8192 * 4 / kBusBytes, 1.05);
  time_command("SCATTER elements", rows_of(8192, 1, true, false), 8192, 1.05);
  // A beat's words one by one, then the adder's latency and the way out.
  constexpr double kWords = kBusBytes / 4;
  time_command("SCATTER-add rows, per word", rows_of(64, 512, true, true), 64 * 512,
               (kWords + 8) / kWords);
  time_command("SCATTER-add elements", rows_of(4096, 1, true, true), 4096, 40);
}

}  // namespace

int main(int argc, char** argv) {
  return bench_main(argc, argv, [](uint64_t seed, uint64_t rounds) {
    speed();
    commands(seed, rounds * 20);
    errors(seed + 1, std::max<uint64_t>(rounds * 20, 200));
  });
}
