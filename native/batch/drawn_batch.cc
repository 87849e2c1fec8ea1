#include "native/batch/drawn_batch.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "native/base/prefetch.h"
#include "native/base/status.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::batch {
namespace {

using storage::ChunkColumn;
using storage::ChunkSlice;
using storage::TrajectoryColumn;
using table::SampledItem;
using tensor::DType;

absl::Span<const int64_t> StepShape(const ChunkColumn& column) { return column.shape().subspan(1); }

// Appends one column of one item.
class ColumnAppender {
 public:
  ColumnAppender(size_t index, DrawnColumn* out, const SampledItem& first, size_t items)
      : index_(index), out_(out) {
    const TrajectoryColumn& column = first.item.trajectory->columns[index];
    const ChunkColumn& source = column.slices[0].source();
    const auto step_shape = StepShape(source);
    out_->dtype = source.dtype();
    out_->step_shape.assign(step_shape.begin(), step_shape.end());
    out_->squeezed = column.squeeze;
    out_->lengths.reserve(items);
    out_->piece_ends.reserve(items);
    for (const int64_t axis : step_shape) step_elements_ *= axis;  // The chunk was checked.
    step_bytes_ = step_elements_ * tensor::ByteSize(source.dtype());
    // Not of strings: so many may be within few bytes that nobody could hold such a batch.
    if (source.dtype() != DType::kString) out_->pieces.reserve(items * column.slices.size());
  }

  // Of an item that is like the first.
  absl::Status Append(const SampledItem& sample) {
    const TrajectoryColumn& column = sample.item.trajectory->columns[index_];
    int64_t length = 0;
    for (const ChunkSlice& slice : column.slices) {
      const ChunkColumn& source = slice.source();
      length += slice.length;
      if (out_->dtype == DType::kString) {
        AppendStrings(slice, source);
      } else {
        const std::byte* const block = source.data.data();
        out_->pieces.push_back(
            {block + slice.offset * step_bytes_, slice.length * step_bytes_, block});
      }
    }
    if (length > std::numeric_limits<int32_t>::max() ||
        out_->pieces.size() > std::numeric_limits<uint32_t>::max()) {
      return base::InvalidArgument("Column ", index_, " of item ", sample.item.key,
                                   " is too long for a batch: ", length, " steps.");
    }
    out_->lengths.push_back(static_cast<int32_t>(length));
    out_->piece_ends.push_back(static_cast<uint32_t>(out_->pieces.size()));
    return absl::OkStatus();
  }

 private:
  void AppendStrings(const ChunkSlice& slice, const ChunkColumn& source) {
    for (const absl::string_view text :
         tensor::UnpackStrings(source.data.span(), source.steps() * step_elements_,
                               slice.offset * step_elements_, slice.length * step_elements_)) {
      out_->pieces.push_back({reinterpret_cast<const std::byte*>(text.data()), text.size()});
    }
  }

  const size_t index_;
  DrawnColumn* const out_;
  int64_t step_elements_ = 1;
  size_t step_bytes_ = 0;
};

void FillInfo(absl::Span<const SampledItem> items, DrawnBatch* batch) {
  const size_t n = items.size();
  batch->keys.reserve(n);
  batch->probabilities.reserve(n);
  batch->priorities.reserve(n);
  batch->table_sizes.reserve(n);
  batch->times_sampled.reserve(n);
  batch->rate_limited.reserve(n);
  for (const SampledItem& sample : items) {
    batch->keys.push_back(sample.item.key);
    batch->probabilities.push_back(sample.probability);
    batch->priorities.push_back(sample.item.priority);
    batch->table_sizes.push_back(sample.table_size);
    batch->times_sampled.push_back(sample.item.times_sampled);
    batch->rate_limited.push_back(sample.rate_limited ? 1 : 0);
  }
}

// Flattens items from the front, up to the first that is not like those before it, which is after
// about `expected` items.
absl::StatusOr<DrawnBatch> TakeAlike(absl::Span<const SampledItem>* items, size_t expected) {
  DrawnBatch batch;
  std::vector<ColumnAppender> appenders;
  const storage::Trajectory* first = nullptr;
  size_t taken = 0;
  const auto take = [&](const SampledItem& sample) -> absl::StatusOr<bool> {
    const storage::Trajectory* const trajectory = sample.item.trajectory.get();
    if (trajectory == nullptr) {
      return base::InvalidArgument("Item ", sample.item.key, " has no data.");
    }
    if (first == nullptr) {
      first = trajectory;
      const size_t columns = first->columns.size();
      batch.columns.resize(columns);
      appenders.reserve(columns);
      for (size_t i = 0; i < columns; ++i) {
        appenders.emplace_back(i, &batch.columns[i], sample, expected);
      }
    } else if (!AreAlike(*first, *trajectory)) {
      return false;
    }
    for (ColumnAppender& appender : appenders) GR_RETURN_IF_ERROR(appender.Append(sample));
    return true;
  };
  for (bool more = true; more && taken < items->size();) {
    const auto group = items->subspan(taken, kPrefetched);
    Prefetch(group);
    for (size_t i = 0; i < group.size() && more; ++i) {
      GR_ASSIGN_OR_RETURN(more, take(group[i]));
      if (more) ++taken;
    }
  }
  FillInfo(items->subspan(0, taken), &batch);
  items->remove_prefix(taken);
  return batch;
}

}  // namespace

void Prefetch(absl::Span<const SampledItem> items) {
  for (const SampledItem& sample : items) base::Prefetch(sample.item.trajectory.get());
  const auto for_each_column = [&](auto f) {
    for (const SampledItem& sample : items) {
      if (sample.item.trajectory == nullptr) continue;
      for (const TrajectoryColumn& column : sample.item.trajectory->columns) f(column);
    }
  };
  for_each_column([](const TrajectoryColumn& c) { base::Prefetch(c.slices[0].chunk.get()); });
  for_each_column([](const TrajectoryColumn& c) { base::Prefetch(&c.slices[0].source()); });
}

bool AreAlike(const storage::Trajectory& a, const storage::Trajectory& b) {
  if (&a == &b) return true;
  const size_t columns = a.columns.size();
  if (columns != b.columns.size()) return false;
  for (size_t i = 0; i < columns; ++i) {
    const TrajectoryColumn x = a.columns[i], y = b.columns[i];
    const ChunkColumn &p = x.slices[0].source(), &q = y.slices[0].source();
    if (x.squeeze != y.squeeze) return false;
    if (p.type.IsSharedWith(q.type)) continue;
    if (p.dtype() != q.dtype() || StepShape(p) != StepShape(q)) return false;
  }
  return true;
}

absl::StatusOr<std::vector<DrawnBatch>> Flatten(std::vector<SampledItem> items) {
  const auto lease = std::make_shared<const std::vector<SampledItem>>(std::move(items));
  auto rest = absl::MakeConstSpan(*lease);
  std::vector<DrawnBatch> groups;
  while (!rest.empty()) {
    const size_t expected = groups.empty() ? rest.size() : std::min(rest.size(), kPrefetched);
    GR_ASSIGN_OR_RETURN(groups.emplace_back(), TakeAlike(&rest, expected));
    groups.back().lease = lease;
  }
  return groups;
}

}  // namespace gear_reverb::batch
