// SPDX-License-Identifier: Apache-2.0
#include "matmul.h"

#include <algorithm>
#include <optional>

#include "buffer.h"
#include "pack.h"
#include "panel.h"
#include "parallel.h"

namespace npu {

namespace {

using isa::DType;

/// The least for each thread: starting one costs more than less of it.
constexpr double kMacsPerThread = 1 << 20;
/// Rows that one unit of packing work covers.
constexpr std::size_t kPackRows = 32;
/// Units of work per thread that even out their finish.
constexpr std::size_t kUnitsPerThread = 4;

/// Bᵀ·Aᵀ = Cᵀ: the same chains, since fma(a, b, c) is fma(b, a, c).
MatmulJob transposed(const MatmulJob& job) {
  const auto flip = [](MatrixRef ref) {
    std::swap(ref.row_stride, ref.column_stride);
    std::swap(ref.offsets.row, ref.offsets.column);
    return ref;
  };
  MatmulJob result = job;
  std::swap(result.m, result.n);
  result.a = flip(job.b);
  result.b = flip(job.a);
  result.c = flip(job.c);
  result.start = flip(job.start);
  return result;
}

/// Rows of A are read along k as they lie in memory, panels of B along j after packing: put the
/// larger matrix where its layout needs no transposition.
bool prefers_transposed(const MatmulJob& job) {
  return !job.b.offsets && job.b.row_stride == 1 && job.b.column_stride != 1 && job.m < job.n;
}

/// A packed as rows of words along k into `storage`.
WordRows packed_rows(const Kernels& kernels, const MatrixBlock& a, unsigned threads,
                     std::optional<WordBuffer>& storage) {
  const std::size_t steps = steps_of(a.plane.dtype, a.columns);
  const auto stride = static_cast<std::ptrdiff_t>(steps);
  storage.emplace(a.rows * steps);
  parallel_for((a.rows + kPackRows - 1) / kPackRows, threads, [&](std::size_t i) {
    const std::size_t first = i * kPackRows;
    const MatrixBlock part{a.plane.from(first, 0), std::min(kPackRows, a.rows - first), a.columns};
    pack_steps(kernels, part, storage->data() + first * steps, stride);
  });
  return {storage->data(), stride};
}

/// Rows of C per unit of work: all of them, unless that leaves threads without work.
std::size_t rows_per_unit(std::size_t m, std::size_t panels, unsigned threads) {
  const std::size_t units = std::max<std::size_t>(1, threads * kUnitsPerThread / panels);
  if (threads == 1 || units == 1) return m;
  return std::max(kPackRows, (m + units - 1) / units);
}

void multiply_batch(const Kernels& kernels, const MatmulJob& job, std::size_t batch,
                    unsigned threads) {
  const std::size_t width = panel_columns(kernels);
  const std::size_t panels = (job.n + width - 1) / width;
  const Plane a = plane_of(job.a, batch);
  std::optional<WordBuffer> storage;
  std::optional<WordRows> words = words_in_place(a);
  // With one panel every row is needed once, by the thread whose cache holds it.
  if (!words && panels > 1) words = packed_rows(kernels, {a, job.m, job.k}, threads, storage);
  const Product product{.kernels = kernels,
                        .m = job.m,
                        .k = job.k,
                        .n = job.n,
                        .a = a,
                        .b = plane_of(job.b, batch),
                        .c = plane_of(job.c, batch),
                        .start = plane_of(job.start, batch),
                        .a_words = words,
                        .accumulate = job.accumulate};
  const std::size_t height = rows_per_unit(job.m, panels, threads);
  const std::size_t row_units = (job.m + height - 1) / height;
  parallel_for(panels * row_units, threads, [&](std::size_t unit) {
    const std::size_t column = unit / row_units * width;
    const std::size_t row = unit % row_units * height;
    multiply_panel(product, {row, std::min(height, job.m - row)},
                   {column, std::min(width, job.n - column)});
  });
}

}  // namespace

void matmul(const MatmulJob& given, unsigned threads, const Kernels& kernels) {
  const MatmulJob job = prefers_transposed(given) ? transposed(given) : given;
  const double macs = static_cast<double>(job.batch) * static_cast<double>(job.m) *
                      static_cast<double>(job.k) * static_cast<double>(job.n);
  const unsigned helpers = useful_threads(threads, macs, kMacsPerThread);
  const bool spread_batches = job.batch >= helpers * kUnitsPerThread;
  parallel_for(job.batch, spread_batches ? helpers : 1, [&](std::size_t batch) {
    multiply_batch(kernels, job, batch, spread_batches ? 1 : helpers);
  });
}

}  // namespace npu
