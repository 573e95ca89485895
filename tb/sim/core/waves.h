// SPDX-License-Identifier: Apache-2.0
// Waveform recording over a window of cycles. In a build without tracing every call is empty, and
// open() says so.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

#include "Vtb_top.h"
#include "verilated.h"
#if VM_TRACE
#include "fst_file.h"
#include "verilated_vcd_c.h"
#endif

namespace npu_sim {

#if VM_TRACE
// Verilator's own file class, asked to report a failed write, deadlocks while it flushes.
class FailingVcdFile final : public VerilatedVcdFile {
 public:
  ssize_t write(const char* data, ssize_t bytes) override {
    const ssize_t written = VerilatedVcdFile::write(data, bytes);
    if (written > 0 || errno == EINTR || errno == EAGAIN) return written;
    std::fprintf(stderr, "%%Error: cannot write waves: %s\n", std::strerror(errno));
    std::_Exit(3);
  }
};
// The end of the file's name says the format.
struct TraceWriter {
  explicit TraceWriter(const std::string& path)
      : file(path.ends_with(".fst") ? std::unique_ptr<VerilatedVcdFile>(new FstFile)
                                    : std::make_unique<FailingVcdFile>()) {}
  std::unique_ptr<VerilatedVcdFile> file;
  VerilatedVcdC trace{file.get()};
};

class Waves {
 public:
  void prepare(VerilatedContext& context) { context.traceEverOn(true); }

  // Records cycles [from, to) into `path`; a second call closes the first file.
  void open(Vtb_top& top, const std::string& path, std::uint64_t from, std::uint64_t to) {
    if (writer_) throw std::runtime_error("waves: a model is traced into one file per run");
    writer_ = std::make_unique<TraceWriter>(path);
    top.trace(&writer_->trace, std::numeric_limits<int>::max());
    writer_->trace.open(path.c_str());
    if (!writer_->trace.isOpen()) throw std::runtime_error("waves: cannot create " + path);
    from_ = from;
    to_ = to;
  }

  void close() {
    if (writer_) writer_->trace.close();
    to_ = 0;
  }

  void sample(Vtb_top&, std::uint64_t cycle, std::uint64_t time) {
    if (cycle >= from_ && cycle < to_) writer_->trace.dump(time);
  }

 private:
  std::unique_ptr<TraceWriter> writer_;
  std::uint64_t from_ = 0;
  std::uint64_t to_ = 0;
};

#else

class Waves {
 public:
  void prepare(VerilatedContext&) {}
  [[noreturn]] void open(Vtb_top&, const std::string&, std::uint64_t, std::uint64_t) {
    throw std::runtime_error("waves: this simulator was built without tracing");
  }
  void close() {}
  void sample(Vtb_top&, std::uint64_t, std::uint64_t) {}
};

#endif

}  // namespace npu_sim
