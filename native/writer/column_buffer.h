// The steps of one column of a chunk that is still being filled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "native/memory/arena.h"
#include "native/storage/chunk.h"
#include "native/tensor/tensor_view.h"

namespace gear_reverb::writer {

// A tensor that owns its bytes (packed for strings).
struct TensorCopy {
  tensor::DType dtype = tensor::DType::kInvalid;
  tensor::Shape shape;
  std::string bytes;

  tensor::TensorView view() const {
    return {dtype, shape, {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}};
  }
};

// INVALID_ARGUMENT unless the view's bytes fit its dtype and shape.
absl::Status CheckTensor(const tensor::TensorView& view);

// Thread-compatible, movable. Dense steps are copied once, straight into the block that becomes
// the chunk's; only a chunk that is cut short is copied again, into a block of its size. Strings
// are packed when the chunk is finished.
class ColumnBuffer {
 public:
  static constexpr int64_t kMaxBytes = UINT32_MAX;  // As a chunk has it.

  // `step_shape` has no axis for time. At most `max_steps` steps will be appended.
  ColumnBuffer(tensor::DType dtype, tensor::Shape step_shape, int64_t max_steps);

  // Makes room for one more step, which is a checked tensor of this dtype and shape.
  // RESOURCE_EXHAUSTED where there is no memory, INVALID_ARGUMENT for a step of more than
  // kMaxBytes; the content is unchanged either way.
  absl::Status Reserve(const tensor::TensorView& step);
  // After Reserve(step).
  void Append(const tensor::TensorView& step);

  // Step `index` < steps().
  TensorCopy Read(int64_t index) const;

  // The whole column, [steps, ...]; the buffer is spent afterwards (unchanged on error).
  absl::StatusOr<storage::ChunkColumn> Release();

  tensor::DType dtype() const { return dtype_; }
  const tensor::Shape& step_shape() const { return step_shape_; }
  int64_t steps() const { return steps_; }

 private:
  bool strings() const { return dtype_ == tensor::DType::kString; }
  absl::Status GrowDense();
  std::string PackedStrings(int64_t first_step, int64_t num_steps) const;

  tensor::DType dtype_;
  tensor::Shape step_shape_;
  int64_t max_steps_;
  int64_t step_elements_;
  int64_t step_bytes_;  // 0 for strings.
  int64_t steps_ = 0;

  memory::Block block_;  // Dense: room for `capacity_` steps.
  int64_t capacity_ = 0;
  std::string text_;            // Strings: all elements one after another …
  std::vector<uint64_t> ends_;  // … and where each ends.
};

}  // namespace gear_reverb::writer
