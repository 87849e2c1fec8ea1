#include "native/writer/scalar_value.h"

#include <cstring>
#include <limits>

namespace gear_reverb::writer {
namespace {

using tensor::DType;

template <typename T>
T Load(const tensor::TensorView& tensor) {
  T value;
  std::memcpy(&value, tensor.data.data(), sizeof(T));
  return value;
}

bool HasOneElement(const tensor::TensorView& tensor) {
  for (const int64_t size : tensor.shape) {
    if (size != 1) return false;
  }
  return tensor.data.size() == tensor::ByteSize(tensor.dtype);
}

}  // namespace

std::optional<int64_t> IntegerOf(const tensor::TensorView& tensor) {
  if (!HasOneElement(tensor)) return std::nullopt;
  switch (tensor.dtype) {
    case DType::kBool: return Load<uint8_t>(tensor) != 0;
    case DType::kInt8: return Load<int8_t>(tensor);
    case DType::kInt16: return Load<int16_t>(tensor);
    case DType::kInt32: return Load<int32_t>(tensor);
    case DType::kInt64: return Load<int64_t>(tensor);
    case DType::kUint8: return Load<uint8_t>(tensor);
    case DType::kUint16: return Load<uint16_t>(tensor);
    case DType::kUint32: return Load<uint32_t>(tensor);
    case DType::kUint64: {
      constexpr uint64_t max = std::numeric_limits<int64_t>::max();
      const uint64_t value = Load<uint64_t>(tensor);
      return static_cast<int64_t>(value < max ? value : max);
    }
    default: return std::nullopt;
  }
}

std::optional<double> NumberOf(const tensor::TensorView& tensor) {
  if (!tensor.shape.empty() || !HasOneElement(tensor)) return std::nullopt;
  switch (tensor.dtype) {
    case DType::kFloat32: return Load<float>(tensor);
    case DType::kFloat64: return Load<double>(tensor);
    case DType::kInt32: return Load<int32_t>(tensor);
    case DType::kInt64: return static_cast<double>(Load<int64_t>(tensor));
    default: return std::nullopt;
  }
}

}  // namespace gear_reverb::writer
