// A batch as a device gets it: the arrays, where they lie in one output, and the rows that fill
// them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "native/batch/collate.h"
#include "native/device/gather_plan.h"

namespace gear_reverb::device {

// An array in the output.
struct OutputArray {
  tensor::DType dtype = tensor::DType::kInvalid;
  tensor::Shape shape;
  uint64_t offset = 0;  // A multiple of 128.
  uint64_t bytes = 0;
};

// As batches have them on the CPU: see batch::Ragged.
struct OutputSides {
  std::optional<OutputArray> lengths;     // int32[B]
  std::optional<OutputArray> mask;        // bool[B, T]
  std::optional<OutputArray> cu_seqlens;  // int32[B + 1]
};

// What columns of two dtypes become; kInvalid leaves them.
struct Casts {
  tensor::DType float32 = tensor::DType::kInvalid;  // kBfloat16 or kFloat16.
  tensor::DType uint8 = tensor::DType::kInvalid;    // kFloat16, of [0, 1].
};

// How rows of a column are written, and what they become.
struct KindAndDType {
  RowKind kind;
  tensor::DType dtype;
};
KindAndDType CastOf(tensor::DType dtype, const Casts& casts);

// An array at the end of an output of `*bytes` bytes, to which its own are added.
OutputArray PlaceArray(tensor::DType dtype, tensor::Shape shape, uint64_t* bytes);

struct BatchPlan {
  std::vector<OutputArray> columns;  // Those of strings have no place in the output, and 0 bytes.
  // One entry if the items' columns agree in their lengths, else one per column; none for kError.
  std::vector<OutputSides> sides;
  bool lengths_agree = true;

  GatherPlan gather;
  uint64_t output_bytes = 0;
  // What some rows read: lengths and cu_seqlens.
  std::shared_ptr<std::vector<int32_t>> numbers;
};

// Of a batch and the layout that it would have on the CPU, whose limits it has passed.
BatchPlan PlanBatch(const batch::DrawnBatch& batch, const batch::BatchLayout& layout,
                    const Casts& casts);

}  // namespace gear_reverb::device
