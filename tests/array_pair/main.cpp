// SPDX-License-Identifier: Apache-2.0
// Drives array_pair as loader and sequencer do: tiles are written into one half of the slots while
// tokens read the other. Arguments: seed, rounds, file for the result.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>

#include "Vbench.h"
#include "verilated.h"

namespace {

constexpr unsigned kSize = ARRAY_SIZE;
constexpr unsigned kFmaLatency = 4;
constexpr unsigned kDelay = kSize * kFmaLatency + 1;
constexpr unsigned kSlots = 16;
constexpr unsigned kHalf = kSlots / 2;
constexpr unsigned kInt4Rows = 8;
constexpr unsigned kWords = 8;

enum class Type { kFp32, kFp16, kBf16, kInt8 };
constexpr Type kTypes[] = {Type::kFp32, Type::kFp16, Type::kBf16, Type::kInt8};
constexpr const char* kNames[] = {"fp32", "fp16", "bf16", "int8"};

class Pair {
 public:
  explicit Pair(unsigned seed) : random_(seed) {
    top_.rst_ni = 0;
    top_.valid_i = 0;
    top_.wr_valid_i = 0;
    top_.int4_valid_i = 0;
    for (unsigned i = 0; i < kDelay + 4; ++i) clock();
    top_.rst_ni = 1;
  }

  // One round: fill half of the slots, then stream tokens from it while the other half is filled.
  void round(Type type) {
    type_ = type;
    top_.int8_i = type == Type::kInt8;
    for (unsigned slot = 0; slot < kHalf; ++slot) {
      write_tile(false, slot);
      write_tile(true, slot);
    }
    for (unsigned half = 0; half < 2; ++half) stream(half * kHalf);
    drain();
  }

  std::uint64_t compared = 0;
  std::uint64_t finite = 0;
  std::string failure;

 private:
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

  // A word as the loader widens it. Most numbers are near one, so that sums stay finite.
  std::uint32_t word() {
    const bool any = below(64) == 0;
    const auto bits = static_cast<std::uint32_t>(random_());
    switch (type_) {
      case Type::kInt8:
        return static_cast<std::uint32_t>(
            static_cast<std::int32_t>(static_cast<std::int8_t>(bits)));
      case Type::kFp16: {
        const auto half = static_cast<std::uint16_t>(any ? bits : (bits & 0x83FF) | 0x3800);
        _Float16 value;
        std::memcpy(&value, &half, sizeof half);
        return as_bits(static_cast<float>(value));
      }
      case Type::kBf16:
        return (any ? bits : (bits & 0x80FF'0000U) | 0x3F00'0000U) & 0xFFFF'0000U;
      default:
        return any ? bits : (bits & 0x80FF'FFFFU) | 0x3F00'0000U;
    }
  }

  static std::uint32_t as_bits(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  }

  void put_line(bool b, unsigned slot, bool along_k, unsigned line) {
    top_.wr_valid_i = 1;
    top_.wr_b_i = b;
    top_.wr_slot_i = slot;
    top_.wr_along_k_i = along_k;
    top_.wr_line_i = line;
    top_.wr_mask_i = ~std::uint32_t{0} >> (32 - kSize);
    for (unsigned i = 0; i < kSize; ++i) top_.wr_data_i[i] = word();
  }

  // A line of weights of four bits: words of kInt4Rows rows.
  void put_int4(unsigned slot, unsigned mask) {
    top_.int4_valid_i = 1;
    top_.int4_slot_i = slot;
    top_.int4_line_i = below(kSize / kInt4Rows);
    top_.int4_mask_i = mask & (~std::uint32_t{0} >> (32 - kSize));
    for (unsigned i = 0; i < kInt4Rows * kWords; ++i) top_.int4_data_i[i] = word();
  }

  void write_tile(bool b, unsigned slot) {
    const bool along_k = below(2) != 0;
    for (unsigned line = 0; line < kSize; ++line) {
      put_line(b, slot, along_k, line);
      clock();
    }
    // Part of a line once more: the rest keeps its words.
    put_line(b, slot, along_k, below(kSize));
    top_.wr_mask_i = static_cast<std::uint32_t>(random_()) & (~std::uint32_t{0} >> (32 - kSize));
    clock();
    top_.wr_valid_i = 0;
    if (b && type_ != Type::kInt8) {
      put_int4(slot, static_cast<std::uint32_t>(random_()));
      clock();
      top_.int4_valid_i = 0;
    }
  }

  void stream(unsigned first) {
    for (unsigned tile = 0; tile < kHalf; ++tile) {
      const unsigned rows = 1 + below(kSize);
      const unsigned ks = below(4) == 0 ? 1 + below(kSize) : kSize;
      const unsigned cols = below(4) == 0 ? 1 + below(kSize) : kSize;
      for (unsigned row = 0; row < rows;) {
        const bool valid = below(8) != 0;
        top_.valid_i = valid;
        top_.weights_i = valid && row == 0;
        top_.a_free_i = valid && row + 1 == rows;
        top_.a_slot_i = first + tile;
        top_.a_lane_i = row;
        top_.b_slot_i = first + (tile * 3) % kHalf;
        top_.ks_i = ks;
        top_.cols_i = cols;
        top_.entry_i = static_cast<std::uint16_t>(random_());
        const unsigned slot = kHalf - first + below(kHalf);
        top_.wr_valid_i = 0;
        if (below(2) != 0) put_line(below(2) != 0, slot, below(2) != 0, below(kSize));
        top_.int4_valid_i = 0;
        if (below(4) == 0) put_int4(slot, static_cast<std::uint32_t>(random_()));
        clock();
        if (valid) cols_.push_back(cols);
        if (valid) ++row;
      }
    }
    top_.valid_i = 0;
    top_.weights_i = 0;
    top_.wr_valid_i = 0;
    top_.int4_valid_i = 0;
    drain();
  }

  void drain() {
    for (unsigned i = 0; i < kDelay + 2; ++i) clock();
    if (!cols_.empty()) fail("token without sums", 0, 0, 0);
  }

  void clock() {
    for (unsigned i = 0; i < kSize; ++i) {
      top_.psum_i[i] = type_ == Type::kInt8 ? static_cast<std::uint32_t>(random_()) : word();
    }
    top_.clk_i = 0;
    top_.eval();
    if (top_.rst_ni) compare();
    top_.clk_i = 1;
    top_.eval();
    ++cycle_;
  }

  void compare() {
    if (!top_.same_control_o) fail("control", 0, 0, 0);
    if (!top_.valid_o) return;
    if (cols_.empty()) return fail("sums without a token", 0, 0, 0);
    const unsigned cols = cols_.front();
    cols_.pop_front();
    for (unsigned column = 0; column < cols; ++column) {
      const std::uint32_t rtl = top_.rtl_sum_o[column];
      const std::uint32_t model = top_.model_sum_o[column];
      ++compared;
      finite += (rtl & 0x7F80'0000U) != 0x7F80'0000U;
      if (rtl != model) fail("sum", column, rtl, model);
    }
  }

  void fail(const char* what, unsigned column, std::uint32_t rtl, std::uint32_t model) {
    if (!failure.empty()) return;
    char text[160];
    std::snprintf(text, sizeof text, "%s, cycle %llu, %s column %u: RTL %08x, behavioural %08x",
                  kNames[static_cast<int>(type_)], static_cast<unsigned long long>(cycle_), what,
                  column, rtl, model);
    failure = text;
  }

  VerilatedContext context_;
  Vbench top_{&context_, "pair"};
  std::mt19937_64 random_;
  Type type_ = Type::kFp32;
  std::deque<unsigned> cols_;  // of the tokens that are in the array
  std::uint64_t cycle_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const auto pair = std::make_unique<Pair>(static_cast<unsigned>(std::atoi(argv[1])));
  std::string figures;
  for (const Type type : kTypes) {
    const std::uint64_t before = pair->finite;
    for (int i = 0; i < std::atoi(argv[2]); ++i) pair->round(type);
    figures += (figures.empty() ? "\"" : ", \"") + std::string(kNames[static_cast<int>(type)]) +
               "\": " + std::to_string(pair->finite - before);
  }
  std::FILE* const file = std::fopen(argv[3], "w");
  if (file == nullptr) return 3;
  std::fprintf(file, "{\"compared\": %llu, \"failure\": \"%s\", \"figures\": {%s}}\n",
               static_cast<unsigned long long>(pair->compared), pair->failure.c_str(),
               figures.c_str());
  std::fclose(file);
  return 0;
}
