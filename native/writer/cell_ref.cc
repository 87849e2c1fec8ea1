#include "native/writer/cell_ref.h"

#include "native/base/status.h"

namespace gear_reverb::writer {
namespace {

absl::Status Expired() {
  return base::FailedPrecondition("Cannot access data from expired WeakCellRef");
}

}  // namespace

bool CellRef::expired() const {
  base::MutexLock lock(&scope_->mutex);
  return chunk_ == nullptr;
}

absl::StatusOr<tensor::DType> CellRef::dtype() const {
  base::MutexLock lock(&scope_->mutex);
  if (chunk_ == nullptr) return Expired();
  return chunk_->column(0).dtype();
}

absl::StatusOr<tensor::Shape> CellRef::shape() const {
  base::MutexLock lock(&scope_->mutex);
  if (chunk_ == nullptr) return Expired();
  return chunk_->column(0).step_shape();
}

absl::StatusOr<TensorCopy> CellRef::Copy() const {
  base::MutexLock lock(&scope_->mutex);
  if (chunk_ == nullptr) return Expired();
  return chunk_->Read(0, offset_);
}

}  // namespace gear_reverb::writer
