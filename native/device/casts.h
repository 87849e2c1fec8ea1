// Elements cast on their way into a batch; bit for bit what the kernels do.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace gear_reverb::device {

inline uint16_t ToBfloat16(float value) {
  if (std::isnan(value)) return 0x7fff;
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline uint16_t ToFloat16(float value) {
  if (std::isnan(value)) return 0x7fff;
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and more round to infinity.
  if (magnitude < 0x38800000) {                       // Below 2^-14: a multiple of 2^-24, by which
    // adding 0.5 rounds, since floats of [0.5, 1) are multiples of it.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3f000000));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

inline uint16_t UnitToFloat16(uint8_t value) {
  return ToFloat16(static_cast<float>(value) * (1.0f / 255.0f));
}

}  // namespace gear_reverb::device
