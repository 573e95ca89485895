// SPDX-License-Identifier: Apache-2.0
// Random packets: sound ones, and sound ones with one thing wrong.
#pragma once

#include "descriptors.hpp"
#include "expected.hpp"

class PacketMaker : public DescriptorMaker {
 public:
  PacketMaker(Memory& memory, Random& random) : DescriptorMaker(memory, random) { load_programs(); }

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
    const uint64_t grain = random_.chance(30) ? kLineBytes : 1ull << random_.below(3);
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
        address = kMemLimit - kLineBytes + random_.below(2 * kLineBytes) / grain * grain;
        break;
      case 7:
        address = kMemBase - 4 * random_.between(1, 32);
        break;
      case 8:
        p.flags ^= uint32_t(random_.below(16)) << std::array{0, 4, 16, 20}[random_.below(4)];
        break;
      case 9:
        memory_.bad_lines.insert(last_descriptor_ / kLineBytes + random_.chance(30));
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

 private:
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
        npu::VectorProgram program;
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
    p.src1 = data(uint32_t(DType::kFp32)) / kLineBytes * kLineBytes;
  }

  void vector(Packet& p) {
    const uint32_t line = a_line();
    const npu::VectorProgram& program = *programs().find(line);
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

  void plain_operands(Packet& p, const npu::VectorProgram& program,
                      const std::vector<uint32_t>& shape, const std::vector<uint32_t>& result) {
    const bool direct = random_.chance(program.reduce == Reduce::kNone ? 40 : 10);
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
  void operand_list(Packet& p, const npu::VectorProgram& program,
                    const std::vector<uint32_t>& shape, const std::vector<uint32_t>& result) {
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
    p.src1 = kMemLimit - kLineBytes * inside;
    for (uint64_t i = 0; i < inside; ++i)
      memory_.put(p.src1 + kLineBytes * i, memory_.get<Descriptor>(from + kLineBytes * i));
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
    const uint32_t group = random_.chance(25) ? another_group() : 0;
    p.flags |= group << kInt4GroupShift;
    const uint32_t rows = group ? (k + 7) / 8 : k;
    const uint32_t b_type = group ? uint32_t(DType::kInt32) : src;
    p.src2 = matrix(p, kSrc2DescMask, b_type, {batch, tb ? n : rows, tb ? rows : n}, !tb);
    if (group) {
      const uint32_t scales = (k + (1u << group) - 1) >> group;
      set_src3(p, matrix(p, kSrc3DescMask, src, {batch, scales, n}, true));
    } else if (random_.chance((p.flags & kAccumulateMask) ? 50 : 5)) {
      p.flags |= kSrc3DescMask;
      const uint64_t init = random_.chance(50) ? describe_window(dst, {batch, m, n}, false)
                                               : describe(dst, {batch, m, n}, false);
      set_src3(p, init);
    }
    p.dst = matrix(p, kDstDescMask, dst, {batch, m, n}, true);
  }

  // log2 of the rows that share a scale; now and then one that does not exist.
  uint32_t another_group() {
    return uint32_t(random_.chance(90) ? random_.between(3, random_.chance(80) ? 6 : 15)
                                       : random_.between(1, 2));
  }

  static void set_src3(Packet& p, uint64_t address) {
    p.param[kMatmulSrc3Low] = uint32_t(address);
    p.param[kMatmulSrc3High] = uint32_t(address >> 32);
  }

  // Another program, mostly of as many sources; or a line at which none begins.
  void another_program(Packet& p) {
    if (program_of(p) == nullptr) return;
    const unsigned sources = program_of(p)->sources;
    const npu::VectorProgram* now = nullptr;
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

  std::vector<uint32_t> loaded_;  // where programs begin beside the boot programs
};
