// Element types. Values are TensorFlow's DataType numbers, since those travel on Reverb's wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gear_reverb::tensor {

enum class DType : int32_t {
  kInvalid = 0,
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kUint16 = 17,
  kComplex128 = 18,
  kFloat16 = 19,
  kUint32 = 22,
  kUint64 = 23,
  kFloat8E5M2 = 24,
  kFloat8E4M3FN = 25,
  kFloat8E4M3FNUZ = 26,
  kFloat8E4M3B11FNUZ = 27,
  kFloat8E5M2FNUZ = 28,
};

// Bytes of one element; 0 for strings (variable) and for numbers that are no DType above.
size_t ByteSize(DType dtype);

// NumPy's (or ml_dtypes') name, "string" for strings, "invalid(N)" for unknown numbers.
std::string Name(DType dtype);

// The inverse of Name; kInvalid for unknown names.
DType FromName(const std::string& name);

// Whether `number` is one of the values above, kInvalid excepted.
bool IsKnown(int32_t number);

// Signed and unsigned integers, 8 to 64 bits wide (no bool).
bool IsIntegral(DType dtype);

}  // namespace gear_reverb::tensor
