// SPDX-License-Identifier: Apache-2.0
#include "testfloat.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

namespace unit {
namespace {

constexpr int kFlagDigits = 2;

struct Field {
  std::string name;
  int digits;
};

struct Vector {
  Operands operands{};
  std::uint32_t expected = 0;
};

std::vector<Field> fields_of(const Operation& operation) {
  std::vector<Field> fields;
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    fields.push_back({"operand " + std::to_string(i + 1), operation.operands[i].hex_digits()});
  }
  fields.push_back({"result", operation.result.hex_digits()});
  fields.push_back({"flags", kFlagDigits});
  return fields;
}

bool is_hex(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c); });
}

std::uint32_t parse(const std::string& place, const Field& field, const std::string& text) {
  if (static_cast<int>(text.size()) != field.digits || !is_hex(text)) {
    throw InputError(place, field.name, "'" + text + "'",
                     std::to_string(field.digits) + " hexadecimal digits");
  }
  return static_cast<std::uint32_t>(std::stoul(text, nullptr, 16));
}

Vector read_line(const std::string& place, const std::vector<Field>& fields,
                 const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.size() != fields.size()) {
    throw InputError(place, "line", std::to_string(words.size()) + " words",
                     std::to_string(fields.size()) + " (operands, result, flags)");
  }
  Vector vector;
  const std::size_t operand_count = fields.size() - 2;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::uint32_t bits = parse(place, fields[i], words[i]);
    if (i < operand_count) vector.operands[i] = bits;
    if (i == operand_count) vector.expected = bits;
  }
  return vector;
}

}  // namespace

void check_file(const std::string& path, const Operation& operation, Checker& checker) {
  std::ifstream file(path);
  if (!file) throw InputError(path, "file", "none", "a readable vector file");
  const std::vector<Field> fields = fields_of(operation);
  std::vector<Vector> vectors;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    vectors.push_back(read_line(path + ":" + std::to_string(number), fields, line));
  }
  if (vectors.empty()) throw InputError(path, "file", "no vectors", "at least one line");
  for (const Vector& vector : vectors) checker.add(vector.operands, vector.expected);
}

}  // namespace unit
