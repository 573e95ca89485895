// SPDX-License-Identifier: Apache-2.0
// Reader for the text that Berkeley TestFloat's testfloat_gen writes: one vector per line, operands
// and result as hexadecimal words of their format's width, then two digits of exception flags,
// which this project does not have and ignores.
#pragma once

#include <stdexcept>
#include <string>

#include "bench.hpp"

namespace unit {

/// One line of bad input: where, which field, what it was, what it should have been.
struct InputError : std::runtime_error {
  InputError(std::string place, std::string field, std::string value, std::string expected)
      : std::runtime_error(place + ": " + field + ": got " + value + ", expected " + expected) {}
};

/// Check every vector of `path`. Throws InputError for a malformed line or a file without vectors;
/// nothing is compared then.
void check_file(const std::string& path, const Operation& operation, Checker& checker);

}  // namespace unit
