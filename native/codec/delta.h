// Delta coding along axis 0, as Reverb's legacy writer does it before compression.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "native/tensor/dtype.h"

namespace gear_reverb::codec {

// In place: row i (of axis 0) becomes row i minus row i - 1 in unsigned wrap-around arithmetic of
// the element's width; row 0 stays. Does nothing unless the dtype is integral, the rank at least 2
// and `data` cuts into shape[0] rows of whole elements. `data` needs no alignment.
void DeltaEncode(tensor::DType dtype, absl::Span<const int64_t> shape, absl::Span<std::byte> data);

// The inverse of DeltaEncode.
void DeltaDecode(tensor::DType dtype, absl::Span<const int64_t> shape, absl::Span<std::byte> data);

}  // namespace gear_reverb::codec
