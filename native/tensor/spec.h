// What a table's signature says of one column.
#pragma once

#include <string>
#include <vector>

#include "native/tensor/dtype.h"
#include "native/tensor/shape.h"

namespace gear_reverb::tensor {

struct TensorSpec {
  std::string path;  // Where the leaf stands in the signature's nest: "a/0/b"; "" for a lone leaf.
  std::string name;
  DType dtype = DType::kInvalid;
  bool unknown_rank = false;
  Shape shape;  // -1: any size.
};

// A signature's leaves in the order of the flattened nest.
using Signature = std::vector<TensorSpec>;

// "float32[2,-1]".
std::string ToString(const TensorSpec& spec);

// Whether a tensor of this dtype and shape fits: equal dtype, equal rank, equal axes or -1.
bool Fits(const TensorSpec& spec, DType dtype, absl::Span<const int64_t> shape);

}  // namespace gear_reverb::tensor
