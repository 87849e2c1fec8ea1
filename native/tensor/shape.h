// Shapes of tensors, in elements per axis, outermost first.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/tensor/dtype.h"

namespace gear_reverb::tensor {

using Shape = absl::InlinedVector<int64_t, 4>;

// Product of the axes (1 for a scalar). INVALID_ARGUMENT for a negative axis or an overflow.
absl::StatusOr<int64_t> NumElements(absl::Span<const int64_t> shape);

// Bytes of a dense tensor. INVALID_ARGUMENT for a negative axis, an overflow, or a dtype
// without a fixed element size (strings).
absl::StatusOr<int64_t> NumBytes(DType dtype, absl::Span<const int64_t> shape);

// "[3,-1,2]".
std::string ShapeString(absl::Span<const int64_t> shape);

}  // namespace gear_reverb::tensor
