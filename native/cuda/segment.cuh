// How a group of lanes writes a segment: consecutive source bytes to consecutive output bytes, both
// at any alignment, by 16-byte loads and stores and, at both ends, single elements.
//
// Loads are of aligned 16-byte words, neighbouring lanes take neighbouring words, from whole lines
// of 128 bytes on: where source and output are aligned differently, a lane puts its output together
// from its own word and its neighbour's, and one word in 128 is loaded twice.
#pragma once

#include <cstdint>

#include "native/cuda/intrinsics.cuh"
#include "native/device/gather_rows.h"

namespace gear_reverb::cuda {

using device::RowKind;

constexpr uint32_t kWord = 16;      // Bytes.
constexpr uint32_t kInFlight = 4;   // Words that a lane loads before it stores the first.
constexpr uint32_t kLineWords = 8;  // Of what memory, and the link to the host's, give at once.

// A number of neighbouring lanes of a warp, a power of two, that work together.
template <uint32_t kSize>
struct Lanes {
  uint32_t rank;  // Of this lane in the group.
  uint32_t mask;  // The group's lanes in the warp.

  static __device__ Lanes OfWarpLane(uint32_t lane) {
    if constexpr (kSize == 32) {
      return {lane, ~0u};
    } else {
      return {lane % kSize, ((1u << kSize) - 1) << (lane / kSize * kSize)};
    }
  }
  __device__ uint4 Get(uint4 value, uint32_t from) const {
    return {__shfl_sync(mask, value.x, from, kSize), __shfl_sync(mask, value.y, from, kSize),
            __shfl_sync(mask, value.z, from, kSize), __shfl_sync(mask, value.w, from, kSize)};
  }
};

__device__ inline float ToUnit(uint32_t byte) {
  return __fmul_rn(__uint2float_rn(byte & 0xff), 1.0f / 255.0f);
}

// Output bytes of 16 source bytes.
__device__ inline uint32_t OutputOfWord(RowKind kind) {
  return kWord / device::SourceBytes(kind) * device::OutputBytes(kind);
}

// Writes what 16 source bytes become; `to` is aligned to that, or to 16 if that is more. All lanes
// have the same kind.
__device__ inline void StoreCast(RowKind kind, uint4 word, std::byte* to) {
  if (kind == RowKind::kCopy) {
    *reinterpret_cast<uint4*>(to) = word;
  } else if (kind == RowKind::kFloat32ToBfloat16) {
    *reinterpret_cast<uint2*>(to) = {PackBfloat16(word.x, word.y), PackBfloat16(word.z, word.w)};
  } else if (kind == RowKind::kFloat32ToFloat16) {
    *reinterpret_cast<uint2*>(to) = {PackFloat16(__uint_as_float(word.x), __uint_as_float(word.y)),
                                     PackFloat16(__uint_as_float(word.z), __uint_as_float(word.w))};
  } else {
    const auto pair = [](uint32_t bytes) {
      return uint2{PackFloat16(ToUnit(bytes), ToUnit(bytes >> 8)),
                   PackFloat16(ToUnit(bytes >> 16), ToUnit(bytes >> 24))};
    };
    const uint2 a = pair(word.x), b = pair(word.y), c = pair(word.z), d = pair(word.w);
    reinterpret_cast<uint4*>(to)[0] = {a.x, a.y, b.x, b.y};
    reinterpret_cast<uint4*>(to)[1] = {c.x, c.y, d.x, d.y};
  }
}

// One element; neither side need be aligned but `to` to the output's element.
__device__ inline void CastElement(RowKind kind, const std::byte* from, std::byte* to) {
  if (kind == RowKind::kCopy) {
    *to = *from;
    return;
  }
  uint32_t cast;
  if (kind == RowKind::kUint8ToFloat16) {
    cast = PackFloat16(ToUnit(static_cast<uint32_t>(*from)), 0.0f);
  } else {
    const uint32_t value = static_cast<uint32_t>(from[0]) | static_cast<uint32_t>(from[1]) << 8 |
                           static_cast<uint32_t>(from[2]) << 16 |
                           static_cast<uint32_t>(from[3]) << 24;
    cast = kind == RowKind::kFloat32ToBfloat16 ? PackBfloat16(value, 0)
                                               : PackFloat16(__uint_as_float(value), 0.0f);
  }
  *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(cast);
}

// 16 bytes of the 32 of `low` and `high`, from byte `shift` < 16 on.
__device__ inline uint4 Shifted(uint4 low, uint4 high, uint32_t shift) {
  const bool two = (shift & 8) != 0, one = (shift & 4) != 0;
  const uint32_t a = two ? low.z : low.x, b = two ? low.w : low.y, c = two ? high.x : low.z,
                 d = two ? high.y : low.w, e = two ? high.z : high.x, f = two ? high.w : high.y;
  const uint32_t p = one ? b : a, q = one ? c : b, r = one ? d : c, s = one ? e : d,
                 t = one ? f : e;
  const uint32_t bits = (shift & 3) * 8;
  return {__funnelshift_r(p, q, bits), __funnelshift_r(q, r, bits), __funnelshift_r(r, s, bits),
          __funnelshift_r(s, t, bits)};
}

// The aligned part of a segment: `words` times 16 source bytes.
template <uint32_t kSize>
__device__ inline void WriteWords(Lanes<kSize> lanes, RowKind kind, const std::byte* from,
                                  uint32_t words, std::byte* to) {
  if (words == 0) return;
  const uint32_t out = OutputOfWord(kind);
  const auto shift = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) % kWord);
  const auto* const source = reinterpret_cast<const uint4*>(from - shift);
  // An unaligned source reaches into one more word.
  const uint32_t source_words = words + (shift != 0 ? 1 : 0);
  // Rounds begin at whole lines, so that no line is asked for twice; the indices before the first
  // word are above all others, being unsigned.
  const auto lead = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(source) / kWord % kLineWords);
  const auto end = static_cast<int32_t>(words);
  for (auto block = -static_cast<int32_t>(lead); block < end; block += kInFlight * kSize) {
    const uint32_t first = static_cast<uint32_t>(block) + lanes.rank;
    uint4 word[kInFlight + 1];
#pragma unroll
    for (uint32_t i = 0; i <= kInFlight; ++i) {
      const uint32_t index = first + i * kSize;
      // Of the word after the block's last only lane 0 has need, to give it to the last lane.
      const bool needed = i < kInFlight || (lanes.rank == 0 && shift != 0);
      word[i] = needed && index < source_words ? __ldcs(source + index) : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (uint32_t i = 0; i < kInFlight; ++i) {
      // The neighbour's word; the last lane's neighbour is lane 0, one round later.
      const uint4 next =
          lanes.Get(lanes.rank == 0 ? word[i + 1] : word[i], (lanes.rank + 1) % kSize);
      const uint32_t index = first + i * kSize;
      if (index < words) StoreCast(kind, Shifted(word[i], next, shift), to + index * out);
    }
  }
}

// `bytes` <= kTileBytes of the source.
template <uint32_t kSize>
__device__ inline void WriteSegment(Lanes<kSize> lanes, RowKind kind, const std::byte* from,
                                    uint32_t bytes, std::byte* to) {
  const uint32_t in = device::SourceBytes(kind), out = device::OutputBytes(kind);
  const uint32_t align = min(OutputOfWord(kind), kWord);
  const uint32_t elements = bytes / in, per_word = kWord / in;
  const uint32_t to_aligned =
      (-static_cast<uint32_t>(reinterpret_cast<uintptr_t>(to)) & (align - 1)) / out;
  const uint32_t head = min(to_aligned, elements);
  const uint32_t words = (elements - head) / per_word;
  WriteWords(lanes, kind, from + head * in, words, to + head * out);
  // The elements before and after the words.
  const uint32_t skipped = words * per_word;
  for (uint32_t i = lanes.rank; i < elements - skipped; i += kSize) {
    const uint32_t element = i < head ? i : i + skipped;
    CastElement(kind, from + element * in, to + element * out);
  }
}

// [begin, end) with one byte throughout, by a whole warp.
__device__ inline void Fill(uint32_t lane, std::byte* begin, std::byte* end, uint32_t value) {
  const auto bytes = static_cast<uint64_t>(end - begin);
  if (bytes == 0) return;
  const uint64_t to_aligned = -reinterpret_cast<uintptr_t>(begin) % kWord;
  const uint64_t head = to_aligned < bytes ? to_aligned : bytes;
  const uint64_t words = (bytes - head) / kWord;
  const uint32_t four = value * 0x01010101u;
  if (lane < head) begin[lane] = static_cast<std::byte>(value);
  auto* const body = reinterpret_cast<uint4*>(begin + head);
  for (uint64_t i = lane; i < words; i += 32) body[i] = {four, four, four, four};
  for (uint64_t i = head + words * kWord + lane; i < bytes; i += 32) {
    begin[i] = static_cast<std::byte>(value);
  }
}

}  // namespace gear_reverb::cuda
