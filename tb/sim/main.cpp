// SPDX-License-Identifier: Apache-2.0
// The simulator as a server: --socket=PATH --shared-fd=N [--idle-seconds=S].
#include <cstdio>
#include <exception>

#include "core/options.h"
#include "core/server.h"

int main(int argc, char** argv) {
  try {
    npu_sim::serve(npu_sim::Options(argc, argv), argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%%Error: %s\n", error.what());
    return 3;
  }
}
