// SPDX-License-Identifier: Apache-2.0
#include "vector.h"

#include <algorithm>
#include <cstring>

#include "parallel.h"
#include "vector_block.h"
#include "walk.h"

namespace npu {

namespace {

using isa::Reduce;

/// Instructions on elements, the least for each thread: starting one costs more than less of it.
constexpr double kWorkPerThread = 1 << 18;
/// Units of work per thread that even out their finish.
constexpr std::uint64_t kUnitsPerThread = 4;

/// One command, taken apart: everything that its units of work share.
class Runner {
 public:
  Runner(const Memory& memory, const VectorJob& job, const Kernels& kernels)
      : memory_(memory),
        job_(job),
        kernels_(kernels.vector),
        reduces_(job.program.reduce != Reduce::kNone),
        operands_(all_operands(job)),
        walk_(job.shape, std::span(operands_).first(job.sources.size() + job.results.size()),
              reduces_ || job.program.numbers_elements()) {}

  /// Units of work: a row, a part of a long one, or as many short ones as a block holds.
  [[nodiscard]] std::uint64_t units() const {
    return grouped() ? (walk_.rows() + group() - 1) / group() : walk_.rows() * parts();
  }

  void run(std::uint64_t first, std::uint64_t last) const {
    VectorBlock block(job_.program, job_.imm, kernels_);
    for (std::uint64_t unit = first; unit < last; ++unit) {
      if (grouped()) {
        const std::uint64_t row = unit * group();
        run_rows(block, row, std::min(group(), walk_.rows() - row));
      } else if (reduces_) {
        reduce_row(block, unit);
      } else {
        run_part(block, unit / parts(), unit % parts() * kBlockWords);
      }
    }
  }

 private:
  using Operands = std::array<TensorView, kMaxOperands>;

  /// The sources, then the results.
  static Operands all_operands(const VectorJob& job) {
    Operands operands{};
    std::ranges::copy(job.sources, operands.begin());
    std::ranges::copy(job.results, operands.begin() + job.sources.size());
    return operands;
  }

  [[nodiscard]] std::size_t result(std::size_t number = 0) const {
    return job_.sources.size() + number;
  }
  [[nodiscard]] bool grouped() const { return walk_.row_elements() <= kBlockWords / 2; }
  [[nodiscard]] std::uint64_t group() const { return kBlockWords / walk_.row_elements(); }
  /// Blocks per row; a reduction needs the row in one unit.
  [[nodiscard]] std::uint64_t parts() const {
    return reduces_ ? 1 : (walk_.row_elements() + kBlockWords - 1) / kBlockWords;
  }
  [[nodiscard]] std::byte* at(std::size_t operand, std::uint64_t offset) const {
    return memory_.at(operands_[operand].base + offset);
  }
  [[nodiscard]] Run run_of(std::size_t operand, std::uint64_t offset, std::size_t count) const {
    return {at(operand, offset), operands_[operand].dtype, walk_.step(operand), count};
  }

  /// Whole rows, side by side in one block.
  void run_rows(VectorBlock& block, std::uint64_t row, std::uint64_t rows) const {
    const std::size_t elements = walk_.row_elements();
    Walk::Cursor cursor(walk_, row);
    const Walk::Cursor start = cursor;
    block.begin(rows * elements);
    for (std::size_t s = 0; s < job_.sources.size(); ++s) {
      if (walk_.step(s) == 0 && walk_.same_rows(s)) block.repeat(s, run_of(s, 0, 1));
    }
    for (std::uint64_t r = 0; r < rows; ++r, cursor.advance()) {
      for (std::size_t s = 0; s < job_.sources.size(); ++s) {
        if (!block.repeats(s)) block.load(s, r * elements, run_of(s, cursor.offset(s), elements));
      }
      block.number(r * elements, elements, 0);
    }
    block.execute();
    cursor = start;
    for (std::uint64_t r = 0; r < rows; ++r, cursor.advance()) {
      if (reduces_) {
        block.fold_begin();
        block.fold(r * elements, elements);
        block.fold_end(run_of(result(), cursor.offset(result()), 1));
      } else {
        store(block, r * elements, cursor, 0, elements);
      }
    }
  }

  /// The elements of one row from `first` on that a block holds, up to the execution.
  std::size_t execute_part(VectorBlock& block, const Walk::Cursor& cursor,
                           std::uint64_t first) const {
    const std::size_t count = std::min<std::uint64_t>(kBlockWords, walk_.row_elements() - first);
    block.begin(count);
    for (std::size_t s = 0; s < job_.sources.size(); ++s) {
      const std::uint64_t offset = cursor.offset(s) + first * walk_.step(s);
      if (walk_.step(s) == 0) {
        block.repeat(s, run_of(s, offset, 1));
      } else {
        block.load(s, 0, run_of(s, offset, count));
      }
    }
    block.number(0, count, first);
    block.execute();
    return count;
  }

  void run_part(VectorBlock& block, std::uint64_t row, std::uint64_t first) const {
    const Walk::Cursor cursor(walk_, row);
    const std::size_t count = execute_part(block, cursor, first);
    store(block, 0, cursor, first, count);
  }

  /// Elements `at`, … of the block as elements `first`, … of a row of each result.
  void store(const VectorBlock& block, std::size_t at, const Walk::Cursor& cursor,
             std::uint64_t first, std::size_t count) const {
    for (std::size_t number = 0; number < job_.results.size(); ++number) {
      const std::size_t operand = result(number);
      const std::uint64_t offset = cursor.offset(operand) + first * walk_.step(operand);
      block.store(number, at, run_of(operand, offset, count));
    }
  }

  void reduce_row(VectorBlock& block, std::uint64_t row) const {
    const Walk::Cursor cursor(walk_, row);
    block.fold_begin();
    for (std::uint64_t first = 0; first < walk_.row_elements(); first += kBlockWords) {
      block.fold(0, execute_part(block, cursor, first));
    }
    block.fold_end(run_of(result(), cursor.offset(result()), 1));
  }

  const Memory& memory_;
  const VectorJob& job_;
  const VectorKernels& kernels_;
  bool reduces_;
  Operands operands_;
  Walk walk_;
};

}  // namespace

void run_vector(const Memory& memory, const VectorJob& job, unsigned threads,
                const Kernels& kernels) {
  const Runner runner(memory, job, kernels);
  auto work = static_cast<double>(2 + job.program.code.size());
  for (std::size_t d = 0; d < job.shape.rank; ++d) work *= static_cast<double>(job.shape.size[d]);
  const unsigned helpers = useful_threads(threads, work, kWorkPerThread);
  const std::uint64_t units = runner.units();
  const std::uint64_t tasks =
      helpers == 1 ? 1 : std::min<std::uint64_t>(units, helpers * kUnitsPerThread);
  parallel_for(tasks, helpers, [&](std::size_t task) {
    runner.run(units * task / tasks, units * (task + 1) / tasks);
  });
}

}  // namespace npu
