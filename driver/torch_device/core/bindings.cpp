// SPDX-License-Identifier: Apache-2.0
// The core as a Python extension, beside the modules that use it.
#include <ATen/Context.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/version.h>

#include "core.h"
#include "profiler.h"
#include "replay.h"

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

// Calls what may run callbacks: what they raised goes back to Python as it is, and torch's own
// errors without the stack of C++.
template <typename Call>
auto raising(Call call) {
  try {
    return call();
  } catch (::python_error& error) {
    error.restore();
    throw nb::python_error();
  } catch (c10::Error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what_without_backtrace());
    throw nb::python_error();
  }
}

npu::Generator& generator_of(nb::handle generator) {
  if (!THPGenerator_Check(generator.ptr())) throw nb::type_error("not a torch.Generator");
  const auto& wrapped = reinterpret_cast<THPGenerator*>(generator.ptr())->cdata;
  if (!wrapped.device().is_privateuseone()) {  // as torch says it
    throw std::runtime_error("Expected a 'npu' device type for generator but found '" +
                             c10::DeviceTypeName(wrapped.device().type(), true) + "'");
  }
  return *wrapped.get<npu::Generator>();
}

nb::bytes bytes_of(const std::vector<uint64_t>& words) {
  return nb::bytes(words.data(), words.size() * sizeof(uint64_t));
}

using Words = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Sections = std::vector<std::pair<size_t, int64_t>>;

std::shared_ptr<npu::Program> program(std::string op, size_t operands, std::vector<size_t> written,
                                      bool numbered, size_t packets, const Words& image,
                                      const Numbers& words, const Numbers& symbols,
                                      const Sections& sections) {
  constexpr size_t kLineWords = 8;
  auto made = std::make_shared<npu::Program>();
  made->op = std::move(op);
  made->operands = operands;
  made->written = std::move(written);
  made->numbered = numbered;
  made->packet_words = packets * kLineWords;
  made->image.assign(image.data(), image.data() + image.size());
  made->image.resize((image.size() + kLineWords - 1) / kLineWords * kLineWords);
  for (size_t at = 0; at < words.size(); ++at) {
    made->relocations.push_back(
        {static_cast<uint32_t>(words.data()[at]), static_cast<uint32_t>(symbols.data()[at])});
  }
  for (const auto& [size, content] : sections) made->sections.push_back({size, content});
  return made;
}

// A result: the number of the call's tensor that it is, or sizes, strides and type of a fresh one.
npu::Replay::Result result(nb::handle described) {
  if (described.is_none()) return {-1, {}, {}, 0, false};
  if (PyLong_Check(described.ptr())) return {nb::cast<int>(described), {}, {}, 0, true};
  const auto [sizes, strides, dtype] =
      nb::cast<std::tuple<std::vector<int64_t>, std::vector<int64_t>, nb::object>>(described);
  if (!THPDtype_Check(dtype.ptr())) throw nb::type_error("not a torch.dtype");
  const auto type = reinterpret_cast<THPDtype*>(dtype.ptr())->scalar_type;
  return {-1, sizes, strides, static_cast<int>(type), true};
}

using Overlap = std::tuple<size_t, size_t, size_t, size_t, bool>;

void remember(const nb::bytes& key, nb::handle op, const npu::ProgramPtr& program,
              const std::vector<size_t>& operands, const nb::list& results,
              const std::vector<Overlap>& overlaps, std::optional<uint64_t> seed) {
  npu::Replay replay{program, operands, {}, {}, seed};
  for (const nb::handle described : results) replay.results.push_back(result(described));
  for (const auto& [to, to_size, from, from_size, together] : overlaps) {
    replay.overlaps.push_back({to, to_size, from, from_size, together});
  }
  npu::remember({key.c_str(), key.size()}, op.ptr(), std::move(replay));
}

nb::object replayed(nb::handle op, nb::handle args, nb::handle kwargs) {
  return raising([&] {
    const auto call = npu::signature(op.ptr(), args.ptr(), kwargs.ptr());
    PyObject* const made = call ? npu::replayed(*call) : nullptr;
    return made == nullptr ? nb::borrow(Py_NotImplemented) : nb::steal(made);
  });
}

nb::object signature(nb::handle op, nb::handle args, nb::handle kwargs) {
  const auto call = raising([&] { return npu::signature(op.ptr(), args.ptr(), kwargs.ptr()); });
  if (!call) return nb::none();
  nb::list tensors;
  for (PyObject* const tensor : call->tensors) tensors.append(nb::borrow(tensor));
  return nb::make_tuple(nb::bytes(call->key.data(), call->key.size()), tensors);
}

nb::object take_batch(int device) {
  const auto batch = npu::take_batch(device);
  if (batch.ops.empty()) return nb::none();
  nb::list ops;
  for (const auto& [first, program, thread, position, begin, written] : batch.ops)
    ops.append(nb::make_tuple(first, program->op, thread, position, begin, written));
  return nb::make_tuple(bytes_of(batch.packets), batch.address, bytes_of(batch.contents), ops);
}

void start(int device_count, nb::callable allocate, nb::callable free_released, nb::callable copy,
           nb::callable submit, nb::callable wait, nb::callable is_idle, nb::callable raise_fault,
           nb::callable hear, nb::callable record) {
  npu::start(device_count,
             {.allocate = callback<uint64_t, int, size_t>(std::move(allocate)),
              .free_released = callback<void, int>(std::move(free_released)),
              .copy = callback<void, int, uint64_t, uint64_t, size_t>(std::move(copy)),
              .submit = callback<void, int, size_t>(std::move(submit)),
              .wait = callback<void, int>(std::move(wait)),
              .is_idle = callback<bool, int>(std::move(is_idle)),
              .raise_fault = callback<void, int>(std::move(raise_fault)),
              .hear = callback<void, int>(std::move(hear)),
              .record = callback<void, int, std::shared_ptr<npu::Mark>>(std::move(record))});
}

void bind_queue(nb::module_& m) {
  nb::class_<npu::Program>(m, "Program");
  nb::class_<npu::Mark>(m, "Mark").def(
      "reach", [](npu::Mark& mark, double cycles) { mark.cycles = cycles; });
  m.def("program", &program);
  m.def("enqueue",
        [](int device, const npu::ProgramPtr& program, const std::vector<uint64_t>& operands) {
          raising([&] { npu::enqueue(device, program, operands); });
        });
  m.def("take_batch", &take_batch);
  m.def("set_contents_memory", &npu::set_contents_memory);
  m.def("signature", &signature);
  m.def("remember", &remember);
  m.def("replayed", &replayed);
  m.def("remembered", &npu::remembered);
  m.def("forget_calls", &npu::forget_all);
}

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // the callbacks are kept on purpose
  m.attr("TORCH_VERSION") = TORCH_VERSION;
  m.def("start", &start);
  m.def("take_released", &npu::take_released);
  m.def("forget_memory", &npu::forget_memory);
  m.def("mark_lost", [](int device, uint64_t begin, uint64_t position, unsigned long thread,
                        std::vector<uint64_t> written, const std::string& reason) {
    return npu::mark_lost(device, {begin, position, thread, std::move(written)}, reason);
  });
  m.def("enter_call", &npu::enter_call);
  m.def("leave_call", &npu::leave_call);
  m.def("note_stored", [](uint64_t pointer, size_t size) {
    npu::note_stored(reinterpret_cast<const void*>(pointer), size);
  });
  m.def("address", [](uint64_t pointer, bool is_stored) {
    const auto* const at = reinterpret_cast<const void*>(pointer);
    raising([&] { is_stored ? npu::check_alive(at) : npu::check_usable(at); });
    return npu::address_of(at);
  });
  m.def("default_generator", [](int device) {
    const at::Device where(at::kPrivateUse1, static_cast<c10::DeviceIndex>(device));
    return nb::steal(THPGenerator_Wrap(at::globalContext().defaultGenerator(where)));
  });
  m.def("watch_views", [](const std::optional<nb::callable>& view) {
    if (!view) return npu::watch_views({});
    npu::watch_views(callback<void, npu::Sizes, npu::Sizes>(*view));
  });
  m.def("register_profiler",
        [](nb::callable watch) { npu::register_profiler(callback<void, bool>(std::move(watch))); });
  m.def("profile_op",
        [](std::string name, int device, int64_t begin_ns, int64_t end_ns, int64_t cycles) {
          npu::profile_op({std::move(name), device, begin_ns, end_ns, cycles});
        });
  m.def("next_stream", [](nb::handle generator) { return generator_of(generator).next_stream(); });
  m.def("mark_number", [](nb::handle tensor) {
    if (!THPVariable_Check(tensor.ptr())) throw nb::type_error("not a torch.Tensor");
    THPVariable_Unpack(tensor.ptr()).unsafeGetTensorImpl()->set_wrapped_number(true);
  });
  bind_queue(m);
}
