// Values of scalars, for what looks into the data.
#pragma once

#include <cstdint>
#include <optional>

#include "native/tensor/tensor_view.h"

namespace gear_reverb::writer {

// The only element of an integer or bool tensor, of any rank; uint64 beyond int64 becomes the
// largest int64. Nullopt for other tensors.
std::optional<int64_t> IntegerOf(const tensor::TensorView& tensor);

// The value of a scalar of float32, float64, int32 or int64. Nullopt for other tensors.
std::optional<double> NumberOf(const tensor::TensorView& tensor);

}  // namespace gear_reverb::writer
