// SPDX-License-Identifier: Apache-2.0
// What the bench writes to the registers and expects to read, by the fields of npu_csr.h.
#pragma once

#include <cstdint>

#include "npu_csr.h"

namespace csr = npu::csr;

// STATUS beside its state.
constexpr uint32_t kRingsEmpty = csr::kStatusRingEmptyMask | csr::kStatusRing1EmptyMask;
constexpr uint32_t kNothingQueued = csr::kStatusCsrQueueEmptyMask | kRingsEmpty;
// Interrupt causes: of the first queue and of errors, and all.
constexpr uint32_t kCauses =
    csr::kIrqStatusCompleteMask | csr::kIrqStatusEmptyMask | csr::kIrqStatusErrorMask;
constexpr uint32_t kAllCauses = kCauses | csr::kIrqStatusComplete1Mask | csr::kIrqStatusEmpty1Mask;

// RING_CTRL and its like for the other rings.
constexpr uint32_t disabled_ring(unsigned log2_entries) {
  return log2_entries << csr::kRingCtrlLog2EntriesLsb;
}
constexpr uint32_t enabled_ring(unsigned log2_entries) {
  return csr::kRingCtrlEnableMask | disabled_ring(log2_entries);
}
