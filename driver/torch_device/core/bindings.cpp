// SPDX-License-Identifier: Apache-2.0
// The core as a Python extension, beside the modules that use it.
#include <ATen/Context.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/version.h>

#include "core.h"

namespace nb = nanobind;

namespace {

// The Python function as a C++ one that any thread may call. Never freed: storages may die after
// the interpreter. What it raises goes on as it is.
template <typename Result, typename... Arguments>
std::function<Result(Arguments...)> callback(nb::callable function) {
  auto* const kept = new nb::callable(std::move(function));
  return [kept](Arguments... arguments) -> Result {
    const nb::gil_scoped_acquire gil;
    try {
      return nb::cast<Result>((*kept)(arguments...));
    } catch (nb::python_error& error) {
      error.restore();
      ::python_error raised;
      raised.persist();
      throw raised;
    }
  };
}

npu::Generator& generator_of(nb::handle generator) {
  if (!THPGenerator_Check(generator.ptr())) throw nb::type_error("not a torch.Generator");
  const auto& wrapped = reinterpret_cast<THPGenerator*>(generator.ptr())->cdata;
  if (!wrapped.device().is_privateuseone()) throw nb::value_error("not a generator of the npu");
  return *wrapped.get<npu::Generator>();
}

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // the callbacks are kept on purpose
  m.attr("TORCH_VERSION") = TORCH_VERSION;
  m.def("start",
        [](int device_count, nb::callable allocate, nb::callable copy, nb::callable cycles) {
          npu::start(device_count,
                     {.allocate = callback<uint64_t, int, size_t>(std::move(allocate)),
                      .copy = callback<void, int, uint64_t, uint64_t, size_t>(std::move(copy)),
                      .cycles = callback<double, int>(std::move(cycles))});
        });
  m.def("take_released", &npu::take_released);
  m.def("default_generator", [](int device) {
    const at::Device where(at::kPrivateUse1, static_cast<c10::DeviceIndex>(device));
    return nb::steal(THPGenerator_Wrap(at::globalContext().defaultGenerator(where)));
  });
  m.def("next_stream", [](nb::handle generator) { return generator_of(generator).next_stream(); });
}
