// SPDX-License-Identifier: Apache-2.0
// The zlib functions that Verilator's FST writer calls, for machines without zlib's headers.
//
// Output is a zlib stream (RFC 1950) of stored blocks (RFC 1951, 3.2.4): valid, not smaller; the
// writer keeps the original where compression does not pay. Searched after the system's headers.
#pragma once

#include <cstdint>
#include <cstring>

using Bytef = unsigned char;
using uLong = unsigned long;
using uLongf = unsigned long;

inline constexpr int Z_OK = 0;
inline constexpr int Z_BUF_ERROR = -5;

namespace npu_zlib {

inline constexpr uLong kBlock = 65535;
inline constexpr uLong kAdlerModulus = 65521;

inline std::uint32_t adler32(const Bytef* data, uLong size) {
  uLong low = 1;
  uLong high = 0;
  for (uLong i = 0; i < size; ++i) {
    low = (low + data[i]) % kAdlerModulus;
    high = (high + low) % kAdlerModulus;
  }
  return static_cast<std::uint32_t>((high << 16) | low);
}

}  // namespace npu_zlib

inline uLong compressBound(uLong size) { return size + 5 * (size / npu_zlib::kBlock + 1) + 6; }

inline int compress2(Bytef* to, uLongf* to_size, const Bytef* from, uLong size, int /*level*/) {
  if (*to_size < compressBound(size)) return Z_BUF_ERROR;
  Bytef* out = to;
  *out++ = 0x78;
  *out++ = 0x01;
  uLong done = 0;
  do {
    const uLong block = size - done < npu_zlib::kBlock ? size - done : npu_zlib::kBlock;
    *out++ = done + block == size ? 1 : 0;
    *out++ = static_cast<Bytef>(block & 0xFF);
    *out++ = static_cast<Bytef>(block >> 8);
    *out++ = static_cast<Bytef>(~block & 0xFF);
    *out++ = static_cast<Bytef>((~block >> 8) & 0xFF);
    std::memcpy(out, from + done, block);
    out += block;
    done += block;
  } while (done < size);
  const std::uint32_t sum = npu_zlib::adler32(from, size);
  for (int shift = 24; shift >= 0; shift -= 8) *out++ = static_cast<Bytef>((sum >> shift) & 0xFF);
  *to_size = static_cast<uLongf>(out - to);
  return Z_OK;
}
