// SPDX-License-Identifier: Apache-2.0
// Waves in FST from a model that was built for VCD, so that one build serves both formats.
//
// Verilator's VCD writer gives its text to this file instead of to the disk; each line becomes a
// call of the FST library that comes with Verilator. Reals, events and strings are refused: the
// RTL has none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "verilated_vcd_c.h"

namespace fst {
class Writer;
}

namespace npu_sim {

class FstFile final : public VerilatedVcdFile {
 public:
  FstFile();
  ~FstFile() override;
  bool open(const std::string& name) override;
  void close() override;
  ssize_t write(const char* data, ssize_t bytes) override;

 private:
  struct Variable {
    std::uint32_t handle;
    std::uint32_t width;
  };

  void line(std::string_view text);
  void declaration(std::string_view text);
  void variable(std::string_view text);
  void change(std::string_view value, std::string_view code);

  std::unique_ptr<fst::Writer> writer_;
  std::map<std::string, Variable, std::less<>> variables_;  // by VCD's identifier code
  std::string rest_;                                        // of a line that is not whole yet
  std::string value_;
};

}  // namespace npu_sim
