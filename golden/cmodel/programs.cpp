// SPDX-License-Identifier: Apache-2.0
#include "programs.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "vector_kernels.h"

namespace npu {

namespace {

/// Takes little-endian integers from the front.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class Word>
  Word take() {
    if (bytes_.size() < sizeof(Word)) throw std::invalid_argument("programs: tables end early");
    Word word;
    std::memcpy(&word, bytes_.data(), sizeof word);
    bytes_ = bytes_.subspan(sizeof word);
    return word;
  }
  [[nodiscard]] bool done() const { return bytes_.empty(); }
  [[nodiscard]] std::size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("programs: ") + what);
}

isa::Instruction take_instruction(Reader& reader, std::size_t constants) {
  const auto op = reader.take<std::uint8_t>();
  const auto dst = reader.take<std::uint8_t>();
  const std::array operands{reader.take<std::uint8_t>(), reader.take<std::uint8_t>(),
                            reader.take<std::uint8_t>()};
  require(op < kMicroOps, "no such instruction");
  require(dst <= isa::kDstOut, "no such destination");
  for (const std::uint8_t code : operands) {
    require(code < isa::kOperandImm + isa::kImmediates ||
                (code >= isa::kOperandConst && code - isa::kOperandConst < constants),
            "no such operand");
  }
  return {static_cast<isa::MicroOp>(op), dst, operands[0], operands[1], operands[2]};
}

Program take_program(Reader& reader, std::span<const isa::Instruction>& rest,
                     std::span<const std::uint32_t> constants) {
  const auto length = reader.take<std::uint16_t>();
  const auto sources = reader.take<std::uint8_t>();
  const auto reduce = reader.take<std::uint8_t>();
  require(length > 0 && length <= rest.size(), "a program's code is missing");
  require(sources <= isa::kMaxSources, "a program has too many sources");
  require(reduce < isa::kIdentity.size(), "no such reduction");
  require(reduce == 0 || sources > 0, "a reduction has the shape of its first source");
  const Program program{rest.first(length), constants, sources, static_cast<isa::Reduce>(reduce)};
  require(program.code.back().dst == isa::kDstOut, "a program's last line gives no result");
  rest = rest.subspan(length);
  return program;
}

}  // namespace

bool Program::numbers_elements() const {
  return std::ranges::any_of(code, [](const isa::Instruction& line) {
    return line.a == isa::kOperandIndex || line.b == isa::kOperandIndex ||
           line.c == isa::kOperandIndex;
  });
}

Programs::Programs(std::span<const std::byte> tables) {
  Reader reader(tables);
  const auto lines = reader.take<std::uint32_t>();
  const auto constants = reader.take<std::uint32_t>();
  const auto programs = reader.take<std::uint32_t>();
  require(reader.left() >= lines && reader.left() >= constants && reader.left() >= programs,
          "tables end early");
  for (std::uint32_t i = 0; i < lines; ++i) code_.push_back(take_instruction(reader, constants));
  for (std::uint32_t i = 0; i < constants; ++i) constants_.push_back(reader.take<std::uint32_t>());
  std::span<const isa::Instruction> rest = code_;
  for (std::uint32_t i = 0; i < programs; ++i) {
    programs_.push_back(take_program(reader, rest, constants_));
  }
  require(rest.empty() && reader.done(), "tables are longer than their programs");
}

}  // namespace npu
