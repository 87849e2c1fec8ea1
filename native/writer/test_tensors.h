// Short ways to make and read tensors in the tests of writers.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "native/storage/trajectory.h"
#include "native/tensor/packed_strings.h"
#include "native/writer/column_buffer.h"

namespace gear_reverb::writer {

inline TensorCopy Ints(const std::vector<int32_t>& values, const tensor::Shape& shape) {
  TensorCopy tensor{tensor::DType::kInt32, shape,
                    std::string(values.size() * sizeof(int32_t), '\0')};
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

inline TensorCopy Int(int32_t value) { return Ints({value}, {}); }

inline TensorCopy Float(float value) {
  TensorCopy tensor{tensor::DType::kFloat32, {}, std::string(sizeof(value), '\0')};
  std::memcpy(tensor.bytes.data(), &value, sizeof(value));
  return tensor;
}

// A dense uint8 tensor of so many bytes.
inline TensorCopy Bytes(int64_t count, uint8_t value = 0) {
  return {tensor::DType::kUint8, {count}, std::string(count, static_cast<char>(value))};
}

inline TensorCopy Text(const std::vector<std::string>& values, const tensor::Shape& shape) {
  const std::vector<absl::string_view> views(values.begin(), values.end());
  return {tensor::DType::kString, shape, tensor::PackStrings(views)};
}

// The tensor of a column of an item.
inline TensorCopy Gathered(const storage::TrajectoryColumn& column) {
  const storage::ColumnLayout layout = storage::LayoutOf(column);
  TensorCopy tensor{layout.dtype, layout.shape, std::string(layout.bytes, '\0')};
  storage::Gather(column, reinterpret_cast<std::byte*>(tensor.bytes.data()));
  return tensor;
}

inline std::vector<int32_t> IntsOf(const TensorCopy& tensor) {
  std::vector<int32_t> values(tensor.bytes.size() / sizeof(int32_t));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

// The tensor with a leading axis that has all `steps`, which agree in dtype and shape.
inline TensorCopy Stacked(const std::vector<TensorCopy>& steps) {
  TensorCopy all{steps[0].dtype, steps[0].shape, {}};
  all.shape.insert(all.shape.begin(), static_cast<int64_t>(steps.size()));
  std::vector<absl::string_view> strings;
  for (const TensorCopy& step : steps) {
    if (step.dtype != tensor::DType::kString) {
      all.bytes += step.bytes;
      continue;
    }
    const int64_t elements = tensor::NumElements(step.shape).value();
    for (absl::string_view s : tensor::UnpackStrings(step.view().data, elements, 0, elements)) {
      strings.push_back(s);
    }
  }
  if (all.dtype == tensor::DType::kString) all.bytes = tensor::PackStrings(strings);
  return all;
}

inline bool operator==(const TensorCopy& a, const TensorCopy& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes;
}

}  // namespace gear_reverb::writer
