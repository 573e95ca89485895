// SPDX-License-Identifier: Apache-2.0
// Programs as the queue takes them, and the batch of commands that a device is given next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace npu {

// A relocatable program, as driver.runtime.program describes it. Sizes in bytes, words of 8 bytes.
struct Program {
  struct Relocation {
    uint32_t word;
    uint32_t symbol;  // operands first, then sections
  };
  struct Section {
    size_t size;
    int64_t content;  // where its bytes begin in the image; negative for a temporary
  };
  std::string op;
  size_t operands;
  std::vector<size_t> written;  // numbers of the operands that it writes to
  bool numbered;                // whether the last operand is a number, not an address
  size_t packet_words;
  std::vector<uint64_t> image;  // packets, then contents of sections, each from a multiple of 64
  std::vector<Relocation> relocations;
  std::vector<Section> sections;

  size_t content_bytes() const { return (image.size() - packet_words) * sizeof(uint64_t); }
};
using ProgramPtr = std::shared_ptr<const Program>;

// What a device is given at once: bytes to store at `address`, then commands.
struct Batch {
  struct Op {
    size_t first_packet;
    ProgramPtr program;
    unsigned long thread;  // that queued it, as Python counts threads
    uint64_t position;     // see note_queued
    uint64_t begin;        // see FailedOp
    std::vector<uint64_t> written;
  };
  std::vector<uint64_t> packets;
  std::vector<uint64_t> contents;
  std::vector<Op> ops;
  uint64_t address = 0;
  size_t capacity = 0;  // bytes from `address` on, which no command that is still queued uses
};

// Adds a program to the device's next batch, on operands at these addresses. Any thread that holds
// the interpreter's lock may call it; it hands the batch over when that is full.
//
// A block of memory is free for others as soon as the last op that uses it is queued, as all that
// use it afterwards are queued behind. Only the contents, which the host writes before the
// batch runs, need memory of their own.
void enqueue(int device, const ProgramPtr& program, const std::vector<uint64_t>& operands);

// Between these, what the thread queues is one call of torch. They nest.
void enter_call();
void leave_call();

// The commands so far; the next batch is empty and has no memory for contents.
Batch take_batch(int device);
// Memory for the contents of the device's next batch.
void set_contents_memory(int device, uint64_t address, size_t capacity);

}  // namespace npu
