// SPDX-License-Identifier: Apache-2.0
// The checks of docs/isa.md on one packet, written from that page and not from the RTL.
#pragma once

#include "device.hpp"
#include "npu_isa.h"

using namespace npu::isa;

struct Verdict {
  ErrorCode error = ErrorCode::kNone;
  View src1{}, src2{}, dst{};
  bool dispatched = false;  // an engine saw it; set by whoever runs the packet
};

class Contract {
 public:
  Contract(const Memory& memory, const Packet& packet) : memory_(memory), p_(packet) {}

  Verdict judge() {
    v_.error = words();
    if (v_.error != ErrorCode::kNone) return v_;
    using Look = bool (Contract::*)();
    const bool dst_first = is(Opcode::kCopy) && !flag(kSrc1DescMask) && flag(kDstDescMask);
    const Look order[2][3] = {{&Contract::src1, &Contract::src2, &Contract::dst},
                              {&Contract::dst, &Contract::src2, &Contract::src1}};
    for (Look look : order[dst_first])
      if (!(this->*look)()) break;
    return v_;
  }

 private:
  bool is(Opcode opcode) const { return p_.opcode == uint32_t(opcode); }
  bool flag(uint32_t mask) const { return (p_.flags & mask) != 0; }
  uint32_t src_dtype() const { return p_.flags & 15; }
  uint32_t dst_dtype() const { return p_.flags >> 4 & 15; }

  ErrorCode words() const {
    const Usage* usage = nullptr;
    for (const auto& operation : kOperations)
      if (is(operation.opcode)) usage = &operation;
    if (usage == nullptr) return ErrorCode::kBadOpcode;
    bool unused = (p_.flags & ~usage->flags) || (!usage->src1 && p_.src1) ||
                  (!usage->src2 && p_.src2) || (!usage->dst && p_.dst);
    for (unsigned i = usage->params; i < kParamCount; ++i) unused |= p_.param[i] != 0;
    if (is(Opcode::kFill) && dst_dtype() < kDTypeBytes.size())
      unused |= uint64_t(p_.param[kFillValue]) >> 8 * kDTypeBytes[dst_dtype()] != 0;
    if (unused) return ErrorCode::kReservedBits;
    if (!dtypes_ok()) return ErrorCode::kBadDtype;
    return params_ok() ? ErrorCode::kNone : ErrorCode::kBadParam;
  }

  bool dtypes_ok() const {
    if (is(Opcode::kMatmul)) {
      for (const auto& pair : kMatmulDTypes)
        if (src_dtype() == uint32_t(pair[0]) && dst_dtype() == uint32_t(pair[1])) return true;
      return false;
    }
    if (is(Opcode::kCopy) && src_dtype() != dst_dtype()) return false;
    return dst_dtype() < kDTypeBytes.size();
  }

  bool params_ok() const {
    if (is(Opcode::kMatmul)) return p_.param[0] && p_.param[1] && p_.param[2] && p_.param[3];
    if (!is(Opcode::kCopy) && !is(Opcode::kFill)) return true;
    const bool described = flag(kSrc1DescMask) || flag(kDstDescMask);
    return described == (p_.param[0] == 0);
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
    return true;
  }
  bool src2() {
    return !is(Opcode::kMatmul) ||
           operand(p_.src2, flag(kSrc2DescMask), src_dtype(), false,
                   shape(flag(kTransBMask), p_.param[kMatmulK], p_.param[kMatmulN]),
                   flag(kTransBMask), v_.src2);
  }
  bool dst() {
    if (is(Opcode::kMatmul))
      return operand(p_.dst, flag(kDstDescMask), dst_dtype(), true,
                     shape(false, p_.param[kMatmulM], p_.param[kMatmulN]), false, v_.dst);
    if (is(Opcode::kCopy) || is(Opcode::kFill))
      return operand(p_.dst, flag(kDstDescMask), dst_dtype(), true, moved(), false, v_.dst);
    return !is(Opcode::kSync) ||
           operand(p_.dst, false, uint32_t(DType::kInt32), true, Shape{1}, false, v_.dst);
  }
  // The shape of COPY and FILL: from the first descriptor, else from the count; empty: not known
  // yet.
  Shape moved() const {
    if (!flag(kSrc1DescMask) && !flag(kDstDescMask)) return {p_.param[0]};
    return first_shape_;
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
      first_shape_ = expected;
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

  static bool sound(const Descriptor& desc, uint32_t dtype, bool is_dst, const Shape& expected) {
    if (desc.reserved || desc.rank < 1 || desc.rank > kMaxRank || desc.dtype != dtype) return false;
    for (unsigned i = 0; i < kMaxRank; ++i) {
      if (i >= desc.rank && (desc.size[i] || desc.stride[i])) return false;
      if (i < desc.rank && desc.size[i] == 0) return false;
      if (is_dst && desc.size[i] > 1 && desc.stride[i] == 0) return false;
    }
    const Shape sizes(desc.size.begin(), desc.size.begin() + desc.rank);
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
  Shape first_shape_;
};
