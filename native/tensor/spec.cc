#include "native/tensor/spec.h"

#include "absl/strings/str_cat.h"

namespace gear_reverb::tensor {

std::string ToString(const TensorSpec& spec) {
  return absl::StrCat(Name(spec.dtype),
                      spec.unknown_rank ? "<unknown rank>" : ShapeString(spec.shape));
}

bool Fits(const TensorSpec& spec, DType dtype, absl::Span<const int64_t> shape) {
  if (spec.dtype != dtype) return false;
  if (spec.unknown_rank) return true;
  if (spec.shape.size() != shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (spec.shape[i] != -1 && spec.shape[i] != shape[i]) return false;
  }
  return true;
}

}  // namespace gear_reverb::tensor
