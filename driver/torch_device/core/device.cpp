// SPDX-License-Identifier: Apache-2.0
// The current device of each thread, streams and events, generators, and torch's hooks.
#include <ATen/Functions.h>
#include <ATen/core/Generator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <bit>
#include <cstring>

#include "core.h"

namespace npu {
namespace {

static_assert(std::endian::native == std::endian::little, "a generator's state is little endian");

int g_device_count = 0;
Callbacks g_callbacks;
thread_local c10::DeviceIndex t_current = 0;

// A device has one queue. All streams are that queue, so the work of one stream comes after what
// any stream was given before, and no stream has to wait for another.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kNpu; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const auto before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {kNpu, t_current}; }
  void setDevice(c10::Device device) const override { set_current_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    t_current = device.index();
  }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device.has_index() ? device : getDevice());
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return getStream(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getStream(device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return getStream(stream.device());
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(g_device_count);
  }
  bool queryStream(const c10::Stream& stream) const override {
    return g_callbacks.is_idle(stream.device_index());
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    g_callbacks.wait(stream.device_index());
  }
  void synchronizeDevice(c10::DeviceIndex device) const override { g_callbacks.wait(device); }

  // An event is a place in the queue; its time is the device's cycle counter there.
  struct Event {
    c10::DeviceIndex device;
    std::shared_ptr<Mark> mark;
  };
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex,
              c10::EventFlag) const override {
    auto mark = std::make_shared<Mark>();
    g_callbacks.record(stream.device_index(), mark);
    destroyEvent(*event, stream.device_index());
    *event = new Event{stream.device_index(), std::move(mark)};
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void* event) const override {
    return event == nullptr || static_cast<Event*>(event)->mark->cycles >= 0;
  }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    const auto device = static_cast<Event*>(event)->device;
    queryEvent(event) ? g_callbacks.raise_fault(device) : g_callbacks.wait(device);
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* begin, void* end, c10::DeviceIndex) const override {
    synchronizeEvent(begin);
    synchronizeEvent(end);
    return static_cast<Event*>(end)->mark->cycles - static_cast<Event*>(begin)->mark->cycles;
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return g_device_count > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(g_device_count);
  }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_current_device(device); }
  c10::DeviceIndex getCurrentDevice() const override { return t_current; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const auto before = t_current;
    if (device >= 0) set_current_device(device);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return exchangeDevice(device);
  }
  bool isPinnedPtr(const void* pointer) const override { return is_pinned(pointer); }
  at::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  at::Device getDeviceFromPtr(void* pointer) const override { return {kNpu, device_of(pointer)}; }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return at::make_generator<Generator>(index < 0 ? t_current : index);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    static const auto* const generators = [this] {
      auto* made = new std::vector<at::Generator>;
      for (int at = 0; at < g_device_count; ++at) made->push_back(getNewGenerator(at));
      return made;
    }();
    return generators->at(index < 0 ? t_current : index);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size) const override {
    resize_storage(storage, size);
  }
};
Hooks g_hooks;

}  // namespace

void start(int device_count, Callbacks callbacks) {
  g_device_count = device_count;
  g_callbacks = std::move(callbacks);
  at::RegisterPrivateUse1HooksInterface(&g_hooks);
}
int device_count() { return g_device_count; }
const Callbacks& callbacks() { return g_callbacks; }

c10::DeviceIndex current_device() { return t_current; }
void set_current_device(c10::DeviceIndex device) {
  TORCH_CHECK(0 <= device && device < g_device_count, "npu: device index ", int(device),
              " is out of range: there are ", g_device_count, " devices");
  t_current = device;
}

// ---------------------------------------------------------------------- generator
Generator::Generator(c10::DeviceIndex index)
    : GeneratorImpl({kNpu, index}, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      seed_(c10::default_rng_seed_val) {}

void Generator::set_current_seed(uint64_t seed) {
  seed_ = seed;
  next_op_ = 0;
}
uint64_t Generator::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom());
  return seed_;
}
void Generator::set_state(const c10::TensorImpl& state) {
  constexpr int64_t kSize = sizeof(seed_) + sizeof(next_op_);
  TORCH_CHECK(state.device().is_cpu() && state.dtype() == caffe2::TypeMeta::Make<uint8_t>() &&
                  state.is_contiguous() && state.numel() == kSize,
              "npu: a generator's state is a CPU tensor of ", kSize, " bytes");
  const auto* bytes = static_cast<const char*>(state.data());
  std::memcpy(&seed_, bytes, sizeof(seed_));
  std::memcpy(&next_op_, bytes + sizeof(seed_), sizeof(next_op_));
}
c10::intrusive_ptr<c10::TensorImpl> Generator::get_state() const {
  auto state = at::empty({sizeof(seed_) + sizeof(next_op_)}, at::kByte);
  auto* bytes = static_cast<char*>(state.data_ptr());
  std::memcpy(bytes, &seed_, sizeof(seed_));
  std::memcpy(bytes + sizeof(seed_), &next_op_, sizeof(next_op_));
  return state.getIntrusivePtr();
}
std::pair<uint64_t, uint64_t> Generator::next_stream() {
  const std::lock_guard lock(mutex_);
  return {seed_, next_op_++};
}
std::optional<uint64_t> Generator::next_number(uint64_t seed) {
  const std::lock_guard lock(mutex_);
  if (seed != seed_) return std::nullopt;
  return next_op_++;
}
Generator* Generator::clone_impl() const {
  auto* copy = new Generator(device_.index());
  copy->seed_ = seed_;
  copy->next_op_ = next_op_;
  return copy;
}

}  // namespace npu
