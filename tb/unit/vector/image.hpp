// SPDX-License-Identifier: Apache-2.0
// Program images: random sound ones, sound ones with one thing wrong, and which of them a
// device has loaded.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>

#include "bench.hpp"
#include "fault.h"
#include "image.h"
#include "program_table.hpp"

using npu::isa::MicroOp;
using npu::isa::Reduce;
using Words = std::vector<uint64_t>;

constexpr unsigned kLineBytes = unsigned(npu::kLineBytes);

// What the program memory holds, by docs/isa.md: the boot programs and those that were loaded.
class Directory {
 public:
  const npu::VectorProgram* find(uint32_t line) const {
    const auto found = loaded_.find(line);
    return found == loaded_.end() ? programs().find(line) : &found->second.program;
  }
  // Drops every program that has one of these lines.
  void forget(uint32_t line, uint32_t lines) {
    std::erase_if(loaded_, [&](const auto& entry) {
      return entry.first < line + lines && entry.first + entry.second.lines > line;
    });
  }
  void load(uint32_t line, uint32_t lines, npu::VectorProgram program) {
    forget(line, lines);
    loaded_[line] = {lines, std::move(program)};
  }
  std::vector<uint32_t> loaded() const {
    std::vector<uint32_t> lines;
    for (const auto& entry : loaded_) lines.push_back(entry.first);
    return lines;
  }

 private:
  struct Entry {
    uint32_t lines;
    npu::VectorProgram program;
  };
  std::map<uint32_t, Entry> loaded_;
};

inline unsigned operands_of(MicroOp op) {
  using enum MicroOp;
  static constexpr MicroOp kOne[] = {kMov,      kSqrt,      kI2f,       kF2i,
                                     kF2iTrunc, kRoundFp16, kRoundBf16, kSegment};
  if (std::ranges::count(kOne, op) != 0) return 1;
  return op == kFma || op == kSel ? 3 : 2;
}

// Next to a border of a segment of some table, without a sign.
inline uint32_t random_border(Random& random) {
  const auto table = unsigned(random.below(npu::isa::kTables));
  const uint64_t segment = random.below(npu::isa::kTableLast[table] + 2);
  return uint32_t(npu::isa::kTableFirst[table] + (segment << npu::isa::kTableShift[table]) +
                  random.below(3) - 1);
}

// Numbers of every class, and of a size that arithmetic does something with.
inline uint32_t random_float(Random& random) {
  static constexpr uint32_t kSpecial[] = {0x00000000, 0x00000001, 0x007FFFFF, 0x00800000,
                                          0x3F800000, 0x4F000000, 0x7F7FFFFF, 0x7F800000,
                                          0x7F800001, 0x7FC00000};
  const auto word = static_cast<uint32_t>(random.engine());
  if (random.chance(10)) return kSpecial[random.below(std::size(kSpecial))] | (word & 0x80000000);
  if (random.chance(10)) return word;
  if (random.chance(10)) return random_border(random) | (word & 0x80000000);
  if (random.chance(20)) return std::bit_cast<uint32_t>(float(int(word % 65) - 32) / 2);
  return (word & 0x807FFFFF) | static_cast<uint32_t>(random.between(110, 140)) << 23;
}

// Bytes of an instruction's word.
enum InstructionByte : unsigned { kOpByte, kDstByte, kAByte, kBByte, kCByte };

// The header of an image.
inline uint64_t header_word(uint64_t instructions, uint64_t constants, uint64_t sources,
                            uint64_t results, uint64_t reduce = 0) {
  return uint64_t(npu::isa::kProgramMagic) << 48 | reduce << 32 | results << 24 | sources << 16 |
         constants << 8 | instructions;
}
inline uint64_t instruction_word(MicroOp op, uint64_t dst, uint64_t a, uint64_t b = 0,
                                 uint64_t c = 0) {
  return c << 8 * kCByte | b << 8 * kBByte | a << 8 * kAByte | dst << 8 * kDstByte | uint64_t(op);
}

class ImageMaker {
 public:
  explicit ImageMaker(Random& random) : random_(random) {}

  // A sound image of whole lines.
  Words sound() {
    instructions_ = unsigned(random_.chance(85) ? random_.between(1, 12)
                                                : random_.between(1, npu::isa::kMaxInstructions));
    constants_ = unsigned(random_.chance(30) ? 0 : random_.below(npu::isa::kMaxConstants + 1));
    const unsigned sources = unsigned(random_.below(npu::isa::kMaxSources + 1));
    const unsigned results =
        unsigned(random_.between(1, std::min(npu::isa::kMaxResults, instructions_)));
    const bool reduces = results == 1 && sources != 0 && random_.chance(30);
    start(sources, results, reduces ? unsigned(random_.between(1, kReductions - 1)) : 0);
    segments_ = unsigned(random_.chance(40) ? 0 : random_.between(5, 40));
    for (unsigned i = 0; i < instructions_; ++i) words_.push_back(instruction(i));
    for (unsigned c = 0; c < constants_; ++c) {
      if (c % 2 == 0) words_.push_back(0);
      words_.back() |= uint64_t(random_float(random_)) << 32 * (c % 2);
    }
    words_.resize((words_.size() + kLineWords - 1) / kLineWords * kLineWords);
    return words_;
  }

  // What may be wrong with an image.
  enum Defect : unsigned {
    kHeaderByte,  // the first six, one by one
    kMagic = kHeaderByte + 6,
    kOp,
    kDst,
    kA,
    kB,
    kC,
    kUpperBytes,
    kPadding,
    kLines,           // one too many, or too few
    kBehindConstant,  // the half behind an odd constant
    kLastResult,      // that of the last instruction
    kNoTable,
    kNoColumn,  // one that the table does not have, or of no table
    kTwoColumns,
    kAnyBit,
    kDefects
  };

  // One thing wrong with the last sound image; now and then it is sound all the same.
  Words malformed(unsigned defect) {
    Words words = words_;
    const unsigned at = 1 + unsigned(random_.below(instructions_));
    const auto byte = [&](unsigned word, unsigned number, uint64_t value) {
      words[word] = (words[word] & ~(0xFFull << 8 * number)) | value << 8 * number;
    };
    switch (defect) {
      case kMagic:
        words[0] ^= 1ull << random_.between(48, 63);
        break;
      case kOp:
        byte(at, kOpByte, random_.between(kOps, 255));
        break;
      case kDst:
        byte(at, kDstByte,
             random_.chance(50) ? random_.between(npu::isa::kDstResult, npu::isa::kDstResult + 4)
                                : random_.below(256));
        break;
      case kA:
      case kB:
      case kC:
        byte(at, kAByte + (defect - kA),
             random_.chance(50) ? random_.below(32) : random_.below(256));
        break;
      case kUpperBytes:
        words[at] |= 1ull << random_.between(40, 63);
        break;
      case kPadding:
        words.back() |= 1ull << random_.below(64);
        break;
      case kLines:
        words.resize(words.size() > kLineWords && random_.chance(50) ? words.size() - kLineWords
                                                                     : words.size() + kLineWords);
        break;
      case kBehindConstant:
        if (constants_ % 2 != 0) words[instructions_ + (constants_ + 1) / 2] |= 1ull << 32;
        break;
      case kLastResult:
        byte(at, kDstByte, words[instructions_] >> 8 * kDstByte & 0xFF);
        break;
      case kNoTable:
        byte(at, kOpByte, uint64_t(MicroOp::kSegment));
        byte(at, kBByte, random_.chance(50) ? npu::isa::kTables : random_.below(256));
        byte(at, kCByte, 0);
        break;
      case kNoColumn:
        byte(at, kAByte, kTable + (table_of_[at - 1] < 0 ? random_.below(8) : columns_at(at - 1)));
        break;
      case kTwoColumns:
        byte(at, kAByte, kTable);
        byte(at, kBByte, kTable);
        break;
      case kAnyBit:
        words[random_.below(words.size())] ^= 1ull << random_.below(64);
        break;
      default:
        byte(0, defect - kHeaderByte, random_.chance(50) ? random_.below(8) : random_.below(256));
        break;
    }
    return words;
  }

 private:
  void start(unsigned sources, unsigned results, unsigned reduce) {
    words_ = {header_word(instructions_, constants_, sources, results, reduce)};
    readable_.clear();
    table_of_.assign(1, -1);
    for (unsigned s = 0; s < sources; ++s) readable_.push_back(npu::isa::kOperandSrc + s);
    readable_.push_back(npu::isa::kOperandIndex);
    for (unsigned i = 0; i < npu::isa::kImmediates; ++i)
      readable_.push_back(npu::isa::kOperandImm + i);
    for (unsigned c = 0; c < std::min(constants_, 12u); ++c)
      readable_.push_back(npu::isa::kOperandConst + unsigned(random_.below(constants_)));
    // Which instruction gives which result; the last one gives one.
    result_of_.assign(instructions_, 0);
    std::vector<unsigned> order(results);
    std::iota(order.begin(), order.end(), npu::isa::kDstResult);
    std::shuffle(order.begin(), order.end(), random_.engine);
    result_of_.back() = order.back();
    order.pop_back();
    while (!order.empty()) {
      unsigned& place = result_of_[random_.below(instructions_)];
      if (place != 0) continue;
      place = order.back();
      order.pop_back();
    }
  }

  uint64_t instruction(unsigned number) {
    const bool segments = random_.chance(segments_);
    const auto op = segments ? MicroOp::kSegment : MicroOp(random_.below(kOps));
    const int table = table_of_.back();
    uint64_t word = uint64_t(op);
    for (unsigned i = 0; i < operands_of(op); ++i)
      word |= uint64_t(readable_[random_.below(readable_.size())]) << 8 * (kAByte + i);
    // One of the operands may be a column; the last one, which fewest tables have, more often.
    if (table >= 0 && random_.chance(60)) {
      const uint64_t place = 8 * (kAByte + random_.below(operands_of(op))),
                     columns = columns_at(number);
      const uint64_t column = random_.chance(30) ? columns - 1 : random_.below(columns);
      word = (word & ~(0xFFull << place)) | (kTable + column) << place;
    }
    table_of_.push_back(table);
    if (op == MicroOp::kSegment) {
      table_of_.back() = int(random_.below(npu::isa::kTables));
      word |= uint64_t(table_of_.back()) << 8 * kBByte;
    }
    unsigned dst = result_of_[number];
    if (dst == 0) {
      dst = unsigned(random_.below(npu::isa::kRegisters));
      // What was written before is read more often.
      for (unsigned i = 0; i < 3; ++i) readable_.push_back(dst);
    }
    return word | uint64_t(dst) << 8 * kDstByte;
  }

  // Columns of the table that an instruction may read.
  uint64_t columns_at(unsigned number) const {
    return npu::isa::kTableUsed[unsigned(table_of_[number])];
  }

  static constexpr uint64_t kOps = npu::isa::kMicroOperands.size();
  static constexpr uint64_t kReductions = npu::isa::kIdentity.size();
  static constexpr size_t kLineWords = npu::isa::kLineWords;
  static constexpr uint64_t kTable = npu::isa::kOperandTable;

  Random& random_;
  unsigned instructions_ = 1, constants_ = 0, segments_ = 0;  // the last in percent
  std::vector<unsigned> readable_, result_of_;
  std::vector<int> table_of_;  // of the SEGMENT before instruction i, or −1; one more at the end
  Words words_;
};

// What LOAD makes of an image; nothing when it is malformed.
inline std::optional<npu::VectorProgram> program_in(const Words& words) {
  try {
    return npu::parse_image(std::as_bytes(std::span(words)));
  } catch (const npu::Fault& fault) {
    check(fault.code == npu::isa::ErrorCode::kBadImage, "error %u of an image",
          unsigned(fault.code));
    return std::nullopt;
  }
}
