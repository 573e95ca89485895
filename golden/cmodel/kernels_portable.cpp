// SPDX-License-Identifier: Apache-2.0
// Compiled for the baseline of the host's architecture. Without an FMA instruction the compiler
// calls the C library's fmaf, which is slow and right.
#include "kernel_template.h"
#include "vector_template.h"

namespace npu {

namespace {

struct Lanes {
  static constexpr int kLanes = 4;
  struct Vector {
    std::uint32_t word[kLanes];
  };
  static constexpr int kAccumulators = 4;
  static Vector load(const std::uint32_t* p) {
    Vector v;
    for (int i = 0; i < kLanes; ++i) v.word[i] = p[i];
    return v;
  }
  static void store(std::uint32_t* p, const Vector& v) {
    for (int i = 0; i < kLanes; ++i) p[i] = v.word[i];
  }
  static Vector broadcast(const std::uint32_t* p) { return {{*p, *p, *p, *p}}; }
};

struct Fma : Lanes {
  static Vector step(const Vector& a, const Vector& b, Vector acc) {
    for (int i = 0; i < kLanes; ++i) {
      acc.word[i] = scalar::fma32(a.word[i], b.word[i], acc.word[i]);
    }
    return acc;
  }
};

struct Mac8 : Lanes {
  static std::int8_t low(std::uint32_t pair) { return static_cast<std::int8_t>(pair); }
  static std::int8_t high(std::uint32_t pair) { return static_cast<std::int8_t>(pair >> 16); }
  static Vector step(const Vector& a, const Vector& b, Vector acc) {
    for (int i = 0; i < kLanes; ++i) {
      acc.word[i] = scalar::mac8(low(a.word[i]), low(b.word[i]), acc.word[i]);
      acc.word[i] = scalar::mac8(high(a.word[i]), high(b.word[i]), acc.word[i]);
    }
    return acc;
  }
};

}  // namespace

const Kernels kPortableKernels{"portable",
                               Lanes::kLanes,
                               1,
                               Lanes::kAccumulators,
                               {run_tile<Fma, 1>, nullptr, nullptr, nullptr},
                               {run_tile<Mac8, 1>, nullptr, nullptr, nullptr},
                               widen_fp16_row,
                               widen_bf16_row,
                               kVectorKernels};

}  // namespace npu
