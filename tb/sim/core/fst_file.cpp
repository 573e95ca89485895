// SPDX-License-Identifier: Apache-2.0
#include "verilated.h"

#if VM_TRACE

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "fst_file.h"
#include "fstcpp/fstcpp_variable_info.cpp"
#include "fstcpp/fstcpp_writer.cpp"

namespace npu_sim {
namespace {

constexpr std::int8_t kPicoseconds = -12;  // --timescale-override of every build

[[noreturn]] void refuse(std::string_view what, std::string_view text) {
  std::fprintf(stderr, "%%Error: waves: %.*s: %.*s\n", int(what.size()), what.data(),
               int(text.size()), text.data());
  std::_Exit(3);
}

// The next word of `text`, which loses it.
std::string_view word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view found = text.substr(0, text.find(' '));
  text.remove_prefix(found.size());
  return found;
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse("no number", text);
  return value;
}

fst::string_view_pair pair(const std::string& text) {
  return fst::make_string_view_pair(text.data(), text.size());
}

}  // namespace

FstFile::FstFile() = default;
FstFile::~FstFile() { close(); }

bool FstFile::open(const std::string& name) {
  // Whether it can be written is asked first: the library does not say.
  std::FILE* file = std::fopen(name.c_str(), "wb");
  if (file == nullptr) return false;
  std::fclose(file);
  writer_ = std::make_unique<fst::Writer>(pair(name));
  writer_->setWriterPackType(fst::WriterPackType::LZ4);
  writer_->setTimecale(kPicoseconds);
  return true;
}

void FstFile::close() {
  if (!writer_) return;
  writer_->close();
  writer_.reset();
}

ssize_t FstFile::write(const char* data, ssize_t bytes) {
  std::string_view text(data, static_cast<std::size_t>(bytes));
  for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    rest_.append(text.substr(0, end));
    line(rest_);
    rest_.clear();
  }
  rest_.append(text);
  return bytes;
}

void FstFile::line(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (text.empty()) return;
  switch (text.front()) {
    case '#':
      writer_->emitTimeChange(number(text.substr(1)));
      break;
    case '0':
    case '1':
      change(text.substr(0, 1), text.substr(1));
      break;
    case 'b': {
      text.remove_prefix(1);
      const std::string_view value = word(text);
      change(value, word(text));
      break;
    }
    case '$':
      declaration(text);
      break;
    default:
      refuse("a line that is no change of a number", text);
  }
}

void FstFile::declaration(std::string_view text) {
  const std::string_view keyword = word(text);
  if (keyword == "$var") return variable(text);
  if (keyword == "$upscope") return writer_->upscope();
  if (keyword != "$scope") return;  // version, date, timescale, ends
  using Type = fst::Hierarchy::ScopeType;
  const std::string_view kind = word(text);
  const Type type = kind == "module"      ? Type::VCD_MODULE
                    : kind == "interface" ? Type::VCD_INTERFACE
                    : kind == "union"     ? Type::VCD_UNION
                                          : Type::VCD_STRUCT;
  writer_->setScope(type, pair(std::string(word(text))), pair({}));
}

void FstFile::variable(std::string_view text) {
  const std::string_view type = word(text);
  if (type == "real" || type == "event" || type == "string") refuse("a variable of type", type);
  const auto width = static_cast<std::uint32_t>(number(word(text)));
  const std::string code(word(text));
  std::string name(word(text));
  if (const std::string_view range = word(text); range != "$end") name.append(" ").append(range);
  const auto known = variables_.find(code);
  const std::uint32_t alias = known == variables_.end() ? 0 : known->second.handle;
  const auto kind = type == "parameter" ? fst::Hierarchy::VarType::VCD_PARAMETER
                                        : fst::Hierarchy::VarType::VCD_WIRE;
  const auto handle =
      writer_->createVar(kind, fst::Hierarchy::VarDirection::IMPLICIT, width, pair(name), alias);
  if (alias == 0) variables_.emplace(code, Variable{handle, width});
}

void FstFile::change(std::string_view value, std::string_view code) {
  const auto found = variables_.find(code);
  if (found == variables_.end()) refuse("no variable has the code", code);
  const auto [handle, width] = found->second;
  if (value.size() > width) refuse("a value wider than its variable", value);
  value_.assign(width - value.size(), '0').append(value);
  writer_->emitValueChange(handle, value_.c_str());
}

}  // namespace npu_sim

#endif  // VM_TRACE
