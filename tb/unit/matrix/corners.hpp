// SPDX-License-Identifier: Apache-2.0
// Products that random ones seldom are: scales at the ends of fp16, runs that just miss a beat, the
// last beat of the memory.
#pragma once

#include <span>

#include "product.hpp"

namespace corners {

// Stages of a multiply-add that a bench_engine has.
constexpr uint64_t kFmaLatencies[] = {1, 2, 4};

inline Axis axis(uint64_t outer, uint64_t inner, uint64_t outer_stride = 0, uint64_t stride = 1) {
  return {{1, outer, inner}, {0, outer_stride, stride}};
}

inline Product fp32_product(const char* name, uint64_t m, uint64_t k) {
  Product product;
  product.name = name;
  product.m = m, product.k = k;
  product.a.dtype = product.b.dtype = product.c.dtype = DType::kFp32;
  product.b.row = axis(1, k);
  product.c.row = axis(1, m);
  product.b.base = kConstBase + 0x10000;
  product.c.base = kEngineBase;
  return product;
}

// One sum of eight ones times one weight and its scale; `scale` is an fp16, `weights` eight fours.
inline Product scaled(const char* name, Memory& memory, uint16_t scale, uint32_t weights) {
  Product product;
  product.name = name;
  product.k = kInt4Rows;
  product.int4_group = 3;
  product.a.dtype = product.scales.dtype = DType::kFp16;
  product.b.dtype = DType::kInt32, product.c.dtype = DType::kFp32;
  product.a.col = axis(1, kInt4Rows);
  product.a.base = kConstBase, product.b.base = kConstBase + 0x1000;
  product.scales.base = kConstBase + 0x2000, product.c.base = kEngineBase;
  const std::array<uint16_t, kInt4Rows> ones{0x3C00, 0x3C00, 0x3C00, 0x3C00,
                                             0x3C00, 0x3C00, 0x3C00, 0x3C00};
  const auto put = [&](uint64_t at, const void* from, size_t bytes) {
    std::memcpy(&memory.at(at), from, bytes);
    std::memcpy(&memory.want(at), from, bytes);
  };
  put(product.a.base, ones.data(), sizeof ones);
  put(product.b.base, &weights, sizeof weights);
  put(product.scales.base, &scale, sizeof scale);
  return product;
}

// Rows of three runs of `inner` words, so far apart that the third begins behind the beats of a
// request, from the last word of a beat on.
inline Product three_runs(uint64_t inner) {
  const uint64_t words = kBusBytes / 4;
  Product product = fp32_product("runs that do not fit into a request", 8, 3 * inner);
  product.a.col = axis(3, inner, inner + words - 1);
  product.a.row = axis(1, 8, 0, words);
  product.a.base = (kConstBase / 4096 + 1) * 4096 + kBusBytes - 4;
  return product;
}

// Rows that are read twice and end where the memory ends.
inline Product last_beat(uint64_t columns) {
  Product product = fp32_product("operand at the end of the memory", 4, columns);
  product.a.col = axis(1, columns);
  product.a.row = axis(2, 2, 1);
  product.a.base = kMemLimit - 4 * (columns + 2);
  return product;
}

// One row, and so many rows of int4 weights that the largest groups have a second one.
inline Product long_group(unsigned group) {
  constexpr uint64_t kColumns = 3;
  Product product;
  product.name = "a group of thousands of int4 weights";
  product.k = (1u << group) + 5 * kInt4Rows, product.n = kColumns;
  product.int4_group = group;
  product.a.dtype = product.scales.dtype = DType::kFp16;
  product.b.dtype = DType::kInt32, product.c.dtype = DType::kFp32;
  product.a.col = axis(1, product.k);
  product.b.row = axis(1, product.b_rows(), 0, kColumns);
  product.scales.row = axis(1, product.scale_rows(), 0, kColumns);
  product.b.col = product.scales.col = product.c.col = axis(1, kColumns);
  product.a.base = kConstBase, product.b.base = kConstBase + 0x20000;
  product.scales.base = kConstBase + 0x40000, product.c.base = kEngineBase;
  return product;
}

// Four passes over so many rows and columns. Weights of four bits are here before they are needed.
inline Product passes(uint64_t rows, uint64_t columns) {
  Product product;
  product.name = "passes about as long as a sum takes";
  product.m = rows, product.k = 4 * ENGINE_SIZE, product.n = columns;
  product.int4_group = 7;
  product.a.dtype = product.scales.dtype = product.c.dtype = DType::kFp16;
  product.b.dtype = DType::kInt32;
  product.a.row = axis(1, rows, 0, product.k);
  product.a.col = axis(1, product.k);
  product.b.row = axis(1, product.b_rows(), 0, columns);
  product.scales.row = axis(1, product.scale_rows(), 0, columns);
  product.c.row = axis(1, rows, 0, columns);
  product.b.col = product.scales.col = product.c.col = axis(1, columns);
  product.a.base = kConstBase, product.b.base = kConstBase + 0x20000;
  product.scales.base = kConstBase + 0x40000, product.c.base = kEngineBase;
  return product;
}

// Ones, and the scales 1, 2, … of its groups: in a sum of thousands of random numbers there is a
// NaN.
inline void fill_with_ones(const Product& product, Memory& memory) {
  const auto put = [&](const Window& window, uint64_t at, float number) {
    store(window.dtype, std::bit_cast<uint32_t>(number), &memory.at(at));
    std::memcpy(&memory.want(at), &memory.at(at), window.bytes());
  };
  for (uint64_t z = 0; z < product.k; ++z) put(product.a, product.a.at(0, 0, z), 1);
  for (uint64_t z = 0; z < product.scale_rows(); ++z)
    for (uint64_t x = 0; x < product.n; ++x)
      put(product.scales, product.scales.at(0, z, x), float(z + 1));
}

// More rows, or columns, than 16 bits count.
inline Product long_result(bool columns) {
  constexpr uint64_t kCount = (1 << 17) + 3;
  Product product;
  product.name = "a result of more than 131072 rows or columns";
  product.a.dtype = product.b.dtype = product.c.dtype = DType::kFp16;
  (columns ? product.n : product.m) = kCount;
  (columns ? product.b.col : product.a.row) = axis(1, kCount);
  (columns ? product.c.col : product.c.row) = axis(1, kCount);
  product.a.base = kConstBase, product.b.base = kConstBase + 0x60000;
  product.c.base = kEngineBase;
  return product;
}

// Runs execute(bench, product) on a bench of its own for each.
template <typename Bench, typename Execute>
void all(uint64_t seed, Execute execute) {
  struct Scaled {
    const char* name;
    uint16_t scale;
    uint32_t weights;
  };
  static constexpr Scaled kScaled[] = {
      {"a weight of -2 times a scale of 32768, infinite in fp16", 0x7800, 0x66666666},
      {"a weight of 0 times an infinite scale", 0x7C00, 0x88888888},
  };
  size_t count = 0;
  const auto counted = [&](Bench& bench, const Product& product) {
    execute(bench, product);
    ++count;
  };
  for (const auto& [name, scale, weights] : kScaled) {
    Bench bench(seed);
    counted(bench, scaled(name, bench.memory, scale, weights));
  }
  const auto run = [&](const Product& product) {
    Bench bench(seed);
    ProductMaker(bench.memory, bench.random).fill(product);
    counted(bench, product);
  };
  for (const uint64_t inner : {3, 4, 5, 6, 7}) run(three_runs(inner));
  for (const uint64_t columns : {2, 3, 5, 8}) run(last_beat(columns));
  for (const unsigned group : {12, 13, 15}) {
    Bench bench(seed);
    const Product product = long_group(group);
    ProductMaker(bench.memory, bench.random).fill(product);
    fill_with_ones(product, bench.memory);
    counted(bench, product);
  }
  for (const bool columns : {false, true}) run(long_result(columns));
  for (const uint64_t fma_latency : kFmaLatencies) {
    // Cycles before a sum may enter the array again.
    const uint64_t latency = ENGINE_SIZE * fma_latency + 2;
    for (uint64_t tokens = latency - 3; tokens <= latency + 1; ++tokens)
      for (uint64_t tiles = 1; tiles <= 6; ++tiles)
        if (tokens % tiles == 0 && tokens / tiles <= 2 * ENGINE_SIZE)
          run(passes(tokens / tiles, tiles * ENGINE_SIZE));
  }
  std::printf("corners  %zu products, differing 0\n", count);
}

}  // namespace corners
