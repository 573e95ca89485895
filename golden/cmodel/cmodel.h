// SPDX-License-Identifier: Apache-2.0
/// The device as software sees it: takes command packets one at a time and changes memory.
/// Queues, completion records, registers and time belong to the caller.
#pragma once

#include <string>

#include "fault.h"
#include "memory.h"
#include "npu_isa.h"
#include "programs.h"

namespace npu {

class CModel {
 public:
  /// `threads` as in matmul(): 0 means one per host processor. Never changes a bit of a result.
  /// `programs`: those that VECTOR runs before any is loaded.
  CModel(Memory memory, unsigned threads, ProgramMemory programs = {})
      : memory_(std::move(memory)), threads_(threads), programs_(std::move(programs)) {}

  /// Executes one command; `seq` only names it in last_fault(). Memory changes only when the answer
  /// is kNone; a bus error, too, is found before the first write (the contract leaves that
  /// destination unspecified).
  [[nodiscard]] isa::ErrorCode execute(const isa::Packet& packet, std::uint32_t seq);

  /// What was wrong with the last command, for the engineer; empty after a success.
  [[nodiscard]] const std::string& last_fault() const { return last_fault_; }

  [[nodiscard]] Memory& memory() { return memory_; }

  /// What a reset does here: loaded programs are gone.
  void forget_loaded_programs() { programs_.forget_loaded(); }

 private:
  void run(const isa::Packet& packet);
  void run_matmul(const isa::Packet& packet);
  void run_vector_program(const isa::Packet& packet);
  void run_gather(const isa::Packet& packet);
  void run_scatter(const isa::Packet& packet);
  void run_copy(const isa::Packet& packet);
  void run_load(const isa::Packet& packet);
  void run_fill(const isa::Packet& packet, std::uint32_t value);

  Memory memory_;
  unsigned threads_;
  ProgramMemory programs_;
  std::string last_fault_;
};

}  // namespace npu
