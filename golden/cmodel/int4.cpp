// SPDX-License-Identifier: Apache-2.0
#include "int4.h"

#include "elements.h"
#include "pack.h"
#include "parallel.h"

namespace npu {

namespace {

constexpr int kZero = 8;  // the nibble that stands for 0
/// The least for each thread: starting one costs more than less of it.
constexpr double kWeightsPerThread = 1 << 15;

template <isa::DType kDType>
std::uint32_t weight(std::uint32_t nibble, std::uint32_t scale) {
  const auto number = static_cast<float>(static_cast<int>(nibble) - kZero);
  const std::uint32_t product =
      scalar::fma32(std::bit_cast<std::uint32_t>(number), scale, scalar::kFp32Sign);
  std::byte element[sizeof(std::uint32_t)]{};
  scalar::store_element<kDType>(product, element);
  return scalar::load_element<kDType>(element);
}

/// The rows of one row of words, from `first` on, to `dst`.
template <isa::DType kDType>
void expand_rows(const Int4Job& job, std::size_t batch, std::size_t first, std::uint32_t* dst) {
  const Plane words = plane_of(job.words, batch);
  const Plane scales = plane_of(job.scales, batch);
  const std::size_t rows = std::min<std::size_t>(isa::kInt4Rows, job.k - first);
  for (std::size_t c = 0; c < job.n; ++c) {
    const std::uint32_t word = scalar::load32(words.at(first / isa::kInt4Rows, c));
    const std::uint32_t scale = scalar::load_element<kDType>(scales.at(first >> job.group, c));
    for (std::size_t r = 0; r < rows; ++r) {
      dst[r * job.n + c] = weight<kDType>(word >> 4 * r & 15, scale);
    }
  }
}

}  // namespace

WordBuffer expand_int4(const Int4Job& job, unsigned threads) {
  const std::size_t lines = (job.k + isa::kInt4Rows - 1) / isa::kInt4Rows;
  const std::size_t weights = job.batch * job.k * job.n;
  WordBuffer result(weights);
  const unsigned helpers = useful_threads(threads, static_cast<double>(weights), kWeightsPerThread);
  parallel_for(job.batch * lines, helpers, [&](std::size_t unit) {
    const std::size_t batch = unit / lines;
    const std::size_t first = unit % lines * isa::kInt4Rows;
    std::uint32_t* dst = result.data() + (batch * job.k + first) * job.n;
    switch (job.scales.dtype) {
      case isa::DType::kFp16:
        return expand_rows<isa::DType::kFp16>(job, batch, first, dst);
      case isa::DType::kBf16:
        return expand_rows<isa::DType::kBf16>(job, batch, first, dst);
      default:
        return expand_rows<isa::DType::kFp32>(job, batch, first, dst);
    }
  });
  return result;
}

}  // namespace npu
