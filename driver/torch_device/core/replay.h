// SPDX-License-Identifier: Apache-2.0
// Calls by signature: one that was made before, with tensors of the same shapes, goes to the queue
// without Python. Knows no op: Python says what a call of a signature does.
#pragma once

#include <Python.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program.h"

namespace npu {

// All of a call that decides what the device does: op, types, sizes, strides, numbers, words, and
// which tensors begin at the same byte. Only tensors of one device are admitted.
struct Signature {
  std::string key;
  std::vector<PyObject*> tensors;  // as they come in args and kwargs; borrowed
  std::vector<uint64_t> addresses;
  int device = -1;
};
// None for a call that has to be looked at in Python: with a generator, with CPU tensors, without a
// tensor of the device. The error of torch for a tensor whose device memory is gone.
std::optional<Signature> signature(PyObject* op, PyObject* args, PyObject* kwargs);

// What a call of some signature does.
struct Replay {
  struct Result {
    int tensor;  // number of the call's tensor that it is written to; negative for a fresh one
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    int dtype;  // of torch, as a number
    bool exists;
  };
  // A result and an operand that may share bytes only as `together` says. Sizes in bytes.
  struct Overlap {
    size_t result;
    size_t result_size;
    size_t operand;
    size_t operand_size;
    bool together;  // whether the two may be one
  };
  ProgramPtr program;
  std::vector<size_t> operands;  // numbers of the call's tensors, then of the results
  std::vector<Result> results;
  std::vector<Overlap> overlaps;
  // Of a random op: the seed of the device's generator. A numbered program has the number of the
  // stream for one more operand.
  std::optional<uint64_t> seed;
};

// At most so many calls are remembered; the one that was not used for the longest time goes first.
inline constexpr size_t kRemembered = 4096;

// `op` is kept, as its address is part of the key.
void remember(const std::string& key, PyObject* op, Replay replay);
void forget_all();
size_t remembered();
// Queues the call again and gives its results (a new reference); null when it is not known.
PyObject* replayed(const Signature& call);

}  // namespace npu
