// SPDX-License-Identifier: Apache-2.0
/// GATHER and SCATTER on views that passed every check. Single-threaded: they run at memory speed,
/// and SCATTER's order is row-major.
#pragma once

#include "memory.h"
#include "tensor_view.h"

namespace npu {

/// `walked` and `index` have one shape; `table` has it too but in dimension `dim`.
struct IndexedCopy {
  TensorView walked;  // GATHER's destination, SCATTER's source
  TensorView index;
  TensorView table;  // GATHER's source, SCATTER's destination
  std::size_t dim;
};

/// Every index lies in the table. BAD_INDEX; BUS_READ and BUS_WRITE for the elements of the table
/// that are hit, as far as they are read or written.
void check_indices(const Memory& memory, const IndexedCopy& indexed, bool reads, bool writes);

/// walked[i] = table[i with i[dim] replaced by index[i]].
void gather(Memory& memory, const IndexedCopy& indexed);
/// table[i with i[dim] replaced by index[i]] = walked[i], or the sum of both.
void scatter(Memory& memory, const IndexedCopy& indexed, bool accumulate);

}  // namespace npu
