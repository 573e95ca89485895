// SPDX-License-Identifier: Apache-2.0
// Bench of the vector engine behind the memory controller, with other traffic beside it: random
// commands, errors, and cycle counts. Arguments: [seed] [rounds] [result.json]. One line
// per part; stops at the first difference.
#include "bench.hpp"
#include "command.hpp"

using Bench = BenchOf<Vectorer>;

namespace {

constexpr uint64_t kLatency = 100;

std::string text(const Dims& dims) {
  std::string words;
  for (const uint64_t number : dims) words += (words.empty() ? "" : " ") + std::to_string(number);
  return words;
}

// The first element that differs, with what the engine made of it.
void explain(Bench& bench, const VectorCommand& command) {
  each_place(command.dst_size(), [&](const Dims& place) {
    const uint64_t at = address_of(command.dst, place);
    uint64_t is = 0, should = 0;
    std::memcpy(&is, &bench.memory.at(at), command.dst.element_bytes());
    std::memcpy(&should, &bench.memory.want(at), command.dst.element_bytes());
    if (is != should)
      fail("%s, types %u %u %u to %u, element %s of %s: %llx, expected %llx", command.name(),
           unsigned(command.sources[0].dtype), unsigned(command.sources[1].dtype),
           unsigned(command.sources[2].dtype), unsigned(command.dst.dtype), text(place).c_str(),
           text(command.size).c_str(), (unsigned long long)is, (unsigned long long)should);
  });
}

void execute(Bench& bench, const VectorCommand& command) {
  command.apply(bench.memory);
  bench.engine.start(command);
  bench.run();
  check(bench.engine.err == 0, "%s: error %u", command.name(), bench.engine.err);
  explain(bench, command);
  summary.compared += bench.memory.compare(kMemBase, kMemLimit, command.name());
}

void commands(uint64_t seed, uint64_t count) {
  Bench bench(seed);
  CommandMaker maker(bench.memory, bench.random);
  uint64_t elements = 0;
  for (uint64_t i = 0; i < count; ++i) {
    bench.shuffle_conditions();
    const VectorCommand command = maker.make();
    if (bench.random.chance(30)) bench.traffic(3);
    execute(bench, command);
    elements += count_of(command.size);
  }
  std::printf("commands %llu, %llu elements, differing 0\n", (unsigned long long)count,
              (unsigned long long)elements);
}

// A few bad lines around what the command touches.
void spoil(Bench& bench, const VectorCommand& command) {
  std::fill(bench.memory.bad.begin(), bench.memory.bad.end(), false);
  for (uint64_t lines = bench.random.below(4); lines != 0; --lines) {
    const uint64_t choice = bench.random.below(command.info().sources + 1);
    const bool dst = choice == command.info().sources;
    const TensorView& view = dst ? command.dst : command.sources[choice];
    bench.memory.bad[(view.base + bench.random.below(span_of(view)) - kMemBase) / kLine] = true;
  }
}

void errors(uint64_t seed, uint64_t count) {
  Bench bench(seed);
  CommandMaker maker(bench.memory, bench.random);
  uint64_t reads = 0, writes = 0, clean = 0;
  for (uint64_t i = 0; i < count; ++i) {
    bench.shuffle_conditions();
    std::fill(bench.memory.bad.begin(), bench.memory.bad.end(), false);
    const VectorCommand command = maker.make();
    spoil(bench, command);
    const bool source = command.reads_bad(bench.memory),
               target = touches_bad(bench.memory, command.dst);
    if (!source && !target) command.apply(bench.memory);
    bench.engine.start(command);
    bench.run();
    const unsigned expected = source ? 8 : target ? 9 : 0, got = bench.engine.err;
    check(got == expected, "%s: error %u, expected %u", command.name(), got, expected);
    // The destination is unspecified after an error; every other byte must survive.
    if (source || target) accept(bench.memory, command.dst);
    summary.compared += bench.memory.compare(kMemBase, kMemLimit, "after an error");
    reads += got == 8, writes += got == 9, clean += got == 0;
  }
  check(reads && writes && clean, "errors: a case never happened%s", "");
  std::printf("errors   %llu commands: %llu read, %llu write, %llu clean\n",
              (unsigned long long)count, (unsigned long long)reads, (unsigned long long)writes,
              (unsigned long long)clean);
}

unsigned program_named(const char* name) {
  for (unsigned i = 0; i < programs().size(); ++i)
    if (std::string(kProgramNames[i]) == name) return i;
  fail("no program %s", name);
}

Dims dense(const Dims& size) {
  Dims stride{};
  uint64_t step = 1;
  for (unsigned d = 5; d-- > 0; step *= size[d]) stride[d] = step;
  return stride;
}

// Cycles per vector of 16 elements, without the latencies of its first read and its last write.
void time_one(const char* figure, const char* program, DType dtype, const Dims& size,
              uint64_t src_offset = 0) {
  Bench bench(1);
  bench.slave.shape = {0, kLatency, kLatency, false};
  CommandMaker maker(bench.memory, bench.random);
  VectorCommand command;
  command.program = program_named(program);
  command.size = size;
  command.imm = {0x3F800000, 0x40000000, 0, 0};
  command.dst = view_of(dtype, command.dst_size(), dense(command.dst_size()), kDstBase);
  uint64_t base = kConstBase / 64 * 64 + 64 + src_offset * command.dst.element_bytes();
  for (TensorView& view : command.sources) {
    view = view_of(dtype, size, dense(size), base);
    base += span_of(view) / 64 * 64 + 64;
  }
  maker.fill(command);
  execute(bench, command);
  const double cycles = double(bench.engine.finished - bench.engine.started) - 2.0 * kLatency;
  const double vectors = double(count_of(size) / size[4] * ((size[4] + 15) / 16));
  summary.figures[figure] = cycles / vectors;
  std::printf("speed    %-34s %6.2f cycles per vector; active %llu, stalls %llu + %llu\n", figure,
              cycles / vectors, (unsigned long long)bench.engine.active,
              (unsigned long long)bench.engine.operand_stall,
              (unsigned long long)bench.engine.result_stall);
}

void speed() {
  using enum DType;
  time_one("move fp32", "move", kFp32, {1, 1, 1, 1, 32768});
  time_one("move bf16", "move", kBf16, {1, 1, 1, 1, 32768});
  time_one("move bf16, unaligned", "move", kBf16, {1, 1, 1, 1, 32768}, 5);
  time_one("add fp32", "add", kFp32, {1, 1, 1, 1, 32768});
  time_one("add bf16", "add", kBf16, {1, 1, 1, 1, 32768});
  time_one("add bf16, rows of 37", "add", kBf16, {1, 1, 1, 500, 37});
  time_one("mul_add bf16", "mul_add", kBf16, {1, 1, 1, 1, 32768});
  time_one("clamp bf16", "clamp", kBf16, {1, 1, 1, 1, 32768});
  time_one("div fp32", "div", kFp32, {1, 1, 1, 1, 32768});
  time_one("sum fp32, one row", "sum", kFp32, {1, 1, 1, 1, 32768});
  time_one("sum fp32, rows of 32", "sum", kFp32, {1, 1, 1, 448, 32});
}

}  // namespace

int main(int argc, char** argv) {
  return bench_main(argc, argv, [](uint64_t seed, uint64_t rounds) {
    speed();
    commands(seed + 1, rounds * 20);
    errors(seed + 2, std::max<uint64_t>(rounds * 5, 100));
  });
}
