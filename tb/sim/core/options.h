// SPDX-License-Identifier: Apache-2.0
// Command line of both main programs: --name=value; anything that starts with + is Verilator's.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace npu_sim {

class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view argument = argv[i];
      if (argument.starts_with("+")) continue;
      const auto equals = argument.find('=');
      if (!argument.starts_with("--") || equals == std::string_view::npos) {
        throw std::runtime_error("unknown argument " + std::string(argument) +
                                 ": expected --name=value");
      }
      values_[std::string(argument.substr(2, equals - 2))] = argument.substr(equals + 1);
    }
  }

  bool has(const std::string& name) const { return values_.contains(name); }

  std::string text(const std::string& name, const std::string& otherwise = "") const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }

  std::uint64_t number(const std::string& name, std::uint64_t otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::stoull(found->second, nullptr, 0);
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace npu_sim
