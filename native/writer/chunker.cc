#include "native/writer/chunker.h"

#include <utility>

#include "native/base/status.h"

namespace gear_reverb::writer {

Chunker::Chunker(std::shared_ptr<CellScope> scope, int64_t column, const ChunkerOptions& options,
                 base::Philox* keys)
    : scope_(std::move(scope)),
      column_(column),
      keys_(keys),
      options_(options),
      tuner_(options.num_keep_alive_refs, options.throughput_weight) {}

absl::Status Chunker::Check(const tensor::TensorView& value, StepId step) const {
  if (last_step_ == step) {
    return base::InvalidArgument(
        "A value has already been set in the active step by an earlier "
        "(partial) append for column ",
        column_, ".");
  }
  if (!spec_.has_value()) return absl::OkStatus();
  if (value.dtype != spec_->dtype) {
    return base::InvalidArgument("Tensor of wrong dtype provided for column ", column_, ". Got ",
                                 tensor::Name(value.dtype), " but expected ",
                                 tensor::Name(spec_->dtype), ".");
  }
  if (value.shape != spec_->shape) {
    return base::InvalidArgument("Tensor of incompatible shape provided for column ", column_,
                                 ". Got ", tensor::ShapeString(value.shape),
                                 " which is incompatible with ", tensor::ShapeString(spec_->shape),
                                 ".");
  }
  return absl::OkStatus();
}

absl::Status Chunker::Reserve(const tensor::TensorView& value, StepId step) {
  if (!HasOpenChunk() || open_->steps() == 0) {  // An empty one may be of another step's spec.
    const int64_t length = options_.auto_tuned ? tuner_.length() : options_.max_chunk_length;
    open_ = std::make_shared<ChunkBuilder>(keys_->Next(), step.episode_id, length,
                                           absl::MakeConstSpan(&value, 1));
  }
  return open_->Reserve(absl::MakeConstSpan(&value, 1));
}

std::shared_ptr<CellRef> Chunker::Append(const tensor::TensorView& value, StepId step) {
  auto cell =
      std::make_shared<CellRef>(scope_, column_, open_, static_cast<int32_t>(open_->steps()));
  open_->Append(absl::MakeConstSpan(&value, 1), step.index);
  if (!spec_.has_value()) spec_ = Spec{value.dtype, value.shape};
  last_step_ = step;
  tuner_.OnStep(value.data.size());
  cells_.push_back(cell);
  ExpireBeyond(options_.num_keep_alive_refs);
  return cell;
}

absl::Status Chunker::Finish() {
  if (open_ == nullptr) return absl::OkStatus();
  const absl::Status finished = open_->Finish();
  open_ = nullptr;
  return finished;
}

absl::Status Chunker::Configure(const ChunkerOptions& options) {
  if (HasOpenChunk() && open_->steps() > 0) {
    return base::FailedPrecondition("Flush must be called before ApplyConfig. Column ", column_,
                                    " has a chunk under construction with ", open_->steps(),
                                    " steps.");
  }
  open_ = nullptr;
  if (options == options_) return absl::OkStatus();
  options_ = options;
  tuner_ = ChunkLengthTuner(options.num_keep_alive_refs, options.throughput_weight);
  ExpireBeyond(options_.num_keep_alive_refs);
  return absl::OkStatus();
}

void Chunker::ExpireAll() { ExpireBeyond(0); }

void Chunker::ExpireBeyond(size_t count) {
  for (; cells_.size() > count; cells_.pop_front()) cells_.front()->chunk_ = nullptr;
}

}  // namespace gear_reverb::writer
