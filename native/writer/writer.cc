#include "native/writer/writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "native/base/status.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::writer {
namespace {

SenderOptions SenderOptionsOf(const WriterOptions& options) {
  SenderOptions sender = options.sender;
  sender.max_in_flight_items = options.max_in_flight_items;
  return sender;
}

absl::Status CheckTensors(absl::Span<const tensor::TensorView> views) {
  for (size_t i = 0; i < views.size(); ++i) {
    if (absl::Status checked = CheckTensor(views[i]); !checked.ok()) {
      return base::InvalidArgument("Tensor at index ", i, ": ", checked.message());
    }
  }
  return absl::OkStatus();
}

std::string SpecText(const tensor::TensorView& view) {
  return absl::StrCat(tensor::Name(view.dtype), tensor::ShapeString(view.shape));
}

// Steps of a [T, ...] column, one at a time. The view given out holds until the next call.
class StepCutter {
 public:
  explicit StepCutter(const tensor::TensorView& column)
      : column_(column),
        step_{column.dtype, tensor::Shape(column.shape.begin() + 1, column.shape.end()), {}} {}

  const tensor::TensorView& Step(int64_t index) {
    const int64_t steps = column_.shape[0];
    if (column_.dtype == tensor::DType::kString) {
      const int64_t elements = tensor::NumElements(step_.shape).value_or(0);
      packed_ = tensor::PackStrings(
          tensor::UnpackStrings(column_.data, steps * elements, index * elements, elements));
      step_.data = {reinterpret_cast<const std::byte*>(packed_.data()), packed_.size()};
    } else {
      const size_t bytes = column_.data.size() / steps;
      step_.data = column_.data.subspan(index * bytes, bytes);
    }
    return step_;
  }

 private:
  const tensor::TensorView& column_;
  tensor::TensorView step_;
  std::string packed_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Writer>> Writer::Create(std::shared_ptr<InsertStreamFactory> factory,
                                                       WriterOptions options) {
  if (options.max_timesteps < 1 || options.max_timesteps > std::numeric_limits<int32_t>::max()) {
    return base::InvalidArgument("max_timesteps (", options.max_timesteps,
                                 ") must be a positive integer < 2^31");
  }
  if (options.chunk_length < 1 || options.chunk_length > options.max_timesteps) {
    return base::InvalidArgument("chunk_length (", options.chunk_length,
                                 ") must be a positive integer le to max_timesteps (",
                                 options.max_timesteps, ")");
  }
  if (options.max_in_flight_items < 1) {
    return base::InvalidArgument("max_in_flight_items (", options.max_in_flight_items,
                                 ") must be a positive integer");
  }
  return std::unique_ptr<Writer>(new Writer(std::move(factory), std::move(options)));
}

Writer::Writer(std::shared_ptr<InsertStreamFactory> factory, WriterOptions options)
    : options_(std::move(options)),
      keys_(base::RandomUint64()),
      episode_id_(keys_.Next()),
      sender_(std::move(factory), SenderOptionsOf(options_)) {}

Writer::~Writer() { sender_.Stop(absl::CancelledError("The writer was destroyed.")); }

absl::Status Writer::CheckOpen(const char* method) const {
  base::MutexLock lock(&mutex_);
  if (!closed_) return absl::OkStatus();
  return base::FailedPrecondition("Calling method ", method, " after Close has been called");
}

// ------------------------------------------------------------------------------------- appending

bool Writer::HasOpenChunk() const {
  return !chunks_.empty() && chunks_.back()->chunk() == nullptr && chunks_.back()->steps() > 0;
}

absl::Status Writer::CheckStep(absl::Span<const tensor::TensorView> step) const {
  if (step.empty()) return base::InvalidArgument("A step must have at least one tensor.");
  if (steps_ >= std::numeric_limits<int32_t>::max()) {
    return absl::ResourceExhaustedError("A writer cannot write more than 2^31 - 1 steps.");
  }
  if (!HasOpenChunk()) return absl::OkStatus();
  const ChunkBuilder& chunk = *chunks_.back();
  const int64_t columns = static_cast<int64_t>(step.size());
  if (columns != chunk.num_columns()) {
    return base::InvalidArgument(
        "Number of tensors per timestep was inconsistent. Previously it "
        "was ",
        chunk.num_columns(), ", but is now ", columns, ".");
  }
  for (int64_t i = 0; i < columns; ++i) {
    const ColumnBuffer& column = chunk.column(i);
    if (step[i].dtype != column.dtype() || step[i].shape != column.step_shape()) {
      return base::InvalidArgument("Tensor at index ", i, " is ", SpecText(step[i]),
                                   " but earlier steps of the chunk have ",
                                   SpecText({column.dtype(), column.step_shape(), {}}), ".");
    }
  }
  return absl::OkStatus();
}

absl::Status Writer::Append(absl::Span<const tensor::TensorView> step) {
  GR_RETURN_IF_ERROR(CheckOpen("Append"));
  GR_RETURN_IF_ERROR(CheckTensors(step));
  GR_RETURN_IF_ERROR(sender_.WaitForRoom(absl::InfiniteFuture()));
  base::MutexLock lock(&mutex_);
  GR_RETURN_IF_ERROR(CheckStep(step));
  return AppendChecked(step);
}

absl::Status Writer::AppendChecked(absl::Span<const tensor::TensorView> step) {
  std::shared_ptr<ChunkBuilder> chunk;
  if (HasOpenChunk()) {
    chunk = chunks_.back();
    GR_RETURN_IF_ERROR(chunk->Reserve(step));
  } else {
    chunk = std::make_shared<ChunkBuilder>(keys_.Next(), episode_id_, options_.chunk_length, step);
    GR_RETURN_IF_ERROR(chunk->Reserve(step));
    chunks_.push_back(chunk);
  }
  chunk->Append(step, static_cast<int32_t>(steps_));
  ++steps_;
  ++buffered_steps_;
  DropOldChunks();
  if (chunk->full()) {
    // The step is in; an error met here is the sender's and comes with the next call.
    if (absl::Status finished = chunk->Finish(); !finished.ok()) sender_.Fail(finished);
    pending_.SubmitReady(sender_).IgnoreError();
  }
  return absl::OkStatus();
}

void Writer::DropOldChunks() {
  while (buffered_steps_ - chunks_.front()->steps() >= options_.max_timesteps) {
    buffered_steps_ -= chunks_.front()->steps();
    chunks_.pop_front();
  }
}

absl::Status Writer::AppendSequence(absl::Span<const tensor::TensorView> sequence) {
  GR_RETURN_IF_ERROR(CheckOpen("AppendSequence"));
  if (sequence.empty()) {
    return base::InvalidArgument("AppendSequence called with empty data.");
  }
  GR_RETURN_IF_ERROR(CheckTensors(sequence));
  std::vector<StepCutter> cutters;
  for (size_t i = 0; i < sequence.size(); ++i) {
    if (sequence[i].shape.empty()) {
      return base::InvalidArgument("AppendSequence called with scalar tensor at index ", i, ".");
    }
    if (sequence[i].shape[0] != sequence[0].shape[0]) {
      return base::InvalidArgument(
          "AppendSequence called with tensors of non equal batch "
          "dimension: 0: ",
          SpecText(sequence[0]), ", ", i, ": ", SpecText(sequence[i]), ".");
    }
    cutters.emplace_back(sequence[i]);
  }
  std::vector<tensor::TensorView> step(sequence.size());
  for (int64_t t = 0; t < sequence[0].shape[0]; ++t) {
    for (size_t i = 0; i < sequence.size(); ++i) step[i] = cutters[i].Step(t);
    GR_RETURN_IF_ERROR(sender_.WaitForRoom(absl::InfiniteFuture()));
    base::MutexLock lock(&mutex_);
    GR_RETURN_IF_ERROR(CheckStep(step));  // Can only fail for the first step.
    GR_RETURN_IF_ERROR(AppendChecked(step));
  }
  return absl::OkStatus();
}

// ----------------------------------------------------------------------------------------- items

absl::Status Writer::CheckItem(const std::string& table, const tensor::Signature* signature,
                               int64_t num_timesteps) const {
  if (num_timesteps > buffered_steps_) {
    return base::InvalidArgument(
        "Argument `num_timesteps` is larger than number of buffered "
        "timesteps. Got ",
        num_timesteps, " but ", buffered_steps_, " are buffered.");
  }
  if (num_timesteps > options_.max_timesteps) {
    return base::InvalidArgument("`num_timesteps` must be <= `max_timesteps` (",
                                 options_.max_timesteps, ") but got ", num_timesteps, ".");
  }
  int64_t end = num_timesteps;  // Offset in the item of the end of the chunk at hand.
  const ChunkBuilder& last = *chunks_.back();
  for (auto chunk = chunks_.rbegin(); end > 0; ++chunk) {
    if ((*chunk)->num_columns() != last.num_columns()) {
      return base::InvalidArgument("The last ", num_timesteps, " steps have ",
                                   (*chunk)->num_columns(), " tensors and ", last.num_columns(),
                                   " tensors.");
    }
    std::vector<ColumnSpec> specs;
    for (int64_t i = 0; i < last.num_columns(); ++i) {
      const ColumnBuffer& column = (*chunk)->column(i);
      if (column.dtype() != last.column(i).dtype() ||
          column.step_shape() != last.column(i).step_shape()) {
        return base::InvalidArgument(
            "The last ", num_timesteps, " steps disagree at index ", i, ": ",
            SpecText({column.dtype(), column.step_shape(), {}}), " and ",
            SpecText({last.column(i).dtype(), last.column(i).step_shape(), {}}), ".");
      }
      specs.push_back({column.dtype(), column.step_shape()});
    }
    end -= (*chunk)->steps();
    if (signature != nullptr) {
      GR_RETURN_IF_ERROR(
          CheckStepSignature(table, *signature, std::max<int64_t>(end, 0), num_timesteps, specs));
    }
  }
  return absl::OkStatus();
}

absl::Status Writer::CreateItem(const std::string& table, int64_t num_timesteps, double priority) {
  GR_RETURN_IF_ERROR(CheckOpen("CreateItem"));
  GR_RETURN_IF_ERROR(sender_.status());
  if (num_timesteps < 1) {
    return base::InvalidArgument("`num_timesteps` must be >= 1 but got ", num_timesteps, ".");
  }
  GR_RETURN_IF_ERROR(CheckPriority(priority));
  std::shared_ptr<const tensor::Signature> signature;
  {
    base::MutexLock lock(&mutex_);
    GR_RETURN_IF_ERROR(CheckItem(table, nullptr, num_timesteps));
  }
  if (options_.signatures) {
    auto found = options_.signatures(table);
    if (absl::IsNotFound(found.status())) return base::InvalidArgument(found.status().message());
    GR_RETURN_IF_ERROR(found.status());
    signature = *std::move(found);
  }
  GR_RETURN_IF_ERROR(sender_.WaitForRoom(absl::InfiniteFuture()));

  base::MutexLock lock(&mutex_);
  GR_RETURN_IF_ERROR(CheckItem(table, signature.get(), num_timesteps));
  const int64_t columns = chunks_.back()->num_columns();
  PendingItem item{keys_.Next(), table, priority, PendingItem::Columns(columns)};
  int64_t skip = buffered_steps_ - num_timesteps;
  for (const auto& chunk : chunks_) {
    const int64_t offset = std::min(skip, chunk->steps());
    skip -= offset;
    if (offset == chunk->steps()) continue;
    for (int64_t i = 0; i < columns; ++i) {
      item.columns[i].Add(chunk, static_cast<int32_t>(offset),
                          static_cast<int32_t>(chunk->steps() - offset), static_cast<int32_t>(i));
    }
  }
  // The item is created; an error met here is the sender's and comes with the next call.
  pending_.Push(std::move(item), sender_).IgnoreError();
  return absl::OkStatus();
}

// --------------------------------------------------------------------------------------- the end

absl::Status Writer::FinishAndWait(absl::Time deadline, absl::Duration max_unavailable) {
  {
    base::MutexLock lock(&mutex_);
    if (absl::Status finished = pending_.FinishAllBut(0); !finished.ok()) {
      sender_.Fail(finished);
      return finished;
    }
    GR_RETURN_IF_ERROR(pending_.SubmitReady(sender_));
  }
  return sender_.WaitUntilAtMost(0, 0, deadline, max_unavailable);
}

absl::Status Writer::Flush(absl::Time deadline) {
  GR_RETURN_IF_ERROR(CheckOpen("Flush"));
  GR_RETURN_IF_ERROR(sender_.status());
  return FinishAndWait(deadline, options_.sender.max_unavailable);
}

absl::Status Writer::Close(bool retry_on_unavailable) {
  GR_RETURN_IF_ERROR(CheckOpen("Close"));
  {
    base::MutexLock lock(&mutex_);
    closed_ = true;
  }
  absl::Status flushed = sender_.status();
  if (flushed.ok()) {
    flushed =
        FinishAndWait(absl::InfiniteFuture(),
                      retry_on_unavailable ? options_.close_max_unavailable : absl::ZeroDuration());
  }
  sender_.Stop(base::FailedPrecondition("Writer::Close has been called."));
  base::MutexLock lock(&mutex_);
  pending_.Clear();
  chunks_.clear();
  buffered_steps_ = 0;
  if (!retry_on_unavailable && absl::IsUnavailable(flushed)) return absl::OkStatus();
  return flushed;
}

int64_t Writer::steps() const {
  base::MutexLock lock(&mutex_);
  return steps_;
}

}  // namespace gear_reverb::writer
