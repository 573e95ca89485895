// SPDX-License-Identifier: Apache-2.0
// What of a call decides the commands, as bytes.
#include <ATen/EmptyTensor.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>

#include "core.h"
#include "replay.h"

namespace npu {
namespace {

template <typename Value>
void add(std::string& key, char tag, const Value& value) {
  key.push_back(tag);
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void add(std::string& key, char tag, at::IntArrayRef values) {
  add(key, tag, values.size());
  key.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
}

bool add_text(std::string& key, PyObject* text) {
  Py_ssize_t size = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(text, &size);
  if (data == nullptr) {
    PyErr_Clear();
    return false;
  }
  add(key, 's', size);
  key.append(data, static_cast<size_t>(size));
  return true;
}

bool add_tensor(Signature& call, PyObject* value) {
  const auto& tensor = THPVariable_Unpack(value);
  if (!tensor.is_privateuseone() || tensor.is_conj() || tensor.is_neg()) return false;
  const int device = tensor.device().index();
  if (call.device >= 0 && call.device != device) return false;
  call.device = device;
  // A storage that was shortened: the slow way says so.
  const auto end_bytes = at::detail::computeStorageNbytes(
      tensor.sizes(), tensor.strides(), tensor.itemsize(), tensor.storage_offset());
  if (tensor.numel() > 0 && tensor.storage().nbytes() < end_bytes) return false;
  const void* const pointer = tensor.data_ptr();
  check_usable(pointer);
  call.tensors.push_back(value);
  call.addresses.push_back(address_of(pointer));
  add(call.key, 'T', tensor.scalar_type());
  add(call.key, 'z', tensor.sizes());
  add(call.key, 'w', tensor.strides());
  return true;
}

bool add_number(std::string& key, PyObject* value) {
  if (PyBool_Check(value)) {
    key.push_back(value == Py_True ? 't' : 'f');
  } else if (PyFloat_CheckExact(value)) {
    add(key, 'd', PyFloat_AS_DOUBLE(value));
  } else {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow != 0) return false;
    add(key, 'i', number);
  }
  return true;
}

bool add_value(Signature& call, PyObject* value);

bool add_items(Signature& call, PyObject* list) {
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  add(call.key, PyList_Check(list) ? '[' : '(', count);
  for (Py_ssize_t at = 0; at < count; ++at) {
    if (!add_value(call, PySequence_Fast_GET_ITEM(list, at))) return false;
  }
  return true;
}

bool add_value(Signature& call, PyObject* value) {
  auto& key = call.key;
  if (THPVariable_Check(value)) return add_tensor(call, value);
  if (PyBool_Check(value) || PyFloat_CheckExact(value) || PyLong_CheckExact(value)) {
    return add_number(key, value);
  }
  if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) return add_items(call, value);
  if (PyUnicode_Check(value)) return add_text(key, value);
  if (value == Py_None) {
    key.push_back('N');
  } else if (THPDtype_Check(value)) {
    add(key, 'y', reinterpret_cast<THPDtype*>(value)->scalar_type);
  } else if (THPLayout_Check(value)) {
    add(key, 'l', reinterpret_cast<THPLayout*>(value)->layout);
  } else if (THPMemoryFormat_Check(value)) {
    add(key, 'm', reinterpret_cast<THPMemoryFormat*>(value)->memory_format);
  } else if (THPDevice_Check(value)) {
    const auto device = reinterpret_cast<THPDevice*>(value)->device;
    if (device.type() != kNpu) return false;
    add(key, 'D', device.index());
  } else {
    return false;
  }
  return true;
}

// For each tensor the first one that begins at the same byte.
void add_aliases(Signature& call) {
  const auto& all = call.addresses;
  call.key.push_back('=');
  for (const uint64_t address : all) {
    call.key.push_back(static_cast<char>(std::find(all.begin(), all.end(), address) - all.begin()));
  }
}

}  // namespace

std::optional<Signature> signature(PyObject* op, PyObject* args, PyObject* kwargs) {
  constexpr size_t kMostTensors = 127;
  Signature call;
  call.key.reserve(256);
  add(call.key, 'o', op);
  add(call.key, 'y', c10::typeMetaToScalarType(at::get_default_dtype()));  // of numbers' results
  if (!add_items(call, args)) return std::nullopt;
  PyObject *name = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &name, &value);) {
    if (!add_text(call.key, name) || !add_value(call, value)) return std::nullopt;
  }
  if (call.device < 0 || call.tensors.size() > kMostTensors) return std::nullopt;
  add_aliases(call);
  return call;
}

}  // namespace npu
