// SPDX-License-Identifier: Apache-2.0
// MATMUL commands: random windows and types, and what they must do to the memory: one chain of
// multiply-adds per element, in the order of docs/numerics.md.
#pragma once

#include "bench.hpp"
#include "elements.h"
#include "npu_isa.h"

using npu::isa::DType;

constexpr unsigned kInt4Rows = npu::isa::kInt4Rows;
constexpr unsigned kDigits = npu::isa::kWindowGroup;
using Digits = std::array<uint64_t, kDigits>;  // outermost first

inline uint64_t product_of(const Digits& digits) { return digits[0] * digits[1] * digits[2]; }

// Rows or columns of an operand.
struct Axis {
  Digits size{1, 1, 1}, stride{};

  uint64_t count() const { return product_of(size); }
  uint64_t offset(uint64_t place) const {
    uint64_t sum = 0;
    for (unsigned d = kDigits; d-- > 0; place /= size[d]) sum += place % size[d] * stride[d];
    return sum;
  }
  uint64_t extent() const { return offset(count() - 1); }
};

struct Window {
  uint64_t base = 0;
  DType dtype{};
  uint64_t batch = 0;  // stride
  Axis row, col;

  uint64_t bytes() const { return npu::dtype_bytes(dtype); }
  uint64_t at(uint64_t b, uint64_t r, uint64_t c) const {
    return base + (b * batch + row.offset(r) + col.offset(c)) * bytes();
  }
};

// The word that an element enters the chain as, and the way back.
inline uint32_t load(DType dtype, const uint8_t* at) {
  uint32_t word = 0;
  npu::scalar::with_dtype(dtype, [&](auto type) {
    word = npu::scalar::load_element<type>(reinterpret_cast<const std::byte*>(at));
  });
  return word;
}

inline void store(DType dtype, uint32_t word, uint8_t* at) {
  npu::scalar::with_dtype(dtype, [&](auto type) {
    npu::scalar::store_element<type>(word, reinterpret_cast<std::byte*>(at));
  });
}

struct Product {
  const char* name = "random product";
  uint64_t batch = 1, m = 1, k = 1, n = 1;
  bool accumulate = false;
  // log2 of the rows that share a scale; not 0: b has rows of words of eight weights of four bits
  unsigned int4_group = 0;
  Window a, b, init, c, scales;

  bool integer() const { return a.dtype == DType::kInt8; }
  uint64_t b_rows() const { return int4_group ? (k + kInt4Rows - 1) / kInt4Rows : k; }
  uint64_t scale_rows() const {
    return int4_group ? (k + (1u << int4_group) - 1) >> int4_group : 0;
  }
  // Calls visit(window, address) for every element that is read.
  template <typename Visit>
  void each_source(Visit visit) const {
    for (uint64_t i = 0; i < batch; ++i) {
      for (uint64_t y = 0; y < m; ++y)
        for (uint64_t z = 0; z < k; ++z) visit(a, a.at(i, y, z));
      for (uint64_t z = 0; z < b_rows(); ++z)
        for (uint64_t x = 0; x < n; ++x) visit(b, b.at(i, z, x));
      for (uint64_t z = 0; z < scale_rows(); ++z)
        for (uint64_t x = 0; x < n; ++x) visit(scales, scales.at(i, z, x));
      for (uint64_t y = 0; accumulate && y < m; ++y)
        for (uint64_t x = 0; x < n; ++x) visit(init, init.at(i, y, x));
    }
  }
  template <typename Visit>
  void each_result(Visit visit) const {
    for (uint64_t i = 0; i < batch; ++i)
      for (uint64_t y = 0; y < m; ++y)
        for (uint64_t x = 0; x < n; ++x) visit(i, y, x, c.at(i, y, x));
  }
  // A weight of four bits as the word that enters the chain: the integers -8 to 7 are exact, and so
  // is their product with a scale of 16 bits.
  uint32_t weight(uint32_t words, uint64_t z, uint32_t scale) const {
    const auto number = static_cast<float>(int(words >> 4 * (z % kInt4Rows) & 15) - 8);
    const uint32_t scaled = npu::scalar::fma32(std::bit_cast<uint32_t>(number), scale, 0x80000000);
    uint8_t element[8]{};  // room for any type
    store(scales.dtype, scaled, element);
    return load(scales.dtype, element);
  }
  void apply(Memory& memory) const {
    const auto word = [&](const Window& window, uint64_t at) {
      return load(window.dtype, &memory.want(at));
    };
    each_result([&](uint64_t i, uint64_t y, uint64_t x, uint64_t at) {
      uint32_t sum = accumulate ? word(init, init.at(i, y, x)) : 0;
      for (uint64_t z = 0; z < k; ++z) {
        const uint32_t left = word(a, a.at(i, y, z));
        const uint32_t stored = word(b, b.at(i, int4_group ? z / kInt4Rows : z, x));
        const uint32_t right =
            int4_group ? weight(stored, z, word(scales, scales.at(i, z >> int4_group, x))) : stored;
        sum = integer() ? sum + left * right : npu::scalar::fma32(left, right, sum);
      }
      store(c.dtype, sum, &memory.want(at));
    });
  }
};

// Numbers of a size that arithmetic does something with, and now and then of every class.
inline uint32_t random_number(Random& random) {
  static constexpr uint32_t kSpecial[] = {0x00000000, 0x00000001, 0x00800000,
                                          0x7F7FFFFF, 0x7F800000, 0x7FC00000};
  const auto word = static_cast<uint32_t>(random.engine());
  if (random.below(1000) < 3)
    return kSpecial[random.below(std::size(kSpecial))] | (word & 0x80000000);
  return (word & 0x807FFFFF) | static_cast<uint32_t>(random.between(118, 132)) << 23;
}

class ProductMaker {
 public:
  ProductMaker(Memory& memory, Random& random) : memory_(memory), random_(random) {}

  Product make() {
    static constexpr std::array<DType, 2> kTypes[] = {
        {DType::kFp32, DType::kFp32}, {DType::kFp16, DType::kFp16}, {DType::kFp16, DType::kFp32},
        {DType::kBf16, DType::kBf16}, {DType::kBf16, DType::kFp32}, {DType::kInt8, DType::kInt32}};
    while (true) {
      const auto& types = kTypes[random_.below(std::size(kTypes))];
      Product product;
      product.batch = random_.chance(80) ? 1 : random_.between(2, 3);
      product.accumulate = random_.chance(40);
      product.a.row.size = digits(), product.a.col.size = digits(), product.b.col.size = digits();
      product.m = product.a.row.count(), product.k = product.a.col.count();
      product.n = product.b.col.count();
      if (product.batch * product.m * product.k * product.n > 60000) continue;
      product.a.dtype = product.b.dtype = types[0];
      if (types[0] != DType::kInt8 && random_.chance(30)) {
        product.name = "product with weights of four bits";
        product.int4_group = static_cast<unsigned>(random_.between(3, random_.chance(80) ? 6 : 15));
        product.b.dtype = DType::kInt32;
        product.scales.dtype = types[0];
        product.scales.row.size = factors(product.scale_rows());
        product.scales.col.size = factors(product.n);
      }
      product.b.row.size = factors(product.b_rows());
      product.c.dtype = types[1];
      if (place(product)) {
        fill(product);
        return product;
      }
    }
  }

  // Random numbers in all that is read; what memory should be, too.
  void fill(const Product& product) {
    product.each_source([&](const Window& window, uint64_t at) {
      const uint32_t word = window.dtype == DType::kInt8 || window.dtype == DType::kInt32
                                ? static_cast<uint32_t>(random_.engine())
                                : random_number(random_);
      store(window.dtype, word, &memory_.at(at));
      std::memcpy(&memory_.want(at), &memory_.at(at), window.bytes());
    });
  }

 private:
  uint64_t digit() {
    return random_.chance(30)   ? 1
           : random_.chance(70) ? random_.between(2, 6)
                                : random_.below(36) + 1;
  }
  Digits digits() {
    return random_.chance(30) ? Digits{1, 1, random_.between(1, 70)}
                              : Digits{random_.between(1, 3), digit(), digit()};
  }
  // Three factors of a number.
  Digits factors(uint64_t number) {
    Digits result{1, 1, 1};
    for (uint64_t factor = 2; number > 1;) {
      if (number % factor != 0) {
        ++factor;
      } else {
        result[random_.below(kDigits)] *= factor;
        number /= factor;
      }
    }
    return result;
  }

  // Any strides; often a direction of adjacent elements, and often one that repeats.
  void source_strides(Window& window) {
    for (Axis* axis : {&window.row, &window.col}) {
      for (auto& stride : axis->stride) stride = random_.below(random_.chance(50) ? 8 : 200);
      if (random_.chance(50)) axis->stride[kDigits - 1] = 1;
      // Rows of an image with a little between them
      if (random_.chance(30)) {
        axis->stride[kDigits - 1] = 1;
        axis->stride[kDigits - 2] = axis->size[kDigits - 1] + random_.below(5);
      }
      if (random_.chance(15)) axis->stride[random_.below(kDigits)] = 0;
    }
    window.batch = random_.below(50);
  }

  // Every element has a place of its own: the dimensions nest in a random order.
  void target_strides(const Product& product, Window& window) {
    std::array<unsigned, 7> order{6, 5, 4, 3, 2, 1, 0};
    if (random_.chance(60)) std::shuffle(order.begin(), order.end(), random_.engine);
    uint64_t next = random_.chance(80) ? 1 : random_.between(2, 3);
    for (const unsigned d : order) {
      const bool row = d >= 1 && d < 4;
      Axis& axis = row ? window.row : window.col;
      const unsigned digit = row ? d - 1 : d - 4;
      (d == 0 ? window.batch : axis.stride[digit]) = next;
      next *= d == 0 ? product.batch : axis.size[digit];
      if (random_.chance(30)) next += random_.below(9);
    }
  }

  bool put(const Product& product, Window& window, uint64_t first, uint64_t end) {
    const uint64_t bytes =
        ((product.batch - 1) * window.batch + window.row.extent() + window.col.extent() + 1) *
        window.bytes();
    if (bytes > end - first) return false;
    window.base =
        first + random_.below((end - first - bytes) / window.bytes() + 1) * window.bytes();
    return true;
  }

  bool place(Product& product) {
    source_strides(product.a), source_strides(product.b);
    if (product.int4_group) source_strides(product.scales);
    product.c.row.size = factors(product.m), product.c.col.size = factors(product.n);
    target_strides(product, product.c);
    if (!put(product, product.c, kEngineBase, kEngineEnd)) return false;
    product.init = product.c;
    if (random_.chance(50)) {
      product.init.row.size = factors(product.m), product.init.col.size = factors(product.n);
      source_strides(product.init);
      if (random_.chance(50)) product.init.col.stride = {};
      if (!put(product, product.init, kConstBase, kConstEnd)) return false;
    }
    // No operand's numbers are written over by another type's.
    const uint64_t third = (kConstEnd - kConstBase) / 4;
    if (product.int4_group && !put(product, product.scales, kConstBase + 3 * third, kConstEnd))
      return false;
    return put(product, product.a, kConstBase, kConstBase + third) &&
           put(product, product.b, kConstBase + third, kConstBase + 2 * third);
  }

  Memory& memory_;
  Random& random_;
};

class MatrixEngine : public EngineModel<Product> {
 public:
  static constexpr unsigned kReaders = 1, kWriters = 1;

  void drive_command(Vbench& top) const override {
    top.cmd_opcode = uint32_t(npu::isa::Opcode::kMatmul);
    top.cmd_accumulate = command_.accumulate;
    top.cmd_int4_group = static_cast<uint8_t>(command_.int4_group);
    top.cmd_dtype[0] = static_cast<uint8_t>(command_.a.dtype);
    top.cmd_dtype[kDestination] = static_cast<uint8_t>(command_.c.dtype);
    const std::array<uint64_t, 4> sizes{command_.m, command_.k, command_.n, command_.batch};
    for (unsigned i = 0; i < sizes.size(); ++i) top.cmd_product[i] = uint32_t(sizes[i]);
    const Window* windows[] = {&command_.a, &command_.b, &command_.init, &command_.c,
                               &command_.scales};
    for (unsigned i = 0; i < std::size(windows); ++i) drive_window(top, i, *windows[i]);
  }

 private:
  // npu_window_t in words, lowest first.
  static void drive_window(Vbench& top, unsigned place, const Window& window) {
    unsigned word = 0;
    const auto put = [&](uint64_t value, unsigned words) {
      for (; words != 0; --words, value >>= 32) top.cmd_window[place][word++] = uint32_t(value);
    };
    put(window.base, 2);
    put(window.batch, 1);
    for (const Axis* axis : {&window.col, &window.row}) {
      put(axis->size[2], 1);
      put(axis->size[1], 1);
      // A stride, less the way back over the faster digits.
      uint64_t back = 0;
      for (unsigned d = kDigits; d-- > 0; back += (axis->size[d] - 1) * axis->stride[d])
        put(axis->stride[d] - back, 2);
    }
  }
};
