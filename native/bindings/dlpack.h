// DLPack's ABI, as far as it is used here: arrays that frameworks hand to each other.
#pragma once

#include <cstdint>

#include "native/tensor/dtype.h"

namespace gear_reverb::bindings {

struct DlTensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;  // In elements. Null: dense, rows first.
  uint64_t byte_offset;
};
struct DlManagedTensor {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManagedTensor*);
};
constexpr int32_t kDlCuda = 2;
// The name of a capsule that nobody has taken over yet, and of one that somebody has.
constexpr char kFresh[] = "dltensor";
constexpr char kTaken[] = "used_dltensor";

enum DlCode : uint8_t { kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };

// Of dtypes that DLPack cannot name, unsigned integers of their size.
inline DlCode CodeOf(tensor::DType dtype) {
  using tensor::DType;
  switch (dtype) {
    case DType::kBool: return kBool;
    case DType::kBfloat16: return kBfloat;
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64: return kFloat;
    case DType::kComplex64:
    case DType::kComplex128: return kComplex;
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64: return kInt;
    default: return kUint;
  }
}

}  // namespace gear_reverb::bindings
