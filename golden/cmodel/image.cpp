// SPDX-License-Identifier: Apache-2.0
#include "image.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstring>
#include <string>

#include "fault.h"

namespace npu {

namespace {

using isa::ErrorCode;

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
constexpr std::size_t kCodes = 256;

void require(bool holds, const char* what) {
  fail_if(!holds, ErrorCode::kBadImage, [&] { return std::string("image: ") + what; });
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

struct Header {
  std::uint8_t instructions, constants, sources, results, reduce, zero;
  std::uint16_t magic;
};
static_assert(sizeof(Header) == kWordBytes);

Header header_of(std::span<const std::byte> image) {
  Header header{};
  if (image.size() >= sizeof header) std::memcpy(&header, image.data(), sizeof header);
  return header;
}

std::size_t lines_of(const Header& header) {
  const std::size_t words = 1U + header.instructions + (header.constants + 1U) / 2;
  return (words + isa::kLineWords - 1) / isa::kLineWords;
}

void check_header(const Header& header) {
  require(header.magic == isa::kProgramMagic, "the header's magic is another");
  require(header.zero == 0, "byte 5 of the header is not zero");
  require(header.instructions >= 1, "no instruction");
  require(header.constants <= isa::kMaxConstants, "too many constants");
  require(header.sources <= isa::kMaxSources, "too many sources");
  require(header.results >= 1 && header.results <= isa::kMaxResults, "number of results");
  require(header.reduce < isa::kIdentity.size(), "no such reduction");
  require(header.reduce == 0 || (header.results == 1 && header.sources >= 1),
          "a reduction needs one result and at least one source");
}

/// Follows the instructions of one program and knows which codes have a value.
class Reader {
 public:
  explicit Reader(const Header& header) : results_(header.results) {
    const auto define = [&](unsigned first, unsigned count) {
      for (unsigned code = first; code < first + count; ++code) defined_.set(code);
    };
    define(isa::kOperandSrc, header.sources);
    define(isa::kOperandIndex, 1);
    define(isa::kOperandImm, isa::kImmediates);
    define(isa::kOperandConst, header.constants);
  }

  isa::Instruction take(std::span<const std::byte> word) {
    std::array<std::uint8_t, kWordBytes> byte{};
    std::memcpy(byte.data(), word.data(), kWordBytes);
    const auto [op, dst, a, b, c, x, y, z] = byte;
    require((x | y | z) == 0, "upper bytes of an instruction are not zero");
    require(op < isa::kMicroOperands.size(), "no such instruction");
    const std::array operands{a, b, c};
    const bool segment = op == static_cast<std::uint8_t>(isa::MicroOp::kSegment);
    unsigned columns = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (i < isa::kMicroOperands[op]) {
        require(defined_[operands[i]], "an operand has no value");
        columns += is_column(operands[i]) ? 1 : 0;
      } else if (segment && i == 1) {
        require(operands[i] < isa::kTables, "no such table");
      } else {
        require(operands[i] == 0, "an operand that the instruction does not have is not zero");
      }
    }
    require(columns <= 1, "two operands are columns of a table");
    if (segment) define_columns(isa::kTableUsed[b]);
    write(dst);
    return {static_cast<isa::MicroOp>(op), dst, a, b, c};
  }

  void finish() const {
    require(written_.count() == results_, "a result is not written");
    require(last_is_result_, "the last instruction writes no result");
  }

 private:
  static bool is_column(unsigned code) {
    return code >= isa::kOperandTable && code < isa::kOperandTable + isa::kTableColumns;
  }

  /// The columns that instructions behind a SEGMENT can read, and no others.
  void define_columns(unsigned count) {
    for (unsigned column = 0; column < isa::kTableColumns; ++column) {
      defined_.set(isa::kOperandTable + column, column < count);
    }
  }

  void write(std::uint8_t dst) {
    last_is_result_ = dst >= isa::kDstResult;
    if (!last_is_result_) {
      require(dst < isa::kRegisters, "no such destination");
      defined_.set(dst);
      return;
    }
    const unsigned result = dst - isa::kDstResult;
    require(result < results_, "no such result");
    require(!written_[result], "a result is written twice");
    written_.set(result);
  }

  unsigned results_;
  std::bitset<kCodes> defined_;
  std::bitset<isa::kMaxResults> written_;
  bool last_is_result_ = false;
};

}  // namespace

std::size_t image_lines(std::span<const std::byte> image) { return lines_of(header_of(image)); }

VectorProgram parse_image(std::span<const std::byte> image) {
  const Header header = header_of(image);
  check_header(header);
  require(image.size() == lines_of(header) * kLineBytes, "another number of lines than it needs");

  VectorProgram program{.code = {},
                        .constants = std::vector<std::uint32_t>(header.constants),
                        .sources = header.sources,
                        .results = header.results,
                        .reduce = static_cast<isa::Reduce>(header.reduce)};
  Reader reader(header);
  std::span rest = image.subspan(kWordBytes);
  for (unsigned i = 0; i < header.instructions; ++i, rest = rest.subspan(kWordBytes)) {
    program.code.push_back(reader.take(rest.first(kWordBytes)));
  }
  reader.finish();
  const std::size_t bytes = program.constants.size() * sizeof(std::uint32_t);
  if (bytes != 0) std::memcpy(program.constants.data(), rest.data(), bytes);
  require(all_zero(rest.subspan(bytes)), "padding is not zero");
  return program;
}

}  // namespace npu
