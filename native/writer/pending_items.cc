#include "native/writer/pending_items.h"

#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "native/base/status.h"

namespace gear_reverb::writer {
namespace {

bool IsReady(const PendingItem& item) {
  for (const PendingColumn& column : item.columns) {
    for (const PendingColumn::Slice& slice : column.slices) {
      if (slice.chunk->chunk() == nullptr) return false;
    }
  }
  return true;
}

// Fills `uses`.
class DistinctChunks {
 public:
  explicit DistinctChunks(OutgoingItem* item) : uses_(item->uses) {}

  void Add(const storage::ChunkPtr& chunk, std::shared_ptr<const void> user) {
    if (uses_.size() < kFew) {
      for (const OutgoingItem::Use& use : uses_) {
        if (use.chunk == chunk) return;
      }
    } else {
      if (keys_.empty()) {
        for (const OutgoingItem::Use& use : uses_) keys_.insert(use.chunk->key());
      }
      if (!keys_.insert(chunk->key()).second) return;
    }
    uses_.push_back({chunk, std::move(user)});
  }

 private:
  static constexpr size_t kFew = 8;  // So many are compared faster than hashed.

  decltype(OutgoingItem::uses)& uses_;
  absl::flat_hash_set<uint64_t> keys_;  // From kFew chunks on.
};

OutgoingItem ToOutgoing(PendingItem pending) {
  OutgoingItem outgoing;
  storage::TrajectoryBuilder trajectory;
  trajectory.columns.resize(pending.columns.size());
  DistinctChunks distinct(&outgoing);
  for (size_t i = 0; i < pending.columns.size(); ++i) {
    storage::TrajectoryBuilder::Column& column = trajectory.columns[i];
    column.squeeze = pending.columns[i].squeeze;
    column.slices.reserve(pending.columns[i].slices.size());
    for (PendingColumn::Slice& slice : pending.columns[i].slices) {
      const storage::ChunkPtr& chunk = slice.chunk->chunk();
      column.slices.push_back({chunk, slice.offset, slice.length, slice.column});
      distinct.Add(chunk, std::move(slice.chunk));
    }
  }
  outgoing.item = {pending.key, std::move(pending.table), pending.priority,
                   std::move(trajectory).Build()};
  return outgoing;
}

}  // namespace

void PendingColumn::Add(const std::shared_ptr<ChunkBuilder>& chunk, int32_t offset, int32_t length,
                        int32_t column) {
  if (!slices.empty()) {
    Slice& last = slices.back();
    if (last.chunk == chunk && last.column == column && last.offset + last.length == offset) {
      last.length += length;
      return;
    }
  }
  slices.push_back({chunk, offset, length, column});
}

absl::Status CheckPriority(double priority) {
  if (std::isnan(priority)) return base::InvalidArgument("`priority` must not be nan.");
  if (!std::isfinite(priority)) {
    return base::InvalidArgument("`priority` must be finite but got ", priority, ".");
  }
  return absl::OkStatus();
}

absl::Status PendingItems::FinishAllBut(int64_t count) {
  for (int64_t i = 0; i < size() - count; ++i) {
    for (const PendingColumn& column : items_[i].columns) {
      for (const PendingColumn::Slice& slice : column.slices) {
        GR_RETURN_IF_ERROR(slice.chunk->Finish());
      }
    }
  }
  return absl::OkStatus();
}

absl::Status PendingItems::Push(PendingItem item, ItemSender& sender) {
  if (items_.empty() && IsReady(item)) return sender.Submit(ToOutgoing(std::move(item)));
  items_.push_back(std::move(item));
  return SubmitReady(sender);
}

absl::Status PendingItems::SubmitReady(ItemSender& sender) {
  while (!items_.empty() && IsReady(items_.front())) {
    PendingItem item = std::move(items_.front());
    items_.pop_front();
    GR_RETURN_IF_ERROR(sender.Submit(ToOutgoing(std::move(item))));
  }
  return absl::OkStatus();
}

}  // namespace gear_reverb::writer
