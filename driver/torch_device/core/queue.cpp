// SPDX-License-Identifier: Apache-2.0
// The batch of commands that a device is given next: programs are bound into it.
#include <Python.h>

#include <map>
#include <utility>

#include "core.h"
#include "program.h"

namespace npu {
namespace {

// So many commands are handed over at once. The device's ring holds more, so that one batch runs
// while the next is written.
constexpr size_t kBatchPackets = 64;
constexpr size_t kWordsPerPacket = 8;
constexpr size_t kWordBytes = sizeof(uint64_t);

thread_local int t_depth = 0;
thread_local uint64_t t_begin = 0;  // position of the first op of the call; 0: there is none yet

// Changed only with the interpreter's lock held.
std::map<int, Batch>& batches() {
  static auto* const instance = new std::map<int, Batch>;
  return *instance;
}

// The addresses of all symbols: operands, then sections. Contents begin at `contents`.
std::vector<uint64_t> symbols(const Program& program, const std::vector<uint64_t>& operands,
                              const std::vector<c10::DataPtr>& temporaries, uint64_t contents) {
  auto addresses = operands;
  size_t next = 0;
  for (const auto& section : program.sections) {
    addresses.push_back(section.content < 0 ? address_of(temporaries[next++].get())
                                            : contents + static_cast<uint64_t>(section.content) -
                                                  program.packet_words * kWordBytes);
  }
  return addresses;
}

// False where the thread has to hear of a fault first.
bool append(int device, Batch& batch, const ProgramPtr& program,
            const std::vector<uint64_t>& operands, const std::vector<c10::DataPtr>& temporaries) {
  std::vector<uint64_t> written;
  for (const size_t operand : program->written) written.push_back(operands[operand]);
  const auto used = c10::ArrayRef(operands).slice(0, operands.size() - program->numbered);
  const auto thread = PyThread_get_thread_ident();
  const uint64_t position = note_queued(device, used, written, thread);
  if (position == 0) return false;
  if (t_depth > 0 && t_begin == 0) t_begin = position;
  const uint64_t begin = t_depth > 0 ? t_begin : position;
  const size_t first = batch.packets.size(), contents = batch.contents.size();
  const auto split = program->image.begin() + static_cast<std::ptrdiff_t>(program->packet_words);
  batch.packets.insert(batch.packets.end(), program->image.begin(), split);
  batch.contents.insert(batch.contents.end(), split, program->image.end());
  const auto at = symbols(*program, operands, temporaries, batch.address + contents * kWordBytes);
  for (const auto [word, symbol] : program->relocations) {
    auto& patched = word < program->packet_words
                        ? batch.packets[first + word]
                        : batch.contents[contents + word - program->packet_words];
    patched += at[symbol];
  }
  batch.ops.push_back(
      {first / kWordsPerPacket, program, thread, position, begin, std::move(written)});
  return true;
}

}  // namespace

void enqueue(int device, const ProgramPtr& program, const std::vector<uint64_t>& operands) {
  TORCH_CHECK(operands.size() == program->operands, "npu: ", program->op, " has ",
              program->operands, " operands, got ", operands.size());
  // What the callbacks do may run other threads: the batch is looked at again after them.
  std::vector<c10::DataPtr> temporaries;
  for (const auto& section : program->sections) {
    if (section.content < 0) {
      temporaries.push_back(allocate_on(static_cast<c10::DeviceIndex>(device), section.size));
    }
  }
  auto& batch = batches()[device];
  const size_t needed = program->content_bytes();
  const auto make_room = [&] {
    while (needed && batch.contents.size() * kWordBytes + needed > batch.capacity) {
      callbacks().submit(device, needed);
    }
  };
  make_room();
  while (!append(device, batch, program, operands, temporaries)) {
    callbacks().hear(device);
    make_room();
  }
  if (batch.packets.size() >= kBatchPackets * kWordsPerPacket) callbacks().submit(device, 0);
}

void enter_call() { ++t_depth; }
void leave_call() {
  if (--t_depth == 0) t_begin = 0;
}

Batch take_batch(int device) { return std::exchange(batches()[device], {}); }

void set_contents_memory(int device, uint64_t address, size_t capacity) {
  auto& batch = batches()[device];
  batch.address = address;
  batch.capacity = capacity;
}

}  // namespace npu
