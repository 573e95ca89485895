// SPDX-License-Identifier: Apache-2.0
// The checks of docs/isa.md on one packet, written from that page and not from the RTL.
#pragma once

#include <algorithm>

#include "device.hpp"
#include "npu_isa.h"
#include "npu_vector_programs.h"

using namespace npu::isa;

struct Verdict {
  ErrorCode error = ErrorCode::kNone;
  View src1{}, src2{}, src3{}, dst{};
  unsigned dim = 0;         // GATHER, SCATTER: where the dimension lies in the views
  bool dispatched = false;  // an engine saw it; set by whoever runs the packet
};

// The program of a VECTOR packet; nullptr when it does not exist.
inline const VectorProgram* program_of(const Packet& packet) {
  const uint32_t number = packet.param[kVectorProgram];
  return number < kPrograms.size() ? &kPrograms[number] : nullptr;
}

class Contract {
 public:
  Contract(const Memory& memory, const Packet& packet) : memory_(memory), p_(packet) {}

  Verdict judge() {
    v_.error = words();
    if (v_.error != ErrorCode::kNone) return v_;
    using Look = bool (Contract::*)();
    const bool dst_first = is(Opcode::kCopy) && !flag(kSrc1DescMask) && flag(kDstDescMask);
    const Look order[2][4] = {{&Contract::src1, &Contract::src2, &Contract::src3, &Contract::dst},
                              {&Contract::dst, &Contract::src2, &Contract::src3, &Contract::src1}};
    for (Look look : order[dst_first])
      if (!(this->*look)()) break;
    return v_;
  }

 private:
  bool is(Opcode opcode) const { return p_.opcode == uint32_t(opcode); }
  bool indexed() const { return is(Opcode::kGather) || is(Opcode::kScatter); }
  bool flag(uint32_t mask) const { return (p_.flags & mask) != 0; }
  uint32_t src_dtype() const { return p_.flags & 15; }
  uint32_t dst_dtype() const { return p_.flags >> 4 & 15; }
  uint32_t src2_dtype() const { return p_.flags >> kSrc2DtypeShift & 15; }
  uint32_t src3_dtype() const { return p_.flags >> kSrc3DtypeShift & 15; }
  uint64_t src3_addr() const {
    return p_.param[kVectorSrc3Low] | uint64_t(p_.param[kVectorSrc3High]) << 32;
  }
  bool has_source(unsigned number) const {
    const VectorProgram* program = program_of(p_);
    return is(Opcode::kVector) && program != nullptr && program->sources >= number;
  }

  ErrorCode words() const {
    const Usage* usage = nullptr;
    for (const auto& operation : kOperations)
      if (is(operation.opcode)) usage = &operation;
    if (usage == nullptr) return ErrorCode::kBadOpcode;
    bool unused = (p_.flags & ~usage->flags) || (!usage->src1 && p_.src1) ||
                  (!usage->src2 && p_.src2) || (!usage->dst && p_.dst);
    for (unsigned i = usage->params; i < kParamCount; ++i) unused |= p_.param[i] != 0;
    if (is(Opcode::kFill) && dst_dtype() < kDTypeBytes.size() && kDTypeBytes[dst_dtype()] < 4)
      unused |= p_.param[kFillValue] >> 8 * kDTypeBytes[dst_dtype()] != 0;
    if (unused || absent_sources_named()) return ErrorCode::kReservedBits;
    if (!dtypes_ok()) return ErrorCode::kBadDtype;
    return params_ok() ? ErrorCode::kNone : ErrorCode::kBadParam;
  }

  bool absent_sources_named() const {
    if (!is(Opcode::kVector) || program_of(p_) == nullptr) return false;
    const uint64_t named[] = {
        src_dtype() | uint64_t(flag(kSrc1DescMask)) | p_.src1,
        src2_dtype() | uint64_t(flag(kSrc2DescMask)) | p_.src2,
        src3_dtype() | uint64_t(flag(kSrc3DescMask)) | src3_addr(),
    };
    for (unsigned i = program_of(p_)->sources; i < kMaxSources; ++i)
      if (named[i] != 0) return true;
    return false;
  }

  bool dtypes_ok() const {
    const auto known = [](uint32_t dtype) { return dtype < kDTypeBytes.size(); };
    const auto among = [](uint32_t dtype, const auto& list) {
      return std::find(list.begin(), list.end(), DType(dtype)) != list.end();
    };
    if (is(Opcode::kMatmul)) {
      for (const auto& pair : kMatmulDTypes)
        if (src_dtype() == uint32_t(pair[0]) && dst_dtype() == uint32_t(pair[1])) return true;
      return false;
    }
    if (is(Opcode::kVector))
      return known(src_dtype()) && known(src2_dtype()) && known(src3_dtype()) && known(dst_dtype());
    if ((is(Opcode::kCopy) || indexed()) && src_dtype() != dst_dtype()) return false;
    if (indexed() && !among(src2_dtype(), kIndexDTypes)) return false;
    if (is(Opcode::kScatter) && flag(kAccumulateMask)) return among(dst_dtype(), kScatterAddDTypes);
    if (is(Opcode::kFill) && dst_dtype() == uint32_t(DType::kInt64)) return false;
    return known(dst_dtype());
  }

  bool params_ok() const {
    if (is(Opcode::kMatmul)) return p_.param[0] && p_.param[1] && p_.param[2] && p_.param[3];
    if (is(Opcode::kVector)) return vector_params_ok();
    if (indexed())
      return flag(kSrc1DescMask) && flag(kSrc2DescMask) && flag(kDstDescMask) &&
             p_.param[kGatherDim] < kMaxRank;
    if (!is(Opcode::kCopy) && !is(Opcode::kFill)) return true;
    const bool described = flag(kSrc1DescMask) || flag(kDstDescMask);
    return described == (p_.param[0] == 0);
  }

  bool vector_params_ok() const {
    const VectorProgram* program = program_of(p_);
    if (program == nullptr) return false;
    const bool described[] = {flag(kSrc1DescMask), flag(kSrc2DescMask), flag(kSrc3DescMask)};
    const auto end = described + program->sources;
    if (p_.param[kVectorCount] == 0)
      return flag(kDstDescMask) && std::find(described, end, false) == end;
    return !flag(kDstDescMask) && std::find(described, end, true) == end &&
           program->reduce == Reduce::kNone;
  }

  using Shape = std::vector<uint32_t>;
  Shape shape(bool trans, uint32_t rows, uint32_t cols) const {
    return trans ? Shape{p_.param[kMatmulBatch], cols, rows}
                 : Shape{p_.param[kMatmulBatch], rows, cols};
  }

  bool src1() {
    if (is(Opcode::kMatmul))
      return operand(p_.src1, flag(kSrc1DescMask), src_dtype(), false,
                     shape(flag(kTransAMask), p_.param[kMatmulM], p_.param[kMatmulK]),
                     flag(kTransAMask), v_.src1);
    if (is(Opcode::kCopy))
      return operand(p_.src1, flag(kSrc1DescMask), src_dtype(), false, moved(), false, v_.src1);
    if (indexed()) return operand(p_.src1, true, src_dtype(), false, {}, false, v_.src1);
    return !has_source(1) ||
           operand(p_.src1, flag(kSrc1DescMask), src_dtype(), false, streamed(), false, v_.src1);
  }
  bool src2() {
    if (is(Opcode::kMatmul))
      return operand(p_.src2, flag(kSrc2DescMask), src_dtype(), false,
                     shape(flag(kTransBMask), p_.param[kMatmulK], p_.param[kMatmulN]),
                     flag(kTransBMask), v_.src2);
    if (indexed()) {
      // GATHER: src1's sizes but for the dimension; SCATTER: src1's sizes.
      free_dim_ = is(Opcode::kGather);
      return operand(p_.src2, true, src2_dtype(), false, last_shape_, false, v_.src2);
    }
    return !has_source(2) ||
           operand(p_.src2, flag(kSrc2DescMask), src2_dtype(), false, streamed(), false, v_.src2);
  }
  bool src3() {
    return !has_source(3) || operand(src3_addr(), flag(kSrc3DescMask), src3_dtype(), false,
                                     streamed(), false, v_.src3);
  }
  bool dst() {
    if (is(Opcode::kMatmul))
      return operand(p_.dst, flag(kDstDescMask), dst_dtype(), true,
                     shape(false, p_.param[kMatmulM], p_.param[kMatmulN]), false, v_.dst);
    if (is(Opcode::kCopy) || is(Opcode::kFill))
      return operand(p_.dst, flag(kDstDescMask), dst_dtype(), true, moved(), false, v_.dst);
    if (is(Opcode::kVector)) {
      Shape expected = streamed();
      const bool reduces = program_of(p_)->reduce != Reduce::kNone;
      if (reduces && !expected.empty()) expected.back() = 1;
      return operand(p_.dst, flag(kDstDescMask), dst_dtype(), true, expected, false, v_.dst);
    }
    if (indexed()) {
      // GATHER: src2's sizes; SCATTER: src1's, which are src2's, but for the dimension.
      free_dim_ = is(Opcode::kScatter);
      v_.dim = kMaxRank - unsigned(last_shape_.size()) + p_.param[kGatherDim];
      return operand(p_.dst, true, dst_dtype(), true, last_shape_, false, v_.dst);
    }
    return !is(Opcode::kSync) ||
           operand(p_.dst, false, uint32_t(DType::kInt32), true, Shape{1}, false, v_.dst);
  }
  // The shape of COPY and FILL: from the first descriptor, else from the count; empty: not known
  // yet.
  Shape moved() const {
    if (!flag(kSrc1DescMask) && !flag(kDstDescMask)) return {p_.param[0]};
    return last_shape_;
  }
  // That of VECTOR, likewise.
  Shape streamed() const {
    const uint32_t count = p_.param[kVectorCount];
    return count != 0 ? Shape{count} : last_shape_;
  }

  bool fail(ErrorCode code) {
    v_.error = code;
    return false;
  }

  bool operand(uint64_t addr, bool described, uint32_t dtype, bool is_dst, Shape expected,
               bool transposed, View& view) {
    std::vector<uint64_t> strides;
    const unsigned element = kDTypeBytes[dtype];
    if (described) {
      if (addr % 64) return fail(ErrorCode::kMisaligned);
      if (addr < kMemBase || addr > kMemLimit - 64) return fail(ErrorCode::kOutOfRange);
      if (memory_.error_at(addr)) return fail(ErrorCode::kBusRead);
      const auto desc = memory_.get<Descriptor>(addr);
      if (!sound(desc, dtype, is_dst, expected)) return fail(ErrorCode::kBadDescriptor);
      addr = desc.base;
      expected.assign(desc.size.begin(), desc.size.begin() + desc.rank);
      strides.assign(desc.stride.begin(), desc.stride.begin() + desc.rank);
      last_shape_ = expected;
    } else {
      strides.resize(expected.size());
      unsigned __int128 step = 1;
      for (size_t i = expected.size(); i-- > 0; step *= expected[i]) {
        if (step >> 32 && expected[i] > 1)
          return fail(addr % element ? ErrorCode::kMisaligned : ErrorCode::kOutOfRange);
        strides[i] = expected[i] > 1 ? uint64_t(step) : 0;
        if (step >> 32) step = (unsigned __int128)1 << 32;  // only outer sizes of 1 may follow
      }
    }
    if (addr % element) return fail(ErrorCode::kMisaligned);
    unsigned __int128 last = addr + (unsigned __int128)(element - 1);
    for (size_t i = 0; i < expected.size(); ++i)
      last += (unsigned __int128)(expected[i] - 1) * strides[i] * element;
    if (addr < kMemBase || last >= kMemLimit) return fail(ErrorCode::kOutOfRange);
    view = inner(addr, expected, strides);
    if (transposed) {
      std::swap(view.size[3], view.size[4]);
      std::swap(view.stride[3], view.stride[4]);
    }
    return true;
  }

  bool sound(const Descriptor& desc, uint32_t dtype, bool is_dst, const Shape& expected) const {
    if (desc.reserved || desc.rank < 1 || desc.rank > kMaxRank || desc.dtype != dtype) return false;
    for (unsigned i = 0; i < kMaxRank; ++i) {
      if (i >= desc.rank && (desc.size[i] || desc.stride[i])) return false;
      if (i < desc.rank && desc.size[i] == 0) return false;
      if (is_dst && desc.size[i] > 1 && desc.stride[i] == 0) return false;
    }
    const uint32_t dim = p_.param[kGatherDim];
    if (indexed() && dim >= desc.rank) return false;
    Shape sizes(desc.size.begin(), desc.size.begin() + desc.rank);
    if (expected.size() == sizes.size() && free_dim_) sizes[dim] = expected[dim];
    return expected.empty() || sizes == expected;
  }

  static View inner(uint64_t base, const Shape& sizes, const std::vector<uint64_t>& strides) {
    View view{base, {1, 1, 1, 1, 1}, {}};
    for (size_t i = 0; i < sizes.size(); ++i) {
      view.size[kMaxRank - sizes.size() + i] = sizes[i];
      view.stride[kMaxRank - sizes.size() + i] = uint32_t(strides[i]);
    }
    return view;
  }

  const Memory& memory_;
  const Packet& p_;
  Verdict v_;
  Shape last_shape_;       // of the descriptor before
  bool free_dim_ = false;  // the dimension's size is the descriptor's own
};
