// SPDX-License-Identifier: Apache-2.0
// What may run at the same time, judged on the tensors that the engines were handed.
#pragma once

#include "expected.hpp"

// The bytes of an operand, from its first to its last one.
struct Span {
  uint64_t first, last;
  bool write;

  bool meets(const Span& other) const { return first <= other.last && other.first <= last; }
};

// The engine that runs an opcode; kNoEngine when none does.
inline Engine engine_of(uint32_t opcode) {
  switch (Opcode(opcode)) {
    case Opcode::kMatmul:
      return kMatrix;
    case Opcode::kCopy:
    case Opcode::kFill:
      return kCopy;
    case Opcode::kVector:
    case Opcode::kLoad:
      return kVector;
    case Opcode::kGather:
    case Opcode::kScatter:
      return kGather;
    default:
      return kNoEngine;
  }
}

inline bool is_load(const Dispatch& d) { return d.opcode == uint32_t(Opcode::kLoad); }

inline unsigned sources_of(const Dispatch& d) {
  if (d.engine == kVector) return d.info >> 5 & 7;
  if (d.engine == kCopy) return d.opcode == uint32_t(Opcode::kCopy) ? 1 : 0;
  return 2;
}

inline unsigned results_of(const Dispatch& d) { return d.engine == kVector ? d.info >> 3 & 3 : 1; }

inline Span span_of(const View& view, uint32_t dtype, bool write) {
  uint64_t last = 0;
  for (unsigned i = 0; i < kMaxRank; ++i) last += uint64_t(view.size[i] - 1) * view.stride[i];
  return {view.base, view.base + (last + 1) * kDTypeBytes.at(dtype) - 1, write};
}

// Elements from the first of `places` to the last one.
inline uint64_t reach(const AxisView& axis, uint64_t places) {
  check(places != 0 && axis.inner != 0 && axis.middle != 0,
        "an engine was handed a window of no elements");
  const uint64_t inner = (places - 1) / axis.inner, middle = inner / axis.middle;
  return (places - 1 - inner) * axis.step[0] + (inner - middle) * axis.step[1] +
         middle * axis.step[2];
}

inline Span span_of(const WindowView& window, uint64_t batch, uint64_t rows, uint64_t columns,
                    uint32_t dtype, bool write) {
  const uint64_t last =
      (batch - 1) * window.batch + reach(window.row, rows) + reach(window.col, columns);
  return {window.base, window.base + (last + 1) * kDTypeBytes.at(dtype) - 1, write};
}

// Groups of 2^shift rows that hold so many rows.
inline uint64_t rounded_up(uint64_t rows, unsigned shift) {
  return (rows + (uint64_t(1) << shift) - 1) >> shift;
}

inline std::vector<Span> product_spans(const Dispatch& d) {
  // npu_product_t: m, k, n, batch.
  const auto [m, k, n, batch] = d.product;
  const bool int4 = d.int4_group != 0;
  std::vector<Span> spans{span_of(d.windows[0], batch, m, k, d.src_dtypes[0], false),
                          span_of(d.windows[1], batch, int4 ? rounded_up(k, 3) : k, n,
                                  int4 ? uint32_t(DType::kInt32) : d.src_dtypes[0], false),
                          span_of(d.windows[4], batch, m, n, d.dst_dtypes[0], true)};
  if (int4)
    spans.push_back(
        span_of(d.windows[kScales], batch, rounded_up(k, d.int4_group), n, d.src_dtypes[0], false));
  if (d.accumulate) spans.push_back(span_of(d.windows[2], batch, m, n, d.dst_dtypes[0], false));
  return spans;
}

inline std::vector<Span> spans_of(const Dispatch& d) {
  if (d.engine == kMatrix) return product_spans(d);
  std::vector<Span> spans;
  for (unsigned i = 0; i < sources_of(d); ++i)
    spans.push_back(span_of(d.sources[i], d.src_dtypes[i], false));
  for (unsigned i = 0; i < results_of(d); ++i)
    spans.push_back(span_of(d.results[i], d.dst_dtypes[i], true));
  return spans;
}

inline bool depends(const Dispatch& earlier, const Dispatch& later) {
  for (const Span& a : spans_of(earlier))
    for (const Span& b : spans_of(later))
      if ((a.write || b.write) && a.meets(b)) return true;
  return false;
}

// Whether nothing behind it may start before it has ended.
inline bool fails_by_data(const Dispatch& d) { return d.engine == kGather || is_load(d); }

// Checks each start, and each line that is read, against the commands that run.
inline void watch_order(Device& device) {
  device.on_start = [&device](size_t number, const std::vector<size_t>& running) {
    for (const size_t other : running) {
      if (other == number) continue;
      const Dispatch &earlier = device.dispatched[other], &later = device.dispatched[number];
      check(!is_load(later), "a LOAD started beside command %zu", other);
      check(!depends(earlier, later), "command %zu started beside %zu, which uses its memory",
            number, other);
      check(!fails_by_data(earlier),
            "command %zu started behind an unfinished GATHER, SCATTER or LOAD", number);
    }
  };
}
