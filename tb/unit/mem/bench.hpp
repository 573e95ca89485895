// SPDX-License-Identifier: Apache-2.0
// The design with every model around it: the memory's side, the plain clients and one engine.
#pragma once

#include <fstream>
#include <map>

#include "clients.hpp"
#include "host.hpp"

// A run hangs when the memory transfers nothing for so many cycles. How long a run may take says
// less: single elements behind a slow memory that stalls take some million cycles.
constexpr uint64_t kPatience = 100000;
// An engine that repeats transfers for ever does not end either.
constexpr uint64_t kLongest = 50000000;

// What all parts together found.
struct Summary {
  uint64_t compared = 0;  // bytes
  std::string failure;
  std::map<std::string, double> figures;

  void write(const char* path) const {
    std::ofstream file(path);
    file << "{\"compared\": " << compared << ", \"failure\": \"" << failure << "\", \"figures\": {";
    const char* separator = "";
    for (const auto& [name, value] : figures) {
      file << separator << '"' << name << "\": " << value;
      separator = ", ";
    }
    file << "}}\n";
  }
};
inline Summary summary;

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

  void stalls(unsigned percent) {
    slave.shape.stall_percent = reader0.stall_percent = reader1.stall_percent = percent;
    writer.stall_percent = host.stall_percent = percent;
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
