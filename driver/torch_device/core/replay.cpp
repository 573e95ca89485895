// SPDX-License-Identifier: Apache-2.0
// Calls that were made before, by their signature.
#include "replay.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/python_variable.h>

#include <list>
#include <string_view>
#include <unordered_map>

#include "core.h"

namespace npu {
namespace {

using ReplayPtr = std::shared_ptr<const Replay>;
struct Entry {
  std::string key;
  PyObject* op;  // owned
  ReplayPtr replay;
};

// Changed only with the interpreter's lock held.
struct Calls {
  std::list<Entry> entries;  // the one used last comes first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key;
};
Calls& calls() {
  static auto* const instance = new Calls;
  return *instance;
}

ReplayPtr find(const std::string& key) {
  auto& [entries, by_key] = calls();
  const auto found = by_key.find(key);
  if (found == by_key.end()) return nullptr;
  entries.splice(entries.begin(), entries, found->second);
  return found->second->replay;
}

bool is_safe(const Replay& replay, const std::vector<uint64_t>& addresses) {
  for (const auto& [result, result_size, operand, operand_size, together] : replay.overlaps) {
    const uint64_t to = addresses[result], from = addresses[operand];
    if (from < to + result_size && to < from + operand_size && !together) return false;
  }
  return true;
}

struct Handle {
  PyObject* object;
  explicit Handle(PyObject* owned) : object(owned) {
    if (owned == nullptr) throw python_error();
  }
  Handle(Handle&& other) noexcept : object(std::exchange(other.object, nullptr)) {}
  ~Handle() { Py_XDECREF(object); }
  PyObject* release() { return std::exchange(object, nullptr); }
};

// The result as Python has it, and its address added to `addresses`.
Handle made(const Replay::Result& result, const Signature& call, std::vector<uint64_t>& addresses) {
  if (!result.exists || result.tensor >= 0) {
    PyObject* const known = result.exists ? call.tensors[result.tensor] : Py_None;
    addresses.push_back(result.exists ? call.addresses[result.tensor] : 0);
    return Handle(Py_NewRef(known));
  }
  auto tensor = at::detail::empty_strided_generic(
      result.sizes, result.strides, allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      static_cast<at::ScalarType>(result.dtype));
  addresses.push_back(address_of(tensor.data_ptr()));
  return Handle(THPVariable_Wrap(std::move(tensor)));
}

// Adds the number of the op's stream, if it draws from one. False: the seed is another by now.
bool add_number(const Replay& replay, int device, std::vector<uint64_t>& operands) {
  if (!replay.seed) return true;
  const at::Device where(kNpu, static_cast<c10::DeviceIndex>(device));
  const auto& generator = at::globalContext().defaultGenerator(where);
  const auto number = generator.get<Generator>()->next_number(*replay.seed);
  if (number && replay.program->numbered) operands.push_back(*number);
  return number.has_value();
}

}  // namespace

void remember(const std::string& key, PyObject* op, Replay replay) {
  auto& [entries, by_key] = calls();
  if (const auto known = by_key.find(key); known != by_key.end()) {
    known->second->replay = std::make_shared<const Replay>(std::move(replay));  // of another seed
    return;
  }
  if (entries.size() >= kRemembered) {
    by_key.erase(entries.back().key);
    Py_DECREF(entries.back().op);
    entries.pop_back();
  }
  entries.push_front({key, Py_NewRef(op), std::make_shared<const Replay>(std::move(replay))});
  by_key[entries.front().key] = entries.begin();
}

void forget_all() {
  auto& [entries, by_key] = calls();
  by_key.clear();
  for (const auto& entry : entries) Py_DECREF(entry.op);
  entries.clear();
}

size_t remembered() { return calls().entries.size(); }

PyObject* replayed(const Signature& call) {
  const auto replay = find(call.key);
  if (replay == nullptr || !is_safe(*replay, call.addresses)) return nullptr;
  const c10::DeviceGuard guard({kNpu, static_cast<c10::DeviceIndex>(call.device)});
  auto addresses = call.addresses;
  std::vector<Handle> results;
  for (const auto& result : replay->results) results.push_back(made(result, call, addresses));
  std::vector<uint64_t> operands;
  for (const size_t at : replay->operands) operands.push_back(addresses[at]);
  if (!add_number(*replay, call.device, operands)) return nullptr;
  enqueue(call.device, replay->program, operands);
  if (results.size() == 1) return results[0].release();
  Handle tuple(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t at = 0; at < results.size(); ++at) {
    PyTuple_SET_ITEM(tuple.object, static_cast<Py_ssize_t>(at), results[at].release());
  }
  return tuple.release();
}

}  // namespace npu
