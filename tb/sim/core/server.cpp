// SPDX-License-Identifier: Apache-2.0
#include "server.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <stdexcept>

namespace npu_sim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLeftCheck = std::chrono::milliseconds(200);

std::uint64_t cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ULL +
         static_cast<std::uint64_t>(now.tv_nsec);
}

int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::runtime_error("socket path too long");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0 ||
      connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("cannot connect to " + path + ": " + std::strerror(errno));
  }
  return descriptor;
}

}  // namespace

void Server::serve() {
  while (!quit_ && !sim_.finished()) {
    MessageHead head{};
    if (!receive(&head, sizeof head)) return;
    if (head.magic != kProtocolMagic || head.version != kProtocolVersion ||
        head.payload_bytes > kMaxPayload) {
      send({Status::kBadRequest, {}, "unknown protocol or version"});
      return;
    }
    std::string payload(head.payload_bytes, '\0');
    if (!receive(payload.data(), payload.size())) return;
    Reply reply = execute(head, payload);
    if (sim_.finished()) reply.status = Status::kFinished;
    if (!send(reply)) return;
  }
}

Server::Reply Server::execute(const MessageHead& request, const std::string& payload) {
  const Values& v = request.values;
  const auto abandoned = [this] { return client_left(); };
  switch (static_cast<Verb>(request.code)) {
    case Verb::kHello:
      return {Status::kOk, {kProtocolVersion, static_cast<std::uint64_t>(getpid()), sim_.cycle()}};
    case Verb::kCsrRead:
      return csr(axil_.read(static_cast<std::uint16_t>(v[0]), v[1], abandoned));
    case Verb::kCsrWrite:
      return csr(axil_.write(static_cast<std::uint16_t>(v[0]), static_cast<std::uint32_t>(v[1]),
                             v[2], abandoned));
    case Verb::kRun:
      return run(v[0], v[1], v[2] != 0, v[3]);
    case Verb::kReset:
      sim_.reset(v[0], abandoned);
      return {Status::kOk, {sim_.cycle()}};
    case Verb::kSet:
      return set(static_cast<Setting>(v[0]), v[1]);
    case Verb::kWaves:
      return waves(v[0], v[1], payload);
    case Verb::kQuit:
      quit_ = true;
      return {};
    case Verb::kPorts:
      return ports();
  }
  return {Status::kBadRequest, {}, "unknown verb " + std::to_string(request.code)};
}

Server::Reply Server::csr(std::optional<AxilResult> result) {
  if (!result) return {Status::kCsrTimeout};
  return {Status::kOk, {result->data, static_cast<std::uint64_t>(result->response)}};
}

Server::Reply Server::run(std::uint64_t cycles, std::uint64_t wall_ms, bool stop_on_irq,
                          std::uint64_t quiet_limit) {
  const Vtb_top& top = sim_.top();
  const auto deadline = Clock::now() + std::chrono::milliseconds(wall_ms);
  auto next_check = Clock::now() + kLeftCheck;
  const std::uint64_t cpu_before = cpu_ns();
  std::uint64_t done = 0;
  StopReason reason = StopReason::kCycles;
  while (done < cycles && !sim_.finished()) {
    if (stop_on_irq && top.irq) {
      reason = StopReason::kIrq;
      break;
    }
    const std::uint64_t end = done + std::min(kAskEvery, cycles - done);
    while (done < end && !(stop_on_irq && top.irq)) {
      sim_.cycle_once();
      ++done;
    }
    if (quiet_limit != 0 && quiet_cycles() >= quiet_limit) {
      reason = StopReason::kQuiet;
      break;
    }
    const auto now = Clock::now();
    if (now >= deadline) {
      reason = StopReason::kWallClock;
      break;
    }
    if (now >= next_check) {
      if (client_left()) break;
      next_check = now + kLeftCheck;
    }
  }
  if (stop_on_irq && top.irq) reason = StopReason::kIrq;
  return {Status::kOk, {done, static_cast<std::uint64_t>(reason), top.irq, cpu_ns() - cpu_before}};
}

std::uint64_t Server::quiet_cycles() {
  const std::uint32_t moved = sim_.top().moved;
  if (moved != moved_) {
    moved_ = moved;
    moved_at_ = sim_.cycle();
  }
  return sim_.cycle() - moved_at_;
}

Server::Reply Server::ports() {
  quiet_cycles();
  const Vtb_top& top = sim_.top();
  return {Status::kOk, {top.waiting, top.open_reads, top.open_writes, moved_at_}};
}

Server::Reply Server::set(Setting setting, std::uint64_t value) {
  Vtb_top& top = sim_.pins();
  switch (setting) {
    case Setting::kLatency:
      top.dram_latency = static_cast<std::uint16_t>(std::clamp<std::uint64_t>(value, 1, 0xFFFF));
      return {};
    case Setting::kStall:
      top.dram_stall = static_cast<std::uint8_t>(std::min<std::uint64_t>(value, 0xFF));
      return {};
    case Setting::kSeed:
      top.dram_seed = static_cast<std::uint32_t>(value);
      return {};
  }
  return {Status::kBadRequest, {}, "unknown setting"};
}

Server::Reply Server::waves(std::uint64_t from, std::uint64_t to, const std::string& path) {
  try {
    if (path.empty()) {
      sim_.waves().close();
    } else {
      sim_.waves().open(sim_.model(), path, from, to);
    }
  } catch (const std::runtime_error& error) {
    return {Status::kBadRequest, {}, error.what()};
  }
  return {};
}

bool Server::receive(void* data, std::size_t bytes) {
  auto* at = static_cast<char*>(data);
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(idle_limit_);
  while (bytes > 0) {
    pollfd wait{socket_, POLLIN, 0};
    const int ready = poll(&wait, 1, static_cast<int>(limit.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = recv(socket_, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool Server::send(const Reply& reply) {
  const MessageHead head{kProtocolMagic,
                         kProtocolVersion,
                         static_cast<std::uint16_t>(reply.status),
                         static_cast<std::uint32_t>(reply.payload.size()),
                         0,
                         reply.values};
  std::string message(reinterpret_cast<const char*>(&head), sizeof head);
  message += reply.payload;
  const ssize_t sent = ::send(socket_, message.data(), message.size(), MSG_NOSIGNAL);
  return sent == static_cast<ssize_t>(message.size());
}

bool Server::client_left() const {
  pollfd wait{socket_, POLLRDHUP, 0};
  return poll(&wait, 1, 0) > 0;
}

void serve(const Options& options, int argc, char** argv) {
  SharedMemory shared(static_cast<int>(options.number("shared-fd", 3)));
  const int socket = connect_to(options.text("socket"));
  Simulation simulation(argc, argv, shared);
  simulation.reset();
  Server server(simulation, socket, std::chrono::seconds(options.number("idle-seconds", 600)));
  server.serve();
  simulation.model().final();
  simulation.waves().close();
}

}  // namespace npu_sim
