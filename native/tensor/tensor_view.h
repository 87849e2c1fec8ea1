// A borrowed, dense, C-order tensor. Owns nothing: `data` must outlive the view.
#pragma once

#include <cstddef>

#include "absl/types/span.h"
#include "native/tensor/dtype.h"
#include "native/tensor/shape.h"

namespace gear_reverb::tensor {

// The bytes of a string tensor of n elements are "packed": n + 1 little-endian uint64 offsets
// (ascending, the first 0), then the text; element i is text[offset[i], offset[i + 1]).
struct TensorView {
  DType dtype = DType::kInvalid;
  Shape shape;
  absl::Span<const std::byte> data;
};

}  // namespace gear_reverb::tensor
