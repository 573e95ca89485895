// SPDX-License-Identifier: Apache-2.0
// VECTOR and LOAD commands: random programs, views and types, and what they must do to the memory.
#pragma once

#include <functional>

#include "bench.hpp"
#include "elements.h"
#include "image.hpp"
#include "reference.hpp"
#include "vector.h"

// In-place commands and destinations share the region of the engine's writes.
constexpr unsigned kSources = npu::isa::kMaxSources, kResults = npu::isa::kMaxResults;

struct VectorCommand {
  Opcode opcode = Opcode::kVector;
  uint32_t line = 0;
  uint32_t lines = 0;  // LOAD
  uint64_t image = 0;  // LOAD: its address
  const npu::VectorProgram* program = nullptr;
  std::array<uint32_t, npu::isa::kImmediates> imm{};
  Dims size = kOnes;
  std::array<TensorView, kSources> sources;
  std::array<TensorView, kResults> results;

  const npu::VectorProgram& info() const { return *program; }
  std::string name() const {
    for (const auto& [known, at] : named_programs())
      if (at == line) return std::string(known);
    return "line " + std::to_string(line);
  }
  bool reduces() const { return info().reduce != Reduce::kNone; }
  std::span<const TensorView> used_sources() const {
    return std::span(sources).first(info().sources);
  }
  std::span<const TensorView> used_results() const {
    return std::span(results).first(info().results);
  }
  Dims dst_size() const {
    Dims dims = size;
    if (reduces()) dims[4] = 1;
    return dims;
  }
  void apply(Memory& memory) const {
    const npu::Shape shape{npu::isa::kMaxRank, size};
    npu::run_vector(expected_of(memory), {info(), imm, used_sources(), used_results(), shape}, 1);
  }
  static bool any_bad(const Memory& memory, std::span<const TensorView> views) {
    return std::ranges::any_of(views, [&](auto& view) { return touches_bad(memory, view); });
  }
};

inline uint64_t random_bits(Random& random, DType dtype) {
  uint64_t bits = 0;
  if (dtype <= DType::kBf16) {
    const uint32_t word = random_float(random);
    npu::scalar::with_dtype(dtype, [&](auto type) {
      npu::scalar::store_element<type>(word, reinterpret_cast<std::byte*>(&bits));
    });
    return bits;
  }
  bits = random.engine();
  return random.chance(50) ? bits : bits % 5;  // truth values and equal elements
}

// Strides in which the dimensions follow each other in a random order, dense or with gaps.
inline Dims random_strides(Random& random, const Dims& size, bool in_order) {
  std::array<unsigned, 5> order{4, 3, 2, 1, 0};
  if (!in_order) std::shuffle(order.begin(), order.end(), random.engine);
  Dims stride{};
  uint64_t next = random.chance(70) ? 1 : random.between(1, 5);
  for (const unsigned d : order) {
    stride[d] = next;
    next *= size[d];
    if (random.chance(30)) next += random.below(9);
  }
  return stride;
}

inline Dims random_size(Random& random, uint64_t room) {
  const uint64_t rank = random.between(1, 5);
  Dims size = kOnes;
  for (uint64_t d = 5 - rank; d < 5; ++d) {
    const uint64_t limit = std::max<uint64_t>(room, 1);
    size[d] =
        random.chance(25) ? random.between(1, std::min<uint64_t>(limit, 3)) : random.size(limit);
    room /= size[d];
  }
  std::shuffle(size.begin() + long(5 - rank), size.end(), random.engine);
  return size;
}

class CommandMaker {
 public:
  CommandMaker(Memory& memory, Random& random, const Directory& directory)
      : memory_(memory), random_(random), directory_(directory) {}

  // Of any boot program.
  VectorCommand make() { return make(named_programs()[random_.below(kProgramCount)].line); }

  VectorCommand make(uint32_t line) {
    while (true) {
      VectorCommand command;
      command.line = line;
      command.program = directory_.find(line);
      for (auto& word : command.imm)
        word = random_.chance(70) ? random_float(random_) : uint32_t(random_.engine());
      const bool small = command.info().code.size() > 40 || random_.chance(90);
      command.size = random_size(random_, small ? 1500 : 12000);
      if (place(command)) {
        fill(command);
        return command;
      }
    }
  }

  // Random numbers in the sources; what memory should be, too.
  void fill(const VectorCommand& command) {
    for (const TensorView& view : command.used_sources()) {
      each_place(command.size, [&](const Dims& place) {
        const uint64_t bits = random_bits(random_, view.dtype), at = address_of(view, place);
        std::memcpy(&memory_.at(at), &bits, view.element_bytes());
        std::memcpy(&memory_.want(at), &bits, view.element_bytes());
      });
    }
  }

  // Puts an image into memory at a multiple of 64 and returns its address.
  uint64_t store(const Words& words) {
    const uint64_t bytes = words.size() * 8;
    const uint64_t first = (kConstBase + 63) / 64, end = (kConstEnd - bytes) / 64;
    const uint64_t at = random_.between(first, end) * 64;
    overwrite(at, words);
    return at;
  }
  void overwrite(uint64_t at, const Words& words) {
    std::memcpy(&memory_.at(at), words.data(), words.size() * 8);
    std::memcpy(&memory_.want(at), words.data(), words.size() * 8);
  }

 private:
  // A result for each part of the region, in any order.
  bool place_results(VectorCommand& command) {
    const Dims size = command.dst_size();
    const uint64_t results = command.info().results, part = (kEngineEnd - kEngineBase) / results;
    const uint64_t turn = random_.below(results);
    for (unsigned r = 0; r < results; ++r) {
      TensorView& view = command.results[r];
      const DType dtype = DType(random_.below(7));
      view = view_of(dtype, size, random_strides(random_, size, random_.chance(70)));
      const uint64_t first = kEngineBase + (r + turn) % results * part;
      if (!put(random_, view, (first + 7) / 8 * 8, first + part)) return false;
    }
    return true;
  }

  bool place(VectorCommand& command) {
    if (!place_results(command)) return false;
    for (unsigned i = 0; i < command.info().sources; ++i) {
      TensorView& view = command.sources[i];
      // Sources may share a result; two elements of one must not be one element of the source.
      if (!command.reduces() && random_.chance(10)) {
        view = command.results[random_.below(command.info().results)];
        continue;
      }
      const DType dtype = DType(random_.below(7));
      view =
          view_of(dtype, command.size, random_strides(random_, command.size, random_.chance(60)));
      for (auto& stride : view.stride)
        if (random_.chance(15)) stride = 0;
      if (!put(random_, view, kConstBase, kConstEnd)) return false;
    }
    return true;
  }

  Memory& memory_;
  Random& random_;
  const Directory& directory_;
};

class VectorEngine : public EngineModel<VectorCommand> {
 public:
  static constexpr unsigned kReaders = kSources, kWriters = kResults;

  Directory directory;
  // Called once, when the first reading of a LOAD has ended.
  std::function<void()> between_readings;

  void drive_command(Vbench& top) const override {
    top.cmd_opcode = uint32_t(command_.opcode);
    top.cmd_program = static_cast<uint16_t>(command_.line);
    top.cmd_lines = static_cast<uint8_t>(command_.lines);
    top.cmd_info = program_info_bits(command_.program);
    for (unsigned i = 0; i < command_.imm.size(); ++i) top.cmd_imm[i] = command_.imm[i];
    for (unsigned i = 0; i < kSources; ++i)
      drive_operand(top, i, command_.sources[i], command_.size);
    if (command_.opcode == Opcode::kLoad) top.cmd_base[0] = command_.image;
    for (unsigned r = 0; r < kResults; ++r)
      drive_operand(top, kDestination + r, command_.results[r],
                    command_.program == nullptr ? kOnes : command_.dst_size());
  }

  void sample(Vbench& top, uint64_t cycle) override {
    EngineModel::sample(top, cycle);
    const bool read_once = active == uint64_t(command_.lines) * npu::isa::kLineWords;
    if (!between_readings || !read_once) return;
    between_readings();
    between_readings = nullptr;
  }
};
