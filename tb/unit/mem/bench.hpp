// SPDX-License-Identifier: Apache-2.0
// The design with every model around it: the memory's side, the plain clients and one engine.
#pragma once

#include <utility>

#include "bench_main.hpp"
#include "clients.hpp"
#include "host.hpp"
#include "reference.hpp"

// A run hangs when the memory transfers nothing for so many cycles. How long a run may take says
// less: single elements behind a slow memory that stalls take some million cycles.
constexpr uint64_t kPatience = 100000;
// An engine that repeats transfers for ever does not end either.
constexpr uint64_t kLongest = 50000000;

// Gives an engine one command at a time and keeps the times and the stalls of the last one.
template <typename Command>
class EngineModel : public Model {
 public:
  uint64_t started = 0, finished = 0;
  unsigned err = 0;
  uint64_t active = 0, operand_stall = 0, result_stall = 0;

  void start(const Command& command) {
    command_ = command;
    offered_ = fresh_ = busy_ = true;
    active = operand_stall = result_stall = 0;
  }
  void drive(Vbench& top) final {
    top.cmd_valid = offered_;
    if (!std::exchange(fresh_, false)) return;
    drive_command(top);
    top.cmd_changed = !top.cmd_changed;
  }
  void sample(Vbench& top, uint64_t cycle) override {
    if (top.cmd_valid && top.cmd_ready) {
      started = cycle;
      offered_ = false;
    }
    check(__builtin_popcount(top.stats) <= 1, "stats %u: more than one kind of cycle", top.stats);
    active += top.stats >> 2 & 1;
    operand_stall += top.stats >> 1 & 1;
    result_stall += top.stats & 1;
    if (!top.done) return;
    check(busy_ && !offered_, "engine: done without a command");
    finished = cycle;
    err = top.err;
    busy_ = false;
  }
  bool idle() const override { return !busy_; }

 protected:
  // The pins of `command_`.
  virtual void drive_command(Vbench& top) const = 0;

  static constexpr unsigned kDestination = 4;

  // The pins of a source, 0 to 3, or of a destination, from kDestination on.
  static void drive_operand(Vbench& top, unsigned place, const TensorView& view, const Dims& size) {
    top.cmd_dtype[place] = static_cast<uint8_t>(view.dtype);
    top.cmd_base[place] = view.base;
    for (unsigned d = 0; d < size.size(); ++d) {
      top.cmd_size[place][d] = static_cast<uint32_t>(size[d]);
      top.cmd_stride[place][d] = static_cast<uint32_t>(view.stride[d]);
    }
  }

  Command command_;

 private:
  bool offered_ = false, busy_ = false;
  bool fresh_ = false;  // not on the pins yet
};

// `Engine` drives the commands of the engine under test, whose first clients `kReaders` and
// `kWriters` count.
template <typename Engine>
class BenchOf {
 public:
  explicit BenchOf(uint64_t seed)
      : random(seed),
        memory(random),
        slave(memory, random),
        reader0(0, memory, random),
        reader1(1, memory, random),
        writer(memory, random),
        host(memory, random) {
    top.clk_i = top.rst_ni = top.changed = top.cmd_changed = 0;
    top.eval();  // the first: runs what is initial
    for (int i = 0; i < 4; ++i) tick();
    top.rst_ni = 1;
    tick();
  }

  void tick() {
    top.clk_i = 0;
    for (Model* model : models_) model->drive(top);
    top.changed = !top.changed;
    top.eval();
    if (top.rst_ni)
      for (Model* model : models_) model->sample(top, cycle);
    if (top.done) nothing_under_way();
    top.clk_i = 1;
    top.eval();
    ++cycle;
  }

  void run() {
    const uint64_t start = cycle;
    do {
      tick();
      const uint64_t last = std::max(start, slave.last_transfer);
      check(cycle - last < kPatience, "busy, and no transfer for %llu cycles",
            (unsigned long long)kPatience);
      check(cycle - start < kLongest, "still busy after %llu cycles", (unsigned long long)kLongest);
    } while (!std::all_of(models_.begin(), models_.end(), [](Model* m) { return m->idle(); }));
  }

  // Ticks until it is so.
  template <typename Condition>
  void until(const char* what, Condition&& so) {
    for (const uint64_t start = cycle; !so(); tick())
      check(cycle - start < 10 * kPatience, "%s: not within %llu cycles", what,
            (unsigned long long)(10 * kPatience));
  }

  // Random stalls, latencies and order of answers.
  void shuffle_conditions() {
    static constexpr unsigned kStalls[] = {0, 5, 30, 70};
    slave.shape.stalls.shuffle(random, kStalls);
    Stalls<4> clients;
    clients.shuffle(random, kStalls);
    reader0.stall_percent = clients.percent[0];
    reader1.stall_percent = clients.percent[1];
    writer.stall_percent = clients.percent[2];
    host.stall_percent = clients.percent[3];
    slave.shape.latency_min = unsigned(random.below(20));
    slave.shape.latency_max =
        slave.shape.latency_min + unsigned(random.below(2) * random.below(600));
    slave.shape.reorder = random.chance(70);
  }

  void traffic(uint64_t requests) {
    reader0.to_issue = reader1.to_issue = writer.to_issue = requests;
    host.to_read = host.to_write = requests;
  }

  Vbench top;
  Random random;
  Memory memory;
  AxiSlave slave;
  ReadClient reader0, reader1;
  WriteClient writer;
  Host host;
  Engine engine;
  uint64_t cycle = 0;

 private:
  void nothing_under_way() const {
    uint64_t bursts = 0;
    for (unsigned c = 0; c < Engine::kReaders; ++c) bursts += slave.unanswered_reads(c);
    for (unsigned c = 0; c < Engine::kWriters; ++c) bursts += slave.unanswered_writes(c);
    check(bursts == 0, "done with %llu bursts unanswered", (unsigned long long)bursts);
  }

  std::vector<Model*> models_{&slave, &reader0, &reader1, &writer, &host, &engine};
};

// Whether the shares of a command's cycles in which it waited are within these.
inline void check_waits(const char* name, const char* where, double operand, double result,
                        std::array<double, 2> operands, std::array<double, 2> results) {
  check(operand >= operands[0] && operand <= operands[1] && result >= results[0] &&
            result <= results[1],
        "%s, %s: waits for operands in %.3f of its cycles, for results in %.3f", name, where,
        operand, result);
}

// What a command waits for: its operands behind slow reads, its results behind slow writes, neither
// at a memory that keeps up, nor for acknowledgements. `start` gives it to the engine, as a long
// one or as one of a few bursts; `most_operand`: the share of waits that the bus costs it.
// `least_at_start`: the share of a short command at a long latency.
template <typename Bench, typename Start>
void check_stalls(const char* name, Start start, double most_operand = 0.2,
                  double least_at_start = 0) {
  const auto share = [](uint64_t cycles, uint64_t of) { return double(cycles) / double(of); };
  for (const AxiChannel slow : {kAxiChannels, kR, kW}) {
    Bench bench(1);
    bench.slave.shape.latency_min = bench.slave.shape.latency_max = 10;
    if (slow != kAxiChannels) bench.slave.shape.stalls.percent[slow] = 90;
    start(bench, true);
    bench.run();
    check(bench.engine.err == 0, "%s: error %u", name, bench.engine.err);
    const uint64_t total = bench.engine.finished - bench.engine.started;
    const double operand = share(bench.engine.operand_stall, total);
    const double result = share(bench.engine.result_stall, total);
    if (slow == kR) check_waits(name, "slow R", operand, result, {0.6, 1}, {0, 0.1});
    if (slow == kW) check_waits(name, "slow W", operand, result, {0, 0.5}, {0.4, 1});
    if (slow == kAxiChannels)
      check_waits(name, "fast", operand, result, {0, most_operand}, {0, 0.2});
  }
  {
    Bench bench(1);
    bench.slave.shape.latency_min = bench.slave.shape.latency_max = 5000;
    start(bench, false);
    bench.run();
    const uint64_t total = bench.engine.finished - bench.engine.started;
    check_waits(name, "long latency", share(bench.engine.operand_stall, total),
                share(bench.engine.result_stall, total), {least_at_start, 1}, {0, 0.1});
  }
  constexpr uint64_t kCycles = 4000;
  Bench bench(1);
  bench.slave.shape.latency_min = bench.slave.shape.latency_max = 10;
  bench.slave.shape.stalls.percent[kB] = 100;
  start(bench, false);
  for (uint64_t i = 0; i < kCycles; ++i) bench.tick();
  check(!bench.engine.idle(), "%s: done without an answer", name);
  check_waits(name, "no B", share(bench.engine.operand_stall, kCycles),
              share(bench.engine.result_stall, kCycles), {0, 0.2}, {0, 0.2});
  bench.slave.shape.stalls.all(0);
  bench.run();
}
