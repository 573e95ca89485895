// SPDX-License-Identifier: Apache-2.0
// An activity profiler as kineto takes them: one session per profile. The ops of a session are
// activities of type CONCURRENT_KERNEL, which torch reads as those of its PrivateUse1 device.
#include "profiler.h"

#include <libkineto.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace npu {
namespace {

namespace kineto = libkineto;

const std::string kName = "npu";

std::function<void(bool)>& watch() {
  static auto* const instance = new std::function<void(bool)>;
  return *instance;
}

// The CPU ops that this thread is in, by kineto's numbers.
thread_local std::vector<uint64_t> t_correlations;

class Session;
std::mutex g_mutex;
Session* g_session = nullptr;

class Session final : public kineto::IActivityProfilerSession {
 public:
  ~Session() override { forget(); }
  void start() override {
    {
      const std::lock_guard lock(g_mutex);
      g_session = this;
    }
    status_ = kineto::TraceStatus::RECORDING;
    watch()(true);
  }
  void stop() override {
    watch()(false);
    forget();
    status_ = kineto::TraceStatus::PROCESSING;
  }
  std::vector<std::string> errors() override { return {}; }

  // A session without links between ops is never asked for.
  void processTrace(kineto::ActivityLogger& logger) override {
    for (const auto& activity : buffer_->activities) activity->log(logger);
  }
  void processTrace(kineto::ActivityLogger& logger, kineto::getLinkedActivityCallback linked,
                    int64_t begin, int64_t end) override {
    auto& activities = buffer_->activities;
    std::erase_if(activities, [&](const auto& activity) {
      return activity->startTime < begin || activity->endTime > end;
    });
    for (const auto& activity : activities) {
      if (activity->flow.start == 0) activity->linked = linked(activity->id);
    }
    processTrace(logger);
  }
  std::unique_ptr<kineto::DeviceInfo> getDeviceInfo() override {
    return std::make_unique<kineto::DeviceInfo>(kineto::DeviceInfo{0, kSortIndex, kName, "NPU"});
  }
  std::vector<kineto::ResourceInfo> getResourceInfos() override {
    std::set<int64_t> devices;
    for (const auto& activity : buffer_->activities) {
      if (activity->flow.start == 0) devices.insert(activity->resource);
    }
    std::vector<kineto::ResourceInfo> found;
    for (const auto device : devices) {
      found.push_back({device, device, 0, "npu:" + std::to_string(device)});
    }
    return found;
  }
  std::unique_ptr<kineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }
  void pushCorrelationId(uint64_t id) override { t_correlations.push_back(id); }
  void popCorrelationId() override {
    if (!t_correlations.empty()) t_correlations.pop_back();
  }

  // The caller holds g_mutex. Devices are rows of one track: kineto takes one device per session.
  void add(const ProfiledOp& op) {
    auto& ran = activity(kineto::ActivityType::CONCURRENT_KERNEL, op.name, op);
    ran.resource = op.device;
    if (op.cycles >= 0) ran.addMetadataQuoted("cycles", std::to_string(op.cycles));
    if (t_correlations.empty()) return;
    auto& submitted = activity(kineto::ActivityType::PRIVATEUSE1_RUNTIME, "npuSubmit", op);
    submitted.device = kineto::processId();
    submitted.resource = submitted.threadId = kineto::systemThreadId();
    submitted.flow.start = true;  // an arrow from the host's thread to the op
  }

 private:
  static constexpr int64_t kSortIndex = 1 << 20;  // below the rows of the host

  kineto::GenericTraceActivity& activity(kineto::ActivityType type, const std::string& name,
                                         const ProfiledOp& op) {
    buffer_->emplace_activity(buffer_->span, type, name);
    auto& made = *buffer_->activities.back();
    made.startTime = op.begin_ns;
    made.endTime = op.end_ns;
    if (t_correlations.empty()) return made;
    made.id = static_cast<int32_t>(t_correlations.back());
    made.flow.id = made.id;
    made.flow.type = kineto::kLinkAsyncCpuGpu;
    return made;
  }

  void forget() {
    const std::lock_guard lock(g_mutex);
    if (g_session == this) g_session = nullptr;
  }

  std::unique_ptr<kineto::CpuTraceBuffer> buffer_ = std::make_unique<kineto::CpuTraceBuffer>();
};

class Profiler final : public kineto::IActivityProfiler {
 public:
  const std::string& name() const override { return kName; }
  const std::set<kineto::ActivityType>& availableActivities() const override { return types_; }
  std::unique_ptr<kineto::IActivityProfilerSession> configure(
      const std::set<kineto::ActivityType>& types, const kineto::Config&) override {
    if (!types.contains(kineto::ActivityType::CONCURRENT_KERNEL)) return nullptr;
    return std::make_unique<Session>();
  }
  std::unique_ptr<kineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<kineto::ActivityType>& types,
      const kineto::Config& config) override {
    return configure(types, config);
  }

 private:
  std::set<kineto::ActivityType> types_{kineto::ActivityType::CONCURRENT_KERNEL,
                                        kineto::ActivityType::PRIVATEUSE1_RUNTIME};
};

}  // namespace

void register_profiler(std::function<void(bool)> function) {
  watch() = std::move(function);
  torch::profiler::impl::PrivateUse1ProfilerRegistry::instance().registerFactory(
      [] { return std::make_unique<Profiler>(); });
}

void profile_op(const ProfiledOp& op) {
  const std::lock_guard lock(g_mutex);
  if (g_session != nullptr) g_session->add(op);
}

}  // namespace npu
