// SPDX-License-Identifier: Apache-2.0
// Compiled with AVX2 and FMA; executed only where the host has them.
#include <immintrin.h>

#include "kernel_template.h"
#include "vector_template.h"

namespace npu {

namespace {

struct Fma {
  using Vector = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kAccumulators = 12;
  static Vector load(const std::uint32_t* p) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(p));
  }
  static void store(std::uint32_t* p, Vector v) {
    _mm256_storeu_ps(reinterpret_cast<float*>(p), v);
  }
  static Vector broadcast(const std::uint32_t* p) {
    return _mm256_set1_ps(std::bit_cast<float>(*p));
  }
  static Vector step(Vector a, Vector b, Vector acc) { return _mm256_fmadd_ps(a, b, acc); }
};

struct Mac8 {
  using Vector = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kAccumulators = 12;
  static Vector load(const std::uint32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static void store(std::uint32_t* p, Vector v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
  }
  static Vector broadcast(const std::uint32_t* p) {
    return _mm256_set1_epi32(static_cast<int>(*p));
  }
  static Vector step(Vector a, Vector b, Vector acc) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b));
  }
};

}  // namespace

const Kernels kAvx2Kernels{"avx2",
                           Fma::kLanes,
                           2,
                           Fma::kAccumulators,
                           {run_tile<Fma, 1>, run_tile<Fma, 2>, nullptr, nullptr},
                           {run_tile<Mac8, 1>, run_tile<Mac8, 2>, nullptr, nullptr},
                           widen_fp16_row,
                           widen_bf16_row,
                           kVectorKernels};

}  // namespace npu
