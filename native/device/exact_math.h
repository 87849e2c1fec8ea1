// Floating-point arithmetic that gives the same bits on the host and on a device.
//
// Every operation is one IEEE 754 double operation, rounded to nearest, in an order that the source
// fixes. On the device the intrinsics forbid contraction into a fused multiply-add; on the host
// the whole tree is compiled with -ffp-contract=off. No library function is called, since those
// differ in their last bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "native/base/host_device.h"

namespace gear_reverb::device {

#ifdef __CUDA_ARCH__
GR_HOST_DEVICE double Add(double a, double b) { return __dadd_rn(a, b); }
GR_HOST_DEVICE double Subtract(double a, double b) { return __dsub_rn(a, b); }
GR_HOST_DEVICE double Multiply(double a, double b) { return __dmul_rn(a, b); }
GR_HOST_DEVICE double Divide(double a, double b) { return __ddiv_rn(a, b); }
GR_HOST_DEVICE uint64_t BitsOf(double x) { return __double_as_longlong(x); }
GR_HOST_DEVICE double DoubleOf(uint64_t bits) { return __longlong_as_double(bits); }
#else
GR_HOST_DEVICE double Add(double a, double b) { return a + b; }
GR_HOST_DEVICE double Subtract(double a, double b) { return a - b; }
GR_HOST_DEVICE double Multiply(double a, double b) { return a * b; }
GR_HOST_DEVICE double Divide(double a, double b) { return a / b; }
GR_HOST_DEVICE uint64_t BitsOf(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
GR_HOST_DEVICE double DoubleOf(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}
#endif
GR_HOST_DEVICE uint32_t Add(uint32_t a, uint32_t b) { return a + b; }
GR_HOST_DEVICE uint32_t Subtract(uint32_t a, uint32_t b) { return a - b; }

// The largest double below the positive, finite `x`.
GR_HOST_DEVICE double Below(double x) { return DoubleOf(BitsOf(x) - 1); }

// Results of Power are clamped to this range, so that sums of 2^32 of them stay finite.
inline constexpr double kMinPower = 0x1p-1022;
inline constexpr double kMaxPower = 0x1p+990;

// log2 of a positive, finite `x`, within 2^-51 of max(1, |log2 x|).
GR_HOST_DEVICE double Log2(double x) {
  int exponent = 0;
  if (x < 0x1p-1022) {
    x = Multiply(x, 0x1p+54);
    exponent = -54;
  }
  uint64_t bits = BitsOf(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  bits = (bits & 0xfffffffffffff) | (uint64_t{1023} << 52);
  if (bits > 0x3ff6a09e667f3bcd) {  // The mantissa goes to (sqrt(1/2), sqrt(2)].
    bits -= uint64_t{1} << 52;
    ++exponent;
  }
  // log m = 2 (f + f^3 / 3 + f^5 / 5 + …) for f = (m - 1) / (m + 1), |f| < 0.172.
  const double m = DoubleOf(bits);
  const double f = Divide(Subtract(m, 1.0), Add(m, 1.0));
  const double z = Multiply(f, f);
  double series = 1.0 / 23;
  series = Add(Multiply(series, z), 1.0 / 21);
  series = Add(Multiply(series, z), 1.0 / 19);
  series = Add(Multiply(series, z), 1.0 / 17);
  series = Add(Multiply(series, z), 1.0 / 15);
  series = Add(Multiply(series, z), 1.0 / 13);
  series = Add(Multiply(series, z), 1.0 / 11);
  series = Add(Multiply(series, z), 1.0 / 9);
  series = Add(Multiply(series, z), 1.0 / 7);
  series = Add(Multiply(series, z), 1.0 / 5);
  series = Add(Multiply(series, z), 1.0 / 3);
  series = Add(Multiply(series, z), 1.0);
  constexpr double kTwoOverLn2 = 2.8853900817779268;
  return Add(Multiply(Multiply(f, series), kTwoOverLn2), static_cast<double>(exponent));
}

// 2^y for y in [-1022, 990], within 2^-51 of the value.
GR_HOST_DEVICE double Exp2(double y) {
  const int whole = static_cast<int>(y < 0 ? Subtract(y, 0.5) : Add(y, 0.5));
  const double t = Multiply(Subtract(y, static_cast<double>(whole)), 0.69314718055994531);
  // The exponential series; |t| < 0.35.
  double series = Add(Multiply(t, 1.0 / 15), 1.0);
  series = Add(Multiply(Multiply(t, 1.0 / 14), series), 1.0);
  series = Add(Multiply(Multiply(t, 1.0 / 13), series), 1.0);
  series = Add(Multiply(Multiply(t, 1.0 / 12), series), 1.0);
  series = Add(Multiply(Multiply(t, 1.0 / 11), series), 1.0);
  series = Add(Multiply(Multiply(t, 1.0 / 10), series), 1.0);
  series = Add(Multiply(Multiply(t, 1.0 / 9), series), 1.0);
  series = Add(Multiply(Multiply(t, 1.0 / 8), series), 1.0);
  series = Add(Multiply(Multiply(t, 1.0 / 7), series), 1.0);
  series = Add(Multiply(Multiply(t, 1.0 / 6), series), 1.0);
  series = Add(Multiply(Multiply(t, 1.0 / 5), series), 1.0);
  series = Add(Multiply(Multiply(t, 1.0 / 4), series), 1.0);
  series = Add(Multiply(Multiply(t, 1.0 / 3), series), 1.0);
  series = Add(Multiply(Multiply(t, 1.0 / 2), series), 1.0);
  series = Add(Multiply(t, series), 1.0);
  return Multiply(series, DoubleOf(static_cast<uint64_t>(whole + 1023) << 52));
}

// x^exponent for positive, finite `x` and finite `exponent`, clamped to [kMinPower, kMaxPower].
// The relative error is below 10^-12 (it is that of exponent * log2 x, which is at most 1022, in
// doubles); none for the exponents 0 and 1.
GR_HOST_DEVICE double Power(double x, double exponent) {
  double power = x;
  if (exponent != 1.0) {
    double y = Multiply(exponent, Log2(x));
    y = y < -1022.0 ? -1022.0 : y > 990.0 ? 990.0 : y;
    power = Exp2(y);
  }
  return power < kMinPower ? kMinPower : power > kMaxPower ? kMaxPower : power;
}

}  // namespace gear_reverb::device
