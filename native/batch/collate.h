// How drawn items become one array per column: shapes, bytes, and the copies that fill them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/batch/drawn_batch.h"
#include "native/kernels/gather.h"

namespace gear_reverb::batch {

// What becomes of items whose columns are not equally long.
enum class Ragged {
  kError,  // They are refused.
  kPad,    // [B, T, ...] with the longest item's T, or one that is given; zeros, or empty strings,
           // after the shorter.
  kPack,   // [sum of T, ...]: one item after another.
};

// A batch's column. Squeezed columns are [B, ...] whatever the policy.
struct CollatedColumn {
  tensor::DType dtype = tensor::DType::kInvalid;
  tensor::Shape shape;
  size_t offset = 0;      // In the buffer; a multiple of kColumnAlignment.
  size_t bytes = 0;       // 0 for strings, which lie in no buffer.
  int64_t steps = 0;      // T for kError and kPad, the sum of T for kPack, 1 if squeezed.
  size_t step_bytes = 0;  // 0 for strings.
  int64_t step_elements = 0;
};

struct BatchLayout {
  static constexpr size_t kColumnAlignment = 128;

  Ragged ragged = Ragged::kError;
  std::vector<CollatedColumn> columns;
  size_t buffer_bytes = 0;
};

// `pad_to`: for kPad, T, if that is not to be the longest item's; 0 if it is. INVALID_ARGUMENT: for
// kError, two items whose lengths differ, naming the column and both lengths; for kPad an item that
// is longer than `pad_to`; for any policy, more than `max_bytes` (the text of strings and the masks
// of padding included), or more steps than int32 counts.
absl::StatusOr<BatchLayout> Plan(const DrawnBatch& batch, Ragged ragged, size_t max_bytes,
                                 int64_t pad_to = 0);

// Copies all columns but strings to `buffer`, which has layout.buffer_bytes bytes, and zeroes
// padding.
void Collate(const DrawnBatch& batch, const BatchLayout& layout, std::byte* buffer,
             const kernels::GatherOptions& options = {});

// Whether all columns with a step axis are equally long within each item.
bool LengthsAgree(const DrawnBatch& batch);

// w = (table_size * probability)^-beta, divided by the largest of the batch. `weights` has
// batch.size() elements. INVALID_ARGUMENT, naming the item, for a probability that is not positive.
absl::Status ImportanceWeights(const DrawnBatch& batch, double beta, absl::Span<float> weights);

}  // namespace gear_reverb::batch
