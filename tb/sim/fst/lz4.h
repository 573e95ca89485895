// SPDX-License-Identifier: Apache-2.0
// The two LZ4 functions that Verilator's FST writer calls, for machines without liblz4's headers.
//
// Output is the LZ4 block format (github.com/lz4/lz4, doc/lz4_Block_format.md): greedy matching
// over a hash of four bytes, without liblz4's speed. Searched after the system's headers.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace npu_lz4 {

inline constexpr int kMinMatch = 4;
inline constexpr int kLastLiterals = 5;     // the format ends in at least so many literals
inline constexpr int kMatchSafeguard = 12;  // and starts no match so close to the end
inline constexpr int kMaxDistance = 0xFFFF;
inline constexpr unsigned kHashBits = 14;

inline std::uint32_t load(const char* at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

inline std::uint32_t hash(std::uint32_t word) { return (word * 2654435761U) >> (32 - kHashBits); }

// The part of a length that its 4-bit field does not hold.
inline char* put_length(char* to, int rest) {
  for (; rest >= 255; rest -= 255) *to++ = static_cast<char>(255);
  *to++ = static_cast<char>(rest);
  return to;
}

// Literals, then a match of `match` bytes at `distance`; no match when `match` is 0.
inline char* put_sequence(char* to, const char* literals, int count, int match, int distance) {
  char* const token = to++;
  const int low = match == 0 ? 0 : match - kMinMatch;
  *token = static_cast<char>(((count < 15 ? count : 15) << 4) | (low < 15 ? low : 15));
  if (count >= 15) to = put_length(to, count - 15);
  std::memcpy(to, literals, static_cast<std::size_t>(count));
  to += count;
  if (match == 0) return to;
  *to++ = static_cast<char>(distance & 0xFF);
  *to++ = static_cast<char>(distance >> 8);
  return low >= 15 ? put_length(to, low - 15) : to;
}

}  // namespace npu_lz4

inline int LZ4_compressBound(int size) { return size + size / 255 + 16; }

// Bytes written. `capacity` must be LZ4_compressBound(size), which always suffices.
inline int LZ4_compress_default(const char* from, char* to, int size, int capacity) {
  using namespace npu_lz4;
  if (capacity < LZ4_compressBound(size)) return 0;
  std::vector<std::int32_t> seen(std::size_t{1} << kHashBits, -1);
  char* out = to;
  int anchor = 0;
  int at = 0;
  while (at < size - kMatchSafeguard) {
    const std::uint32_t word = load(from + at);
    std::int32_t& slot = seen[hash(word)];
    const int candidate = slot;
    slot = at;
    if (candidate < 0 || at - candidate > kMaxDistance || load(from + candidate) != word) {
      ++at;
      continue;
    }
    int match = kMinMatch;
    while (at + match < size - kLastLiterals && from[candidate + match] == from[at + match]) {
      ++match;
    }
    out = put_sequence(out, from + anchor, at - anchor, match, at - candidate);
    at += match;
    anchor = at;
  }
  out = put_sequence(out, from + anchor, size - anchor, 0, 0);
  return static_cast<int>(out - to);
}
