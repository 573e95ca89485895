// SPDX-License-Identifier: Apache-2.0
// The simulator with cocotb inside: [--shared-fd=N] [--memory-base=A --memory-bytes=N]
// [--waves=PATH --waves-from=CYCLE --waves-to=CYCLE] [--clock=own|cocotb] [--parent=PID]; with
// --socket=PATH it is a server as in main.cpp, on the same model.
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>

#include "core/cocotb_loop.h"
#include "core/options.h"
#include "core/server.h"

namespace {

constexpr std::uint64_t kMemoryBytes = 512ULL << 20;

int shared_descriptor(const npu_sim::Options& options) {
  if (options.has("shared-fd")) return static_cast<int>(options.number("shared-fd", 3));
  return npu_sim::SharedMemory::create_anonymous(options.number("memory-base", 0),
                                                 options.number("memory-bytes", kMemoryBytes));
}

// No simulation without the process that waits for it (or, by prctl's rule, the thread).
void die_with_parent(const npu_sim::Options& options) {
  if (!options.has("parent")) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (static_cast<std::uint64_t>(getppid()) != options.number("parent", 0)) std::_Exit(3);
}

int run_cocotb(const npu_sim::Options& options, int argc, char** argv) {
  die_with_parent(options);
  const int descriptor = shared_descriptor(options);
  // Python inside this process maps the same file (tb/sim/cocotb_run.py, attach_memory).
  setenv("NPU_SIM_SHARED_FD", std::to_string(descriptor).c_str(), 1);
  npu_sim::SharedMemory shared(descriptor);
  npu_sim::Simulation simulation(argc, argv, shared);
  if (options.has("waves")) {
    simulation.waves().open(simulation.model(), options.text("waves"),
                            options.number("waves-from", 0),
                            options.number("waves-to", std::numeric_limits<std::uint64_t>::max()));
  }
  npu_sim::CocotbLoop loop(simulation, options.text("clock", "own") == "own");
  loop.run();
  simulation.model().final();
  simulation.waves().close();
  return simulation.context().errorCount() > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const npu_sim::Options options(argc, argv);
    if (!options.has("socket")) return run_cocotb(options, argc, argv);
    npu_sim::serve(options, argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%%Error: %s\n", error.what());
    return 3;
  }
}
