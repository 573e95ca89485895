// SPDX-License-Identifier: Apache-2.0
// LOAD commands with sound and malformed images, and what the device then says of its lines.
#pragma once

#include "bench.hpp"
#include "command.hpp"

using Bench = BenchOf<VectorEngine>;

inline constexpr uint32_t kRam = npu::isa::kProgramRam, kRamEnd = kRam + npu::isa::kProgramRamLines;

// What the device says of a line.
inline void look_up(Bench& bench, uint32_t line) {
  bench.top.program_line = line;
  bench.top.eval();
  const uint32_t expected = program_info_bits(bench.engine.directory.find(line));
  check(bench.top.program_info == expected, "program at line %u: %x, expected %x", line,
        bench.top.program_info, expected);
}

// Every line around a LOAD and every boot line, and some that there are not.
inline void look_around(Bench& bench, uint32_t line, uint32_t lines) {
  for (uint32_t at = std::max(line, 60u) - 60; at < line + lines + 4; ++at) look_up(bench, at);
  for (unsigned i = 0; i < 20; ++i) look_up(bench, uint32_t(bench.random.below(kRamEnd + 600)));
  look_up(bench, line + 0x10000);
  look_up(bench, line | 0x80000000);
}

// How a LOAD ends, and why.
struct LoadOutcome {
  unsigned error;
  bool second;  // the second reading failed
};

class Loader {
 public:
  Loader(Bench& bench, CommandMaker& maker) : b_(bench), maker_(maker), images_(bench.random) {}

  // A LOAD of a sound image, or with one of the things that may go wrong.
  LoadOutcome load() { return load(unsigned(b_.random.below(3 * ImageMaker::kDefects))); }

  // A LOAD of an image with that defect; of a sound one beyond the last.
  LoadOutcome load(unsigned defect) {
    const Words sound = images_.sound();
    const bool wrong = defect < ImageMaker::kDefects;
    const Words words = wrong ? images_.malformed(defect) : sound;
    auto program = program_in(words);
    command_ = {};
    command_.opcode = Opcode::kLoad;
    command_.lines = uint32_t(words.size() / 8);
    command_.line = last_line_ = place(command_.lines);
    command_.image = maker_.store(words);
    if (wrong && !program) ++malformed[defect];
    LoadOutcome expected{program ? 0u : kBadImage, false};
    const unsigned trouble = unsigned(b_.random.below(12));
    if (trouble == 0) {
      spoil();
      expected = {kBusRead, false};
    } else if (trouble == 1 && program) {
      b_.engine.between_readings = [this] { spoil(); };
      expected = {kBusRead, true};
    } else if (trouble == 2 && program) {
      b_.engine.between_readings = [this, changed = images_.malformed(7)] {
        maker_.overwrite(command_.image, changed);
      };
      expected = {kBadImage, true};
    }
    run(expected);
    if (expected.error == 0)
      b_.engine.directory.load(command_.line, command_.lines, std::move(*program));
    if (expected.second) b_.engine.directory.forget(command_.line, command_.lines);
    look_around(b_, command_.line, command_.lines);
    return expected;
  }

  // A LOAD of that image, which has to end with `error`, as docs/isa.md says.
  void load_image(const char* name, const Words& words, uint32_t line, unsigned error) {
    auto program = program_in(words);
    check(error == (program ? 0u : kBadImage), "%s: the model of this bench says otherwise", name);
    command_ = {};
    command_.opcode = Opcode::kLoad;
    command_.lines = uint32_t(words.size() / 8);
    command_.line = last_line_ = line;
    command_.image = maker_.store(words);
    run({error, false});
    if (program) b_.engine.directory.load(line, command_.lines, std::move(*program));
    look_around(b_, command_.line, command_.lines);
  }

  uint32_t line() const { return command_.line; }
  uint32_t lines() const { return command_.lines; }

  // By what was wrong: LOADs that were refused for it.
  std::array<uint64_t, ImageMaker::kDefects> malformed{};

 private:
  // Close together, so that they overwrite each other; in place of what may just have run; at both
  // ends of the loadable part.
  uint32_t place(uint32_t lines) {
    if (b_.random.chance(25) && last_line_ + lines <= kRamEnd) return last_line_;
    if (b_.random.chance(10)) return kRamEnd - lines;
    if (b_.random.chance(10)) return kRam;
    return kRam + uint32_t(b_.random.chance(80) ? 200 + b_.random.below(60)
                                                : b_.random.below(kRamEnd - kRam - lines + 1));
  }

  void spoil() {
    const uint64_t at = command_.image + b_.random.below(command_.lines * kLineBytes);
    b_.memory.bad[(at - kMemBase) / kLine] = true;
  }

  void run(const LoadOutcome& expected) {
    if (b_.random.chance(30)) b_.traffic(2);
    b_.engine.start(command_);
    b_.run();
    b_.memory.clear_errors();
    check(b_.engine.err == expected.error, "LOAD: error %u, expected %u", b_.engine.err,
          expected.error);
    summary.compared += b_.memory.compare(kMemBase, kMemLimit, "LOAD");
  }

  Bench& b_;
  CommandMaker& maker_;
  ImageMaker images_;
  VectorCommand command_;
  uint32_t last_line_ = kRam;
};
