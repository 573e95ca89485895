// SPDX-License-Identifier: Apache-2.0
#include "gather.h"

#include <cstring>

#include "elements.h"
#include "fault.h"
#include "micro.h"
#include "parallel.h"
#include "walk.h"

namespace npu {

namespace {

using isa::DType;
using isa::ErrorCode;

/// Operands of the walk. The table has stride 0 in dimension `dim`.
enum Operand : std::size_t { kWalked, kIndex, kTable };

std::int64_t read_index(const std::byte* at, DType dtype) {
  if (dtype == DType::kInt64) {
    std::int64_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  return static_cast<std::int32_t>(scalar::load32(at));
}

Walk walk_of(const IndexedCopy& indexed) {
  TensorView table = indexed.table;
  table.stride[indexed.dim] = 0;
  const std::array operands{indexed.walked, indexed.index, table};
  return {indexed.walked.shape, operands, false};
}

/// A stretch of a row for which one index holds.
struct Stretch {
  Address walked;
  Address table;
  std::uint64_t walked_step;  // bytes
  std::uint64_t table_step;
  std::uint64_t count;
};

/// Calls visit(stretch) in row-major order; indices have been checked.
template <class Visit>
void for_each_stretch(const Memory& memory, const IndexedCopy& indexed, Visit&& visit) {
  const Walk walk = walk_of(indexed);
  const std::uint64_t bytes_per_index =
      indexed.table.stride[indexed.dim] * indexed.table.element_bytes();
  const bool shared = walk.step(kIndex) == 0;  // by the whole row
  const std::uint64_t count = shared ? walk.row_elements() : 1;
  Walk::Cursor cursor(walk, 0);
  for (std::uint64_t row = 0; row < walk.rows(); ++row, cursor.advance()) {
    for (std::uint64_t i = 0; i < walk.row_elements(); i += count) {
      const Address at = indexed.index.base + cursor.offset(kIndex) + i * walk.step(kIndex);
      const auto index = static_cast<std::uint64_t>(read_index(memory.at(at), indexed.index.dtype));
      visit(Stretch{indexed.walked.base + cursor.offset(kWalked) + i * walk.step(kWalked),
                    indexed.table.base + cursor.offset(kTable) + i * walk.step(kTable) +
                        index * bytes_per_index,
                    walk.step(kWalked), walk.step(kTable), count});
    }
  }
}

void check_range(const Memory& memory, const IndexedCopy& indexed) {
  const auto size = static_cast<std::int64_t>(indexed.table.shape.size[indexed.dim]);
  const unsigned bytes = indexed.index.element_bytes();
  for_each_run(indexed.index, [&](Address address, std::uint64_t length) {
    for (std::uint64_t at = 0; at < length; at += bytes) {
      const std::int64_t index = read_index(memory.at(address + at), indexed.index.dtype);
      fail_if(index < 0 || index >= size, ErrorCode::kBadIndex, [&] {
        return "index " + std::to_string(index) + " at " + hex(address + at) +
               " is outside a table of " + std::to_string(size);
      });
    }
  });
}

template <class Visit>
void for_each_element(const Stretch& stretch, Visit&& visit) {
  for (std::uint64_t i = 0; i < stretch.count; ++i) {
    visit(stretch.walked + i * stretch.walked_step, stretch.table + i * stretch.table_step);
  }
}

/// Moves a stretch's elements, `bytes` each.
void move_stretch(std::byte* dst, std::uint64_t dst_step, const std::byte* src,
                  std::uint64_t src_step, std::uint64_t count, unsigned bytes) {
  if (dst_step == bytes && src_step == bytes) {
    std::memmove(dst, src, count * bytes);
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(dst + i * dst_step, src + i * src_step, bytes);
  }
}

template <DType kDType>
void add_element(std::byte* old, const std::byte* added) {
  const std::uint32_t a = scalar::load_element<kDType>(old);
  const std::uint32_t b = scalar::load_element<kDType>(added);
  scalar::store_element<kDType>(kDType == DType::kInt32 ? a + b : scalar::fma32(a, scalar::kOne, b),
                                old);
}

}  // namespace

void check_indices(const Memory& memory, const IndexedCopy& indexed, bool reads, bool writes) {
  check_range(memory, indexed);
  if (!memory.has_poison()) return;
  const unsigned bytes = indexed.table.element_bytes();
  for_each_stretch(memory, indexed, [&](const Stretch& stretch) {
    for_each_element(stretch, [&](Address, Address table) {
      fail_if(reads && memory.read_fails(table, bytes), ErrorCode::kBusRead,
              [&] { return "table: bus error reading near " + hex(table); });
      fail_if(writes && memory.write_fails(table, bytes), ErrorCode::kBusWrite,
              [&] { return "table: bus error writing near " + hex(table); });
    });
  });
}

void gather(Memory& memory, const IndexedCopy& indexed) {
  for_each_stretch(memory, indexed, [&](const Stretch& stretch) {
    move_stretch(memory.at(stretch.walked), stretch.walked_step, memory.at(stretch.table),
                 stretch.table_step, stretch.count, indexed.table.element_bytes());
  });
  mark_written(memory, indexed.walked);
}

void scatter(Memory& memory, const IndexedCopy& indexed, bool accumulate) {
  const FloatEnvironment environment;
  const unsigned bytes = indexed.table.element_bytes();
  for_each_stretch(memory, indexed, [&](const Stretch& stretch) {
    if (accumulate) {
      scalar::with_dtype(indexed.table.dtype, [&](auto dtype) {
        for_each_element(stretch, [&](Address added, Address old) {
          add_element<dtype>(memory.at(old), memory.at(added));
        });
      });
    } else {
      move_stretch(memory.at(stretch.table), stretch.table_step, memory.at(stretch.walked),
                   stretch.walked_step, stretch.count, bytes);
    }
    for_each_element(stretch, [&](Address, Address table) { memory.mark_written(table, bytes); });
  });
}

}  // namespace npu
