// SPDX-License-Identifier: Apache-2.0
// Bench of the vector engine behind the memory controller, with other traffic beside it: random
// commands, errors, and cycle counts. Arguments: [seed] [rounds] [result.json]. One line
// per part; stops at the first difference.
#include "bench.hpp"
#include "command.hpp"
#include "loader.hpp"

namespace {

constexpr uint64_t kLatency = 100;

std::string text(const Dims& dims) {
  std::string words;
  for (const uint64_t number : dims) words += (words.empty() ? "" : " ") + std::to_string(number);
  return words;
}

// The first element that differs, with what the engine made of it.
void explain(Bench& bench, const VectorCommand& command) {
  for (unsigned r = 0; r < command.info().results; ++r) {
    const TensorView& view = command.results[r];
    each_place(command.dst_size(), [&](const Dims& place) {
      const uint64_t at = address_of(view, place);
      uint64_t is = 0, should = 0;
      std::memcpy(&is, &bench.memory.at(at), view.element_bytes());
      std::memcpy(&should, &bench.memory.want(at), view.element_bytes());
      if (is != should)
        fail("%s, types %u %u %u %u to %u, result %u, element %s of %s: %llx, expected %llx",
             command.name().c_str(), unsigned(command.sources[0].dtype),
             unsigned(command.sources[1].dtype), unsigned(command.sources[2].dtype),
             unsigned(command.sources[3].dtype), unsigned(view.dtype), r + 1, text(place).c_str(),
             text(command.size).c_str(), (unsigned long long)is, (unsigned long long)should);
    });
  }
}

void execute(Bench& bench, const VectorCommand& command) {
  command.apply(bench.memory);
  bench.engine.start(command);
  bench.run();
  check(bench.engine.err == 0, "%s: error %u", command.name().c_str(), bench.engine.err);
  explain(bench, command);
  summary.compared += bench.memory.compare(kMemBase, kMemLimit, command.name().c_str());
}

void commands(uint64_t seed, uint64_t count) {
  Bench bench(seed);
  CommandMaker maker(bench.memory, bench.random, bench.engine.directory);
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
  bench.memory.clear_errors();
  const unsigned sources = command.info().sources, results = command.info().results;
  for (uint64_t lines = bench.random.below(4); lines != 0; --lines) {
    const uint64_t choice = bench.random.below(sources + results);
    const TensorView& view =
        choice < sources ? command.sources[choice] : command.results[choice - sources];
    bench.memory.bad[(view.base + bench.random.below(span_of(view)) - kMemBase) / kLine] = true;
  }
}

// Runs a command with bad lines about; returns the error, which is checked.
unsigned run_spoilt(Bench& bench, const VectorCommand& command) {
  spoil(bench, command);
  const bool source = VectorCommand::any_bad(bench.memory, command.used_sources()),
             target = VectorCommand::any_bad(bench.memory, command.used_results());
  if (!source && !target) command.apply(bench.memory);
  bench.engine.start(command);
  bench.run();
  const unsigned expected = source ? kBusRead : target ? kBusWrite : 0, got = bench.engine.err;
  check(got == expected, "%s: error %u, expected %u", command.name().c_str(), got, expected);
  // The results are unspecified after an error; every other byte must survive.
  if (source || target)
    for (const TensorView& view : command.used_results()) accept(bench.memory, view);
  summary.compared += bench.memory.compare(kMemBase, kMemLimit, "after an error");
  bench.memory.clear_errors();
  return got;
}

void errors(uint64_t seed, uint64_t count) {
  Bench bench(seed);
  CommandMaker maker(bench.memory, bench.random, bench.engine.directory);
  std::array<uint64_t, kBusWrite + 1> seen{};
  for (uint64_t i = 0; i < count; ++i) {
    bench.shuffle_conditions();
    ++seen[run_spoilt(bench, maker.make())];
  }
  check(seen[0] && seen[kBusRead] && seen[kBusWrite], "errors: a case never happened");
  std::printf("errors   %llu commands: %llu read, %llu write, %llu clean\n",
              (unsigned long long)count, (unsigned long long)seen[kBusRead],
              (unsigned long long)seen[kBusWrite], (unsigned long long)seen[0]);
}

// ---- loaded programs ----

// A line to run: mostly one of a loaded program, now and then of the boot programs.
uint32_t a_line(Bench& bench) {
  const auto loaded = bench.engine.directory.loaded();
  if (loaded.empty() || bench.random.chance(20))
    return named_programs()[bench.random.below(kProgramCount)].line;
  return loaded[bench.random.below(loaded.size())];
}

void loads(uint64_t seed, uint64_t count) {
  Bench bench(seed);
  CommandMaker maker(bench.memory, bench.random, bench.engine.directory);
  Loader loader(bench, maker);
  uint64_t sound = 0, first = 0, second = 0, ran = 0, several = 0;
  for (uint32_t line = 0; line < kRamEnd + 100; ++line) look_up(bench, line);
  for (uint64_t i = 0; i < count; ++i) {
    bench.shuffle_conditions();
    const LoadOutcome outcome = loader.load();
    ++(outcome.error == 0 ? sound : outcome.second ? second : first);
    for (uint64_t more = bench.random.below(3); more != 0; --more, ++ran) {
      // What a refused LOAD would have overwritten is still what it was.
      const bool here = bench.engine.directory.find(loader.line()) && bench.random.chance(50);
      const VectorCommand command = maker.make(here ? loader.line() : a_line(bench));
      several += command.info().results > 1;
      if (bench.random.chance(20)) bench.traffic(2);
      bench.random.chance(15) ? void(run_spoilt(bench, command)) : execute(bench, command);
    }
  }
  check(sound && first && second && several, "loads: a case never happened");
  std::printf(
      "loads    %llu: %llu sound, %llu refused, %llu failed in the second reading; %llu "
      "programs run, %llu of several results\n",
      (unsigned long long)count, (unsigned long long)sound, (unsigned long long)first,
      (unsigned long long)second, (unsigned long long)ran, (unsigned long long)several);
}

// Many images for each way to be malformed.
void malformed(uint64_t seed, uint64_t count) {
  Bench bench(seed);
  CommandMaker maker(bench.memory, bench.random, bench.engine.directory);
  Loader loader(bench, maker);
  for (uint64_t i = 0; i < count; ++i)
    for (unsigned defect = 0; defect < ImageMaker::kDefects; ++defect) loader.load(defect);
  uint64_t refused = 0, least = count;
  for (const uint64_t one : loader.malformed) {
    refused += one;
    least = std::min(least, one);
  }
  check(least > count / 10, "only %llu images of one kind were malformed",
        (unsigned long long)least);
  std::printf("images   %llu, %llu malformed\n", (unsigned long long)(count * ImageMaker::kDefects),
              (unsigned long long)refused);
}

// Images that random ones seldom are: one constant too many, one that does not exist, and a program
// of the greatest size whose last line is overwritten.
void corners(uint64_t seed) {
  Bench bench(seed);
  CommandMaker maker(bench.memory, bench.random, bench.engine.directory);
  Loader loader(bench, maker);
  using npu::isa::kMaxConstants, npu::isa::kMaxInstructions, npu::isa::kProgramMaxLines;
  constexpr uint64_t kResult = npu::isa::kDstResult, kConstant = npu::isa::kOperandConst;
  const uint64_t first_constant = instruction_word(MicroOp::kMov, kResult, kConstant);

  Words two_of_one{header_word(1, 2, 0, 1), instruction_word(MicroOp::kMov, kResult, kConstant + 2),
                   7};
  two_of_one.resize(npu::isa::kLineWords);
  loader.load_image("constant 2 of 2", two_of_one, kRam, kBadImage);

  Words too_many(40);
  too_many[0] = header_word(1, kMaxConstants + 1, 0, 1);
  too_many[1] = first_constant;
  loader.load_image("65 constants", too_many, kRam, kBadImage);

  Words longest(kProgramMaxLines * npu::isa::kLineWords, 0);
  longest[0] = header_word(kMaxInstructions, kMaxConstants, 0, 1);
  std::fill_n(longest.begin() + 1, kMaxInstructions, instruction_word(MicroOp::kMov, 0, kConstant));
  longest[kMaxInstructions] = first_constant;
  loader.load_image("program of 36 lines", longest, kRam + 40, 0);
  Words last{header_word(1, 0, 0, 1),
             instruction_word(MicroOp::kMov, kResult, npu::isa::kOperandIndex)};
  last.resize(npu::isa::kLineWords);
  loader.load_image("program in the last of its lines", last, kRam + 40 + kProgramMaxLines - 1, 0);
  std::printf("corners  4 images\n");
}

uint32_t program_named(const char* name) {
  for (const auto& [known, line] : named_programs())
    if (known == name) return line;
  fail("no program %s", name);
}

Dims dense(const Dims& size) {
  Dims stride{};
  uint64_t step = 1;
  for (unsigned d = 5; d-- > 0; step *= size[d]) stride[d] = step;
  return stride;
}

// Cycles per vector of 16 elements, without the latencies of its first read and its last write.
void time_line(Bench& bench, const char* figure, uint32_t line, DType dtype, const Dims& size,
               uint64_t src_offset = 0, uint64_t src_step = 1) {
  CommandMaker maker(bench.memory, bench.random, bench.engine.directory);
  VectorCommand command;
  command.line = line;
  command.program = bench.engine.directory.find(line);
  command.size = size;
  command.imm = {0x3F800000, 0x40000000, 0, 0};
  uint64_t to = kEngineBase / 64 * 64 + 64;
  for (TensorView& view : command.results) {
    view = view_of(dtype, command.dst_size(), dense(command.dst_size()), to);
    to += span_of(view) / 64 * 64 + 64;
  }
  uint64_t base = kConstBase / 64 * 64 + 64 + src_offset * command.results[0].element_bytes();
  for (TensorView& view : command.sources) {
    Dims stride = dense(size);
    for (uint64_t& step : stride) step *= src_step;
    view = view_of(dtype, size, stride, base);
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

void time_one(const char* figure, const char* program, DType dtype, const Dims& size,
              uint64_t src_offset = 0, uint64_t src_step = 1) {
  Bench bench(1);
  bench.slave.shape = {.stalls = {}, .latency_min = kLatency, .latency_max = kLatency};
  time_line(bench, figure, program_named(program), dtype, size, src_offset, src_step);
}

// Three results of four sources, each of one instruction: what memory allows.
void time_several(const char* figure, DType dtype) {
  Bench bench(1);
  bench.slave.shape = {.stalls = {}, .latency_min = kLatency, .latency_max = kLatency};
  CommandMaker maker(bench.memory, bench.random, bench.engine.directory);
  constexpr uint64_t kSource = npu::isa::kOperandSrc, kResult = npu::isa::kDstResult;
  Words image{header_word(3, 0, 4, 3),
              instruction_word(MicroOp::kFma, kResult, kSource, kSource + 1, kSource + 2),
              instruction_word(MicroOp::kFma, kResult + 1, kSource, kSource + 1, kSource + 3),
              instruction_word(MicroOp::kFma, kResult + 2, kSource + 1, kSource + 2, kSource + 3)};
  image.resize(npu::isa::kLineWords);
  VectorCommand load;
  load.opcode = Opcode::kLoad;
  load.line = kRam;
  load.lines = 1;
  load.image = maker.store(image);
  bench.engine.start(load);
  bench.run();
  check(bench.engine.err == 0, "LOAD: error %u", bench.engine.err);
  summary.figures["LOAD of a line"] = double(bench.engine.finished - bench.engine.started);
  bench.engine.directory.load(kRam, 1, *program_in(image));
  time_line(bench, figure, kRam, dtype, {1, 1, 1, 1, 16384});
}

void stalls() {
  check_stalls<Bench>(
      "VECTOR",
      [](Bench& bench, bool is_long) {
        CommandMaker maker(bench.memory, bench.random, bench.engine.directory);
        VectorCommand command;
        command.line = program_named("move");
        command.program = bench.engine.directory.find(command.line);
        command.size = {1, 1, 1, 1, is_long ? 16384u : 64u};
        command.sources[0] = view_of(DType::kFp32, command.size, dense(command.size), kConstBase);
        command.results[0] = view_of(DType::kFp32, command.size, dense(command.size), kEngineBase);
        maker.fill(command);
        command.apply(bench.memory);
        bench.engine.start(command);
      },
      0.6);
}

void speed() {
  using enum DType;
  stalls();
  time_one("move fp32", "move", kFp32, {1, 1, 1, 1, 32768});
  time_one("move bf16", "move", kBf16, {1, 1, 1, 1, 32768});
  time_one("move bf16, unaligned", "move", kBf16, {1, 1, 1, 1, 32768}, 5);
  time_one("add fp32", "add", kFp32, {1, 1, 1, 1, 32768});
  time_one("add bf16", "add", kBf16, {1, 1, 1, 1, 32768});
  time_one("add bf16, rows of 37", "add", kBf16, {1, 1, 1, 500, 37});
  time_one("add fp32, every second element", "add", kFp32, {1, 1, 1, 500, 14}, 0, 2);
  time_one("move bf16, every fourth element", "move", kBf16, {1, 1, 1, 1, 8192}, 0, 4);
  time_one("mul_add bf16", "mul_add", kBf16, {1, 1, 1, 1, 32768});
  time_one("clamp bf16", "clamp", kBf16, {1, 1, 1, 1, 32768});
  time_one("div fp32", "div", kFp32, {1, 1, 1, 1, 32768});
  time_one("sum fp32, one row", "sum", kFp32, {1, 1, 1, 1, 32768});
  time_one("sum fp32, rows of 32", "sum", kFp32, {1, 1, 1, 448, 32});
  time_one("exp fp32, a vector", "exp", kFp32, {1, 1, 1, 1, 16});
  time_several("3 results of 4 sources, fp32", kFp32);
  time_several("3 results of 4 sources, bf16", kBf16);
}

}  // namespace

int main(int argc, char** argv) {
  return bench_main(argc, argv, [](uint64_t seed, uint64_t rounds) {
    // The shortest first: most mutants are found by then.
    speed();
    corners(seed);
    malformed(seed + 3, 20 + rounds);
    commands(seed + 1, rounds * 20);
    loads(seed + 4, rounds * 20);
    errors(seed + 2, std::max<uint64_t>(rounds * 5, 100));
  });
}
