// SPDX-License-Identifier: Apache-2.0
// Serves one client over a connected Unix socket until it leaves.
#pragma once

#include <chrono>
#include <string>

#include "axil_master.h"
#include "options.h"
#include "protocol.h"
#include "simulation.h"

namespace npu_sim {

class Server {
 public:
  Server(Simulation& simulation, int socket, std::chrono::seconds idle_limit)
      : sim_(simulation), axil_(simulation), socket_(socket), idle_limit_(idle_limit) {}

  // Returns when the client quits, closes the socket, or says nothing for the idle limit.
  void serve();

 private:
  using Values = std::array<std::uint64_t, 4>;
  struct Reply {
    Status status = Status::kOk;
    Values values{};
    std::string payload{};
  };

  Reply execute(const MessageHead& request, const std::string& payload);
  Reply csr(std::optional<AxilResult> result);
  Reply run(std::uint64_t cycles, std::uint64_t wall_ms, bool stop_on_irq,
            std::uint64_t quiet_limit);
  Reply ports();
  // Since the last transfer on any port, as far as looks at intervals can tell.
  std::uint64_t quiet_cycles();
  Reply set(Setting setting, std::uint64_t value);
  Reply waves(std::uint64_t from, std::uint64_t to, const std::string& path);

  bool receive(void* data, std::size_t bytes);
  bool send(const Reply& reply);
  bool client_left() const;

  Simulation& sim_;
  AxilMaster axil_;
  int socket_;
  std::chrono::seconds idle_limit_;
  std::uint32_t moved_ = 0;     // the model's count of transfers when it was last looked at,
  std::uint64_t moved_at_ = 0;  // and the cycle in which it was first seen
  bool quit_ = false;
};

// The whole life of a server process: connect to --socket, simulate on --shared-fd until the client
// leaves. Throws std::runtime_error.
void serve(const Options& options, int argc, char** argv);

}  // namespace npu_sim
