// SPDX-License-Identifier: Apache-2.0
// Compiled with AVX-512 F and BW; executed only where the host has them.
#include <immintrin.h>

#include "kernel_template.h"
#include "vector_template.h"

namespace npu {

namespace {

struct Fma {
  using Vector = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kAccumulators = 24;
  static Vector load(const std::uint32_t* p) { return _mm512_loadu_ps(p); }
  static void store(std::uint32_t* p, Vector v) { _mm512_storeu_ps(p, v); }
  static Vector broadcast(const std::uint32_t* p) {
    return _mm512_set1_ps(std::bit_cast<float>(*p));
  }
  static Vector step(Vector a, Vector b, Vector acc) { return _mm512_fmadd_ps(a, b, acc); }
};

struct Mac8 {
  using Vector = __m512i;
  static constexpr int kLanes = 16;
  static constexpr int kAccumulators = 24;
  static Vector load(const std::uint32_t* p) { return _mm512_loadu_si512(p); }
  static void store(std::uint32_t* p, Vector v) { _mm512_storeu_si512(p, v); }
  static Vector broadcast(const std::uint32_t* p) {
    return _mm512_set1_epi32(static_cast<int>(*p));
  }
  static Vector step(Vector a, Vector b, Vector acc) {
    return _mm512_add_epi32(acc, _mm512_madd_epi16(a, b));
  }
};

}  // namespace

const Kernels kAvx512Kernels{
    "avx512",
    Fma::kLanes,
    4,
    Fma::kAccumulators,
    {run_tile<Fma, 1>, run_tile<Fma, 2>, run_tile<Fma, 3>, run_tile<Fma, 4>},
    {run_tile<Mac8, 1>, run_tile<Mac8, 2>, run_tile<Mac8, 3>, run_tile<Mac8, 4>},
    widen_fp16_row,
    widen_bf16_row,
    kVectorKernels};

}  // namespace npu
