#include "native/writer/trajectory_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "native/base/status.h"

namespace gear_reverb::writer {
namespace {

absl::Status Closed() {
  return base::FailedPrecondition("TrajectoryWriter::Close has been called.");
}

absl::Status InColumn(size_t column, const std::string& what) {
  return base::InvalidArgument("Error in column ", column, ": ", what);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrajectoryWriter>> TrajectoryWriter::Create(
    std::shared_ptr<InsertStreamFactory> factory, TrajectoryWriterOptions options) {
  GR_RETURN_IF_ERROR(CheckChunkerOptions(options.chunker));
  return std::unique_ptr<TrajectoryWriter>(
      new TrajectoryWriter(std::move(factory), std::move(options)));
}

TrajectoryWriter::TrajectoryWriter(std::shared_ptr<InsertStreamFactory> factory,
                                   TrajectoryWriterOptions options)
    : options_(std::move(options)),
      keys_(base::RandomUint64()),
      step_{.episode_id = keys_.Next()},
      sender_(std::move(factory), options_.sender) {}

TrajectoryWriter::~TrajectoryWriter() { Close(); }

// ------------------------------------------------------------------------------------- appending

absl::StatusOr<TrajectoryWriter::Cells> TrajectoryWriter::Append(const Step& step,
                                                                 absl::Time deadline) {
  return DoAppend(step, /*partial=*/false, deadline);
}

absl::StatusOr<TrajectoryWriter::Cells> TrajectoryWriter::AppendPartial(const Step& step,
                                                                        absl::Time deadline) {
  return DoAppend(step, /*partial=*/true, deadline);
}

absl::StatusOr<TrajectoryWriter::Cells> TrajectoryWriter::DoAppend(const Step& step, bool partial,
                                                                   absl::Time deadline) {
  for (size_t i = 0; i < step.size(); ++i) {
    if (!step[i].has_value()) continue;
    if (absl::Status checked = CheckTensor(*step[i]); !checked.ok()) {
      return base::InvalidArgument(checked.message(), " This was provided for column ", i, ".");
    }
  }
  GR_RETURN_IF_ERROR(sender_.WaitForRoom(deadline));

  base::MutexLock lock(&scope_->mutex);
  if (step_.index == std::numeric_limits<int32_t>::max()) {
    return absl::ResourceExhaustedError("An episode cannot have more than 2^31 - 1 steps.");
  }
  for (size_t i = 0; i < step.size(); ++i) {
    if (step[i].has_value()) GR_RETURN_IF_ERROR(ChunkerOf(i).Check(*step[i], step_));
  }
  for (size_t i = 0; i < step.size(); ++i) {
    if (step[i].has_value()) GR_RETURN_IF_ERROR(ChunkerOf(i).Reserve(*step[i], step_));
  }
  Cells cells(step.size());
  bool finished = false;
  for (size_t i = 0; i < step.size(); ++i) {
    if (!step[i].has_value()) continue;
    Chunker& chunker = ChunkerOf(i);
    cells[i] = chunker.Append(*step[i], step_);
    if (!chunker.full()) continue;
    finished = true;
    if (absl::Status status = chunker.Finish(); !status.ok()) sender_.Fail(status);
  }
  if (!partial) ++step_.index;
  // The step is in; an error met here is the sender's and comes with the next call.
  if (finished) pending_.SubmitReady(sender_).IgnoreError();
  return cells;
}

Chunker& TrajectoryWriter::ChunkerOf(int64_t column) {
  if (column >= static_cast<int64_t>(chunkers_.size())) chunkers_.resize(column + 1);
  std::unique_ptr<Chunker>& chunker = chunkers_[column];
  if (chunker == nullptr) {
    const auto configured = configured_.find(column);
    chunker = std::make_unique<Chunker>(
        scope_, column, configured == configured_.end() ? options_.chunker : configured->second,
        &keys_);
  }
  return *chunker;
}

absl::Status TrajectoryWriter::ConfigureChunker(int64_t column, const ChunkerOptions& options) {
  if (column < 0) return base::InvalidArgument("column must be >= 0 but got ", column, ".");
  GR_RETURN_IF_ERROR(CheckChunkerOptions(options));
  GR_RETURN_IF_ERROR(sender_.status());
  base::MutexLock lock(&scope_->mutex);
  if (column < static_cast<int64_t>(chunkers_.size()) && chunkers_[column] != nullptr) {
    GR_RETURN_IF_ERROR(chunkers_[column]->Configure(options));
  }
  configured_[column] = options;
  return absl::OkStatus();
}

// ----------------------------------------------------------------------------------------- items

absl::Status TrajectoryWriter::CheckColumn(size_t index, const ItemColumn& column) const {
  const auto& [cells, squeeze] = column;
  if (cells.empty()) {
    return base::InvalidArgument("trajectory must not be empty. Column ", index, " has no cells.");
  }
  if (squeeze && cells.size() != 1) {
    return InColumn(index, absl::StrCat("TrajectoryColumn must contain exactly one row when "
                                        "squeeze is set but got ",
                                        cells.size(), "."));
  }
  const ChunkBuilder* chunk = nullptr;  // That of the last cell.
  const ColumnBuffer* first = nullptr;
  for (size_t i = 0; i < cells.size(); ++i) {
    const CellRef* cell = cells[i];
    if (cell == nullptr) return InColumn(index, "Column contains a null CellRef.");
    if (cell->scope_ != scope_) {
      return InColumn(index, "Column contains a CellRef of another writer.");
    }
    if (cell->chunk_ == nullptr) return InColumn(index, "Column contains expired CellRef.");
    if (cell->chunk_.get() == chunk) continue;
    chunk = cell->chunk_.get();
    const ColumnBuffer& source = chunk->column(0);
    if (first == nullptr) first = &source;
    if (source.dtype() != first->dtype()) {
      return InColumn(index, absl::StrCat("Column references tensors with different dtypes: ",
                                          tensor::Name(first->dtype()), " (index 0) != ",
                                          tensor::Name(source.dtype()), " (index ", i, ")."));
    }
    if (source.step_shape() != first->step_shape()) {
      return InColumn(
          index,
          absl::StrCat("Column references tensors with incompatible shapes: ",
                       tensor::ShapeString(first->step_shape()), " (index 0) not compatible with ",
                       tensor::ShapeString(source.step_shape()), " (index ", i, ")."));
    }
  }
  return absl::OkStatus();
}

absl::Status TrajectoryWriter::CreateItem(const std::string& table, double priority,
                                          absl::Span<const ItemColumn> columns,
                                          std::optional<absl::Time> deadline) {
  GR_RETURN_IF_ERROR(sender_.status());
  GR_RETURN_IF_ERROR(CheckPriority(priority));
  if (columns.empty()) return base::InvalidArgument("trajectory must not be empty.");
  std::shared_ptr<const tensor::Signature> signature;
  if (options_.signatures) {
    auto found = options_.signatures(table);
    if (absl::IsNotFound(found.status())) {
      return base::InvalidArgument("Unable to create item in table '", table,
                                   "' since the table could not be found.");
    }
    GR_RETURN_IF_ERROR(found.status());
    signature = *std::move(found);
  }
  if (deadline.has_value()) GR_RETURN_IF_ERROR(sender_.WaitForRoom(*deadline));

  base::MutexLock lock(&scope_->mutex);
  for (size_t i = 0; i < columns.size(); ++i) GR_RETURN_IF_ERROR(CheckColumn(i, columns[i]));
  if (signature != nullptr) {
    absl::InlinedVector<ColumnSpec, 4> specs;
    for (const auto& [cells, squeeze] : columns) {
      const ColumnBuffer& source = cells[0]->chunk_->column(0);
      specs.push_back({source.dtype(), source.step_shape()});
      if (!squeeze) {
        tensor::Shape& shape = specs.back().shape;
        shape.insert(shape.begin(), static_cast<int64_t>(cells.size()));
      }
    }
    GR_RETURN_IF_ERROR(CheckTrajectorySignature(table, *signature, specs));
  }
  PendingItem item{keys_.Next(), table, priority, PendingItem::Columns(columns.size())};
  for (size_t i = 0; i < columns.size(); ++i) {
    item.columns[i].squeeze = columns[i].squeeze;
    for (const CellRef* cell : columns[i].cells) {
      item.columns[i].Add(cell->chunk_, cell->offset_, 1, 0);
    }
  }
  NoteItem(columns);
  // The item is created; an error met here is the sender's and comes with the next call.
  pending_.Push(std::move(item), sender_).IgnoreError();
  return absl::OkStatus();
}

void TrajectoryWriter::NoteItem(absl::Span<const ItemColumn> columns) {
  absl::InlinedVector<std::pair<int64_t, int64_t>, 8> steps;  // (column, its cells).
  for (const auto& [cells, squeeze] : columns) {
    for (const CellRef* cell : cells) {
      if (steps.empty() || steps.back().first != cell->column_) {
        steps.push_back({cell->column_, 0});
      }
      ++steps.back().second;
    }
  }
  std::sort(steps.begin(), steps.end());
  for (size_t i = 0; i < steps.size();) {
    const int64_t column = steps[i].first;
    int64_t count = 0;
    for (; i < steps.size() && steps[i].first == column; ++i) {
      count = std::max(count, steps[i].second);  // The same cells may stand in several columns.
    }
    ChunkerOf(column).OnItem(count);
  }
}

// -------------------------------------------------------------------------------------- flushing

absl::Status TrajectoryWriter::FinishAndSubmit(int64_t ignore_last_num_items, bool all_chunks) {
  absl::Status finished = pending_.FinishAllBut(ignore_last_num_items);
  if (all_chunks) {
    for (const auto& chunker : chunkers_) {
      if (chunker != nullptr) finished.Update(chunker->Finish());
    }
  }
  if (!finished.ok()) {
    sender_.Fail(finished);
    return finished;
  }
  return pending_.SubmitReady(sender_);
}

absl::Status TrajectoryWriter::Flush(int64_t ignore_last_num_items, absl::Time deadline) {
  if (ignore_last_num_items < 0) {
    return base::InvalidArgument("ignore_last_num_items must be >= 0 but got ",
                                 ignore_last_num_items, ".");
  }
  GR_RETURN_IF_ERROR(sender_.status());
  int64_t unsent;
  {
    base::MutexLock lock(&scope_->mutex);
    GR_RETURN_IF_ERROR(FinishAndSubmit(ignore_last_num_items, /*all_chunks=*/false));
    unsent = pending_.size();
  }
  return sender_.WaitUntilAtMost(ignore_last_num_items - unsent, unsent, deadline);
}

absl::Status TrajectoryWriter::EndEpisode(bool clear_buffers, absl::Time deadline) {
  GR_RETURN_IF_ERROR(sender_.status());
  {
    base::MutexLock lock(&scope_->mutex);
    GR_RETURN_IF_ERROR(FinishAndSubmit(0, /*all_chunks=*/true));
  }
  // The episode ends however the wait does.
  const absl::Status waited = sender_.WaitUntilAtMost(0, 0, deadline);
  base::MutexLock lock(&scope_->mutex);
  if (clear_buffers) {
    for (const auto& chunker : chunkers_) {
      if (chunker != nullptr) chunker->ExpireAll();
    }
  }
  step_ = {.episode_id = keys_.Next()};
  return waited;
}

void TrajectoryWriter::Close() {
  sender_.Stop(Closed());
  base::MutexLock lock(&scope_->mutex);
  pending_.Clear();
  for (const auto& chunker : chunkers_) {
    if (chunker != nullptr) chunker->ExpireAll();
  }
}

int64_t TrajectoryWriter::max_num_keep_alive_refs() const {
  base::MutexLock lock(&scope_->mutex);
  int64_t largest = options_.chunker.num_keep_alive_refs;
  for (const auto& [column, options] : configured_) {
    largest = std::max(largest, options.num_keep_alive_refs);
  }
  return largest;
}

int64_t TrajectoryWriter::episode_steps() const {
  base::MutexLock lock(&scope_->mutex);
  return step_.index;
}

}  // namespace gear_reverb::writer
