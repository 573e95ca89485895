// SPDX-License-Identifier: Apache-2.0
// Random packets: sound ones, and sound ones with one thing wrong.
#pragma once

#include <bit>

#include "expected.hpp"
#include "random_windows.hpp"

// What lies where in the bench's memory.
constexpr uint64_t kRing = kMemBase;
constexpr uint64_t kRecords = kMemBase + 0x2000;
constexpr uint64_t kDescriptors = kMemBase + 0x4000;
constexpr uint64_t kData = kMemBase + 0x10000;

class PacketMaker {
 public:
  PacketMaker(Memory& memory, Random& random) : memory_(memory), random_(random) {
    load_programs();
  }

  Packet sound() {
    Packet p{};
    switch (random_.below(15)) {
      case 14:
        load(p);
        break;
      case 0:
        p.opcode = uint32_t(random_.chance(50) ? Opcode::kNop : Opcode::kFence);
        break;
      case 1:
        sync(p);
        break;
      case 2:
      case 3:
        fill(p);
        break;
      case 4:
      case 5:
        copy(p);
        break;
      case 6:
      case 7:
      case 8:
        vector(p);
        break;
      case 9:
      case 10:
        indexed(p);
        break;
      default:
        matmul(p);
        break;
    }
    if (random_.chance(20)) p.flags |= kIrqMask;
    return p;
  }

  Packet mutated() {
    Packet p = sound();
    mutate(p);
    return p;
  }

  // One of the ways to be wrong; some of them leave some packets sound.
  void mutate(Packet& p) {
    uint64_t* const addresses[] = {&p.src1, &p.src2, &p.dst};
    uint64_t& address = *addresses[random_.below(3)];
    const uint64_t grain = random_.chance(30) ? 64 : 1ull << random_.below(3);
    switch (random_.below(14)) {
      case 13:
        p.flags ^= kOperandListMask;
        break;
      case 0:
        p.opcode = uint32_t(random_.chance(50) ? random_.below(12) : random_.engine());
        break;
      case 1:
        p.flags ^= 1u << random_.below(32);
        break;
      case 2:
        p.param[random_.below(kParamCount)] = uint32_t(random_.below(3));
        break;
      case 3:
        p.param[random_.below(kParamCount)] = uint32_t(random_.engine());
        break;
      case 4:
        address += random_.between(1, 63);
        break;
      case 5:
        address = random_.engine() >> random_.below(64) & ~63ull;
        break;
      case 6:
        address = kMemLimit - 64 + random_.below(128) / grain * grain;
        break;
      case 7:
        address = kMemBase - 4 * random_.between(1, 32);
        break;
      case 8:
        p.flags ^= uint32_t(random_.below(16)) << std::array{0, 4, 16, 20}[random_.below(4)];
        break;
      case 9:
        memory_.bad_lines.insert(last_descriptor_ / 64 + random_.chance(30));
        break;
      case 10:
      case 11:
        another_kind(p);
        break;
      default:
        spoil_descriptor();
        break;
    }
  }

  // Makes one word of the last descriptor wrong.
  void spoil_descriptor() {
    if (last_descriptor_ == 0) return;
    auto window = memory_.get<Window>(last_descriptor_);
    if (window.rank == kWindowRank && random_.chance(90)) {
      spoil(window, random_, kMemLimit);
      memory_.put(last_descriptor_, window);
      return;
    }
    auto desc = memory_.get<Descriptor>(last_descriptor_);
    const unsigned dim = unsigned(random_.below(kMaxRank));
    switch (random_.below(11)) {
      case 0:
        desc.reserved = random_.engine() >> random_.below(64);
        break;
      case 1:
        desc.rank = uint32_t(random_.chance(50) ? random_.below(8) : random_.engine());
        break;
      case 2:
        desc.dtype ^= 1u << random_.below(32);
        break;
      case 3:
        desc.size[dim] = uint32_t(random_.below(3));
        break;
      case 4:
        desc.stride[dim] = uint32_t(random_.below(2));
        break;
      case 5:
        desc.size[dim] = desc.stride[dim] = UINT32_MAX;
        break;
      case 6:
        desc.base += random_.between(1, 4);
        break;
      case 7:
        wrap_around(desc);
        break;
      case 8:
        add_dimension(desc);
        break;
      case 9:
        desc.base = kMemLimit - 4 * random_.between(0, 64);
        break;
      default:
        desc.base = ~0ull - 4 * random_.below(64) + 1;
        break;
    }
    memory_.put(last_descriptor_, desc);
  }

 private:
  uint32_t size(uint32_t limit) { return uint32_t(random_.between(1, limit)); }
  uint64_t data(uint32_t dtype) {
    return kData + random_.below(0x80000) / kDTypeBytes[dtype] * kDTypeBytes[dtype];
  }

  // A descriptor of `sizes` in memory, mostly dense; a destination has no stride of 0.
  uint64_t describe(uint32_t dtype, const std::vector<uint32_t>& sizes, bool is_dst) {
    Descriptor desc{};
    desc.base = data(dtype);
    desc.dtype = dtype;
    desc.rank = uint32_t(sizes.size());
    uint32_t step = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
      desc.size[i] = sizes[i];
      desc.stride[i] = random_.chance(70) ? step : uint32_t(random_.below(100)) + is_dst;
      step *= sizes[i];
    }
    const uint64_t slot = kDescriptors + 64 * (slot_++ % kSlots);
    memory_.bad_lines.erase(slot / 64);
    memory_.put(slot, desc);
    // One of the packet's descriptors is the one that a mishap befalls.
    if (last_descriptor_ == 0 || random_.chance(60)) last_descriptor_ = slot;
    return slot;
  }
  uint64_t operand(Packet& p, uint32_t desc_flag, uint32_t dtype,
                   const std::vector<uint32_t>& sizes) {
    if (random_.chance(50)) return data(dtype);
    p.flags |= desc_flag;
    return describe(dtype, sizes, desc_flag == kDstDescMask);
  }

  void sync(Packet& p) {
    p.opcode = uint32_t(Opcode::kSync);
    p.dst = data(uint32_t(DType::kInt32));
    p.param[kSyncValue] = uint32_t(random_.engine());
  }

  void fill(Packet& p) {
    const uint32_t dtype = uint32_t(random_.below(uint32_t(DType::kInt64)));  // not that one
    p.opcode = uint32_t(Opcode::kFill);
    p.flags = dtype << kDstDtypeShift;
    p.param[kFillValue] = uint32_t(random_.engine() & ((1ull << 8 * kDTypeBytes[dtype]) - 1));
    p.dst = operand(p, kDstDescMask, dtype, sizes());
    if (!(p.flags & kDstDescMask)) p.param[kFillCount] = size(random_.chance(50) ? 8 : 100000);
  }

  void copy(Packet& p) {
    const uint32_t dtype = uint32_t(random_.below(kDTypeBytes.size()));
    const auto shape = sizes();
    p.opcode = uint32_t(Opcode::kCopy);
    p.flags = dtype << kSrcDtypeShift | dtype << kDstDtypeShift;
    p.src1 = operand(p, kSrc1DescMask, dtype, shape);
    p.dst = operand(p, kDstDescMask, dtype, shape);
    if (!(p.flags & (kSrc1DescMask | kDstDescMask)))
      p.param[kCopyCount] = size(random_.chance(50) ? 8 : 100000);
  }

  // Programs of every number of sources and results beside the boot programs; the device has them
  // because it asks the bench. At the ends of the loadable part too.
  void load_programs() {
    uint32_t line = kProgramRam;
    for (unsigned sources = 0; sources <= kMaxSources; ++sources) {
      for (unsigned results = 1; results <= kMaxResults; ++results, line += 3) {
        npu::Program program;
        for (unsigned r = 0; r < results; ++r)
          program.code.push_back(
              {MicroOp::kMov, uint8_t(kDstResult + r), uint8_t(kOperandIndex), 0, 0});
        program.sources = sources;
        program.results = results;
        if (results == 1 && sources == 4) program.reduce = Reduce::kFadd;
        const bool last = sources == kMaxSources && results == kMaxResults;
        loaded_.push_back(last ? kProgramRam + kProgramRamLines - 1 : line);
        programs().load(loaded_.back(), 1, program);
      }
    }
  }

  uint32_t a_line() {
    if (random_.chance(50)) return loaded_[random_.below(loaded_.size())];
    return named_programs()[random_.below(kProgramCount)].line;
  }

  void load(Packet& p) {
    p.opcode = uint32_t(Opcode::kLoad);
    const uint32_t lines = size(random_.chance(50) ? 4 : kProgramMaxLines);
    const uint32_t room = kProgramRamLines - lines;
    p.param[kLoadLines] = lines;
    p.param[kLoadLine] = kProgramRam + (random_.chance(20) ? room : uint32_t(random_.below(room)));
    p.src1 = data(uint32_t(DType::kFp32)) / 64 * 64;
  }

  void vector(Packet& p) {
    const uint32_t line = a_line();
    const npu::Program& program = *programs().find(line);
    const auto shape = sizes();
    auto result = shape;
    if (program.reduce != Reduce::kNone) result.back() = 1;
    p.opcode = uint32_t(Opcode::kVector);
    p.param[kVectorProgram] = line;
    for (unsigned i = 0; i < kPlainImmediates; ++i)
      p.param[kVectorImm0 + i] = uint32_t(random_.engine());
    const bool plain = program.sources <= kPlainSources && program.results == 1;
    if (plain && random_.chance(70))
      plain_operands(p, program, shape, result);
    else
      operand_list(p, program, shape, result);
  }

  void plain_operands(Packet& p, const npu::Program& program, const std::vector<uint32_t>& shape,
                      const std::vector<uint32_t>& result) {
    const bool direct = program.reduce == Reduce::kNone && random_.chance(40);
    if (direct) p.param[kVectorCount] = size(random_.chance(50) ? 8 : 1000);
    const auto place = [&](unsigned shift, uint32_t mask, const std::vector<uint32_t>& sizes) {
      const uint32_t dtype = uint32_t(random_.below(kDTypeBytes.size()));
      p.flags |= dtype << shift | (direct ? 0 : mask);
      return direct ? data(dtype) : describe(dtype, sizes, mask == kDstDescMask);
    };
    if (program.sources > 0) p.src1 = place(kSrcDtypeShift, kSrc1DescMask, shape);
    if (program.sources > 1) p.src2 = place(kSrc2DtypeShift, kSrc2DescMask, shape);
    if (program.sources > 2) {
      const uint64_t src3 = place(kSrc3DtypeShift, kSrc3DescMask, shape);
      p.param[kVectorSrc3Low] = uint32_t(src3);
      p.param[kVectorSrc3High] = uint32_t(src3 >> 32);
    }
    p.dst = place(kDstDtypeShift, kDstDescMask, result);
  }

  // Descriptors one behind the other, now and then so that the memory ends among them.
  void operand_list(Packet& p, const npu::Program& program, const std::vector<uint32_t>& shape,
                    const std::vector<uint32_t>& result) {
    const unsigned operands = program.sources + program.results;
    p.flags |= kOperandListMask;
    p.param[kVectorSrc3Low] = uint32_t(random_.engine());  // imm4, imm5
    p.param[kVectorSrc3High] = uint32_t(random_.engine());
    if (slot_ % kSlots + operands > kSlots) slot_ = 0;
    for (unsigned i = 0; i < operands; ++i) {
      const bool is_result = i >= program.sources;
      const uint32_t dtype = uint32_t(random_.below(kDTypeBytes.size()));
      const uint64_t at = describe(dtype, is_result ? result : shape, is_result);
      if (i == 0) p.src1 = at;
    }
    if (random_.chance(90)) return;
    const uint64_t inside = random_.between(1, operands), from = p.src1;
    p.src1 = kMemLimit - 64 * inside;
    for (uint64_t i = 0; i < inside; ++i)
      memory_.put(p.src1 + 64 * i, memory_.get<Descriptor>(from + 64 * i));
  }

  void indexed(Packet& p) {
    const bool gather = random_.chance(50);
    const bool add = !gather && random_.chance(50);
    const uint32_t dtype =
        uint32_t(add ? uint32_t(kScatterAddDTypes[random_.below(kScatterAddDTypes.size())])
                     : random_.below(kDTypeBytes.size()));
    const uint32_t index = uint32_t(kIndexDTypes[random_.below(kIndexDTypes.size())]);
    const auto shape = sizes();
    const uint32_t dim = uint32_t(random_.below(shape.size()));
    auto table = shape;
    table[dim] = size(8);
    p.opcode = uint32_t(gather ? Opcode::kGather : Opcode::kScatter);
    p.flags = dtype << kSrcDtypeShift | dtype << kDstDtypeShift | index << kSrc2DtypeShift |
              (add ? kAccumulateMask : 0) | kSrc1DescMask | kSrc2DescMask | kDstDescMask;
    p.param[kGatherDim] = dim;
    p.src1 = describe(dtype, gather ? table : shape, false);
    p.src2 = describe(index, shape, false);
    p.dst = describe(dtype, gather ? shape : table, true);
  }

  void matmul(Packet& p) {
    const auto& pair = kMatmulDTypes[random_.below(kMatmulDTypes.size())];
    const uint32_t src = uint32_t(pair[0]), dst = uint32_t(pair[1]);
    const uint32_t m = size(40), k = size(40), n = size(40), batch = size(4);
    p.opcode = uint32_t(Opcode::kMatmul);
    p.flags = src << kSrcDtypeShift | dst << kDstDtypeShift |
              uint32_t(random_.below(8)) << kTransAShift;  // TRANS_A, TRANS_B, ACCUMULATE
    p.param = {m, k, n, batch};
    const bool ta = p.flags & kTransAMask, tb = p.flags & kTransBMask;
    p.src1 = matrix(p, kSrc1DescMask, src, {batch, ta ? k : m, ta ? m : k}, !ta);
    p.src2 = matrix(p, kSrc2DescMask, src, {batch, tb ? n : k, tb ? k : n}, !tb);
    if ((p.flags & kAccumulateMask) && random_.chance(50)) {
      p.flags |= kSrc3DescMask;
      const uint64_t init = random_.chance(50) ? describe_window(dst, {batch, m, n}, false)
                                               : describe(dst, {batch, m, n}, false);
      p.param[kMatmulSrc3Low] = uint32_t(init);
      p.param[kMatmulSrc3High] = uint32_t(init >> 32);
    }
    p.dst = matrix(p, kDstDescMask, dst, {batch, m, n}, true);
  }

  // Direct, a descriptor, or a window where a transposed flag does not forbid it; now and then one
  // where it does.
  uint64_t matrix(Packet& p, uint32_t desc_flag, uint32_t dtype, const std::vector<uint32_t>& sizes,
                  bool may_be_window) {
    if (!random_.chance(may_be_window ? 40 : 3)) return operand(p, desc_flag, dtype, sizes);
    p.flags |= desc_flag;
    return describe_window(dtype, sizes, desc_flag == kDstDescMask);
  }

  uint64_t describe_window(uint32_t dtype, const std::vector<uint32_t>& sizes, bool is_dst) {
    Window window = random_window(random_, dtype, sizes, is_dst);
    window.base = data(dtype);
    if (random_.chance(3)) {  // only its first line lies in memory
      const uint64_t last = kMemLimit - 64;
      memory_.bad_lines.erase(last / 64);
      memory_.put(last, std::bit_cast<std::array<Descriptor, 2>>(window)[0]);
      return last;
    }
    if (slot_ % 128 == 127) ++slot_;  // two lines that follow each other
    const uint64_t slot = kDescriptors + 64 * (slot_++ % 128);
    ++slot_;
    memory_.bad_lines.erase(slot / 64);
    memory_.bad_lines.erase(slot / 64 + 1);
    memory_.put(slot, window);
    if (last_descriptor_ == 0 || random_.chance(60)) last_descriptor_ = slot;
    return slot;
  }

  // Another program, mostly of as many sources; or a line at which none begins.
  void another_program(Packet& p) {
    if (program_of(p) == nullptr) return;
    const unsigned sources = program_of(p)->sources;
    const npu::Program* now = nullptr;
    do {
      p.param[kVectorProgram] = random_.chance(70) ? a_line() : a_line() + 1;
      if (random_.chance(10)) p.param[kVectorProgram] |= 1u << random_.between(11, 31);
      now = program_of(p);
    } while (random_.chance(90) && now != nullptr &&
             (now->sources != sources || (now->reduce == Reduce::kNone && now->results == 1)));
  }

  // Another dimension, often the first that is not there.
  void another_dimension(Packet& p) {
    if (memory_.error_at(p.src1) || p.src1 > kMemLimit - sizeof(Descriptor)) return;
    const uint32_t rank = memory_.get<Descriptor>(p.src1).rank;
    p.param[kGatherDim] = random_.chance(50) ? rank : uint32_t(random_.below(kMaxRank + 2));
  }

  void another_kind(Packet& p) {
    switch (Opcode(p.opcode)) {
      case Opcode::kVector:
        another_program(p);
        break;
      case Opcode::kGather:
      case Opcode::kScatter:
        another_dimension(p);
        break;
      case Opcode::kLoad:
        p.param[random_.below(2)] = another_extent(p);
        break;
      default:
        p.param[0] = uint32_t(random_.below(3));
        break;
    }
  }

  // Around the ends of what LOAD may be given.
  uint32_t another_extent(const Packet& p) {
    const uint32_t ends[] = {0,
                             kProgramMaxLines,
                             kProgramRam,
                             kProgramRam + kProgramRamLines,
                             kProgramRam + kProgramRamLines - p.param[kLoadLines],
                             UINT32_MAX - 4};
    return ends[random_.below(std::size(ends))] + uint32_t(random_.below(3)) - 1;
  }

  std::vector<uint32_t> sizes() {
    std::vector<uint32_t> all(random_.between(1, kMaxRank));
    for (auto& one : all) one = size(6);
    return all;
  }

  // The same tensor with one dimension more, of size 1: another shape to the contract.
  static void add_dimension(Descriptor& desc) {
    if (desc.rank >= kMaxRank) return;
    for (unsigned i = desc.rank++; i > 0; --i) {
      desc.size[i] = desc.size[i - 1];
      desc.stride[i] = desc.stride[i - 1];
    }
    desc.size[0] = desc.stride[0] = 1;
  }

  // The last byte is a multiple of 2^64 bytes beyond the first, for 1, 2 or 4 dimensions.
  void wrap_around(Descriptor& desc) {
    desc.rank = 1u << random_.below(3);
    desc.size = desc.stride = {};
    for (unsigned i = 0; i < desc.rank; ++i) {
      desc.size[i] = 0x80000001;
      desc.stride[i] = 0x80000000;
    }
  }

  static constexpr uint64_t kSlots = 128;  // of descriptors

  Memory& memory_;
  Random& random_;
  std::vector<uint32_t> loaded_;  // where programs begin beside the boot programs
  uint64_t slot_ = 0, last_descriptor_ = 0;
};
