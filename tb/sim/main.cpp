// SPDX-License-Identifier: Apache-2.0
// The simulator as a server: --socket=PATH --shared-fd=N [--idle-seconds=S].
#include <cstdio>
#include <exception>

#include "core/options.h"
#include "core/server.h"
#include "core/simulation.h"

int main(int argc, char** argv) {
  using namespace npu_sim;
  try {
    const Options options(argc, argv);
    SharedMemory shared(static_cast<int>(options.number("shared-fd", 3)));
    const int socket = connect_to(options.text("socket"));
    Simulation simulation(argc, argv, shared);
    simulation.reset();
    Server server(simulation, socket, std::chrono::seconds(options.number("idle-seconds", 600)));
    server.serve();
    simulation.top().final();
    simulation.waves().close();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%%Error: %s\n", error.what());
    return 3;
  }
}
