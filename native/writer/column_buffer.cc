#include "native/writer/column_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "native/base/status.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::writer {
namespace {

// A chunk up to this size is allocated at once; a larger one grows towards its size by doubling.
constexpr int64_t kFirstBytes = int64_t{1} << 20;

void CopyBytes(const std::byte* from, int64_t bytes, std::byte* to) {
  if (bytes > 0) std::memcpy(to, from, bytes);  // Pointers may be null where nothing is copied.
}

}  // namespace

absl::Status CheckTensor(const tensor::TensorView& view) {
  if (!tensor::IsKnown(static_cast<int32_t>(view.dtype))) {
    return base::InvalidArgument("Tensor of unknown dtype ", static_cast<int32_t>(view.dtype), ".");
  }
  if (view.dtype == tensor::DType::kString) {
    GR_ASSIGN_OR_RETURN(const int64_t elements, tensor::NumElements(view.shape));
    return tensor::CheckPackedStrings(view.data, elements);
  }
  GR_ASSIGN_OR_RETURN(const int64_t bytes, tensor::NumBytes(view.dtype, view.shape));
  if (static_cast<int64_t>(view.data.size()) != bytes) {
    return base::InvalidArgument("Tensor ", tensor::Name(view.dtype),
                                 tensor::ShapeString(view.shape), " needs ", bytes,
                                 " bytes but has ", view.data.size(), ".");
  }
  return absl::OkStatus();
}

ColumnBuffer::ColumnBuffer(tensor::DType dtype, tensor::Shape step_shape, int64_t max_steps)
    : dtype_(dtype),
      step_shape_(std::move(step_shape)),
      max_steps_(max_steps),
      step_elements_(tensor::NumElements(step_shape_).value_or(0)),
      step_bytes_(step_elements_ * static_cast<int64_t>(tensor::ByteSize(dtype))) {}

absl::Status ColumnBuffer::Reserve(const tensor::TensorView& step) {
  if (step_bytes_ > kMaxBytes) {
    return base::InvalidArgument("A step of ", step_bytes_, " bytes is too large: a column of a ",
                                 "chunk takes 2^32 - 1.");
  }
  if (!strings()) return steps_ < capacity_ ? absl::OkStatus() : GrowDense();
  const size_t elements = ends_.size() + step_elements_;
  if (elements > ends_.capacity()) ends_.reserve(std::max(elements, 2 * ends_.capacity()));
  const size_t text = text_.size() + step.data.size();
  if (text > text_.capacity()) text_.reserve(std::max(text, 2 * text_.capacity()));
  return absl::OkStatus();
}

absl::Status ColumnBuffer::GrowDense() {
  const int64_t first = kFirstBytes / std::max<int64_t>(step_bytes_, 1);
  const int64_t capacity = std::min(max_steps_, std::max({steps_ + 1, 2 * capacity_, first}));
  GR_ASSIGN_OR_RETURN(memory::Block block,
                      memory::ProcessArena()->Allocate(capacity * step_bytes_));
  CopyBytes(block_.data(), steps_ * step_bytes_, block.data());
  block_ = std::move(block);
  capacity_ = capacity;
  return absl::OkStatus();
}

void ColumnBuffer::Append(const tensor::TensorView& step) {
  if (strings()) {
    for (absl::string_view value :
         tensor::UnpackStrings(step.data, step_elements_, 0, step_elements_)) {
      text_.append(value.data(), value.size());
      ends_.push_back(text_.size());
    }
  } else {
    CopyBytes(step.data.data(), step_bytes_, block_.data() + steps_ * step_bytes_);
  }
  ++steps_;
}

std::string ColumnBuffer::PackedStrings(int64_t first_step, int64_t num_steps) const {
  const int64_t begin = first_step * step_elements_;
  std::vector<absl::string_view> values;
  values.reserve(num_steps * step_elements_);
  for (int64_t i = begin; i < begin + num_steps * step_elements_; ++i) {
    const uint64_t from = i == 0 ? 0 : ends_[i - 1];
    values.emplace_back(text_.data() + from, ends_[i] - from);
  }
  return tensor::PackStrings(values);
}

TensorCopy ColumnBuffer::Read(int64_t index) const {
  TensorCopy copy{dtype_, step_shape_, {}};
  if (strings()) {
    copy.bytes = PackedStrings(index, 1);
  } else if (step_bytes_ > 0) {
    copy.bytes.assign(reinterpret_cast<const char*>(block_.data()) + index * step_bytes_,
                      step_bytes_);
  }
  return copy;
}

absl::StatusOr<storage::ChunkColumn> ColumnBuffer::Release() {
  tensor::Shape shape{steps_};
  shape.insert(shape.end(), step_shape_.begin(), step_shape_.end());
  storage::ChunkColumn column(dtype_, shape);
  if (!strings() && steps_ == capacity_) {
    column.data = std::move(block_);
    return column;
  }
  const std::string packed = strings() ? PackedStrings(0, steps_) : std::string();
  const std::byte* from =
      strings() ? reinterpret_cast<const std::byte*>(packed.data()) : block_.data();
  const int64_t bytes = strings() ? packed.size() : steps_ * step_bytes_;
  GR_ASSIGN_OR_RETURN(column.data, memory::ProcessArena()->Allocate(bytes));
  CopyBytes(from, bytes, column.data.data());
  block_ = memory::Block();
  text_ = std::string();
  ends_ = std::vector<uint64_t>();
  return column;
}

}  // namespace gear_reverb::writer
