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

OutgoingItem ToOutgoing(PendingItem pending) {
  OutgoingItem outgoing;
  auto trajectory = std::make_shared<storage::Trajectory>();
  trajectory->columns.resize(pending.columns.size());
  absl::flat_hash_set<uint64_t> seen;
  for (size_t i = 0; i < pending.columns.size(); ++i) {
    storage::TrajectoryColumn& column = trajectory->columns[i];
    column.squeeze = pending.columns[i].squeeze;
    column.slices.reserve(pending.columns[i].slices.size());
    for (PendingColumn::Slice& slice : pending.columns[i].slices) {
      const storage::ChunkPtr& chunk = slice.chunk->chunk();
      column.slices.push_back({chunk, slice.offset, slice.length, slice.column});
      if (seen.insert(chunk->key()).second) {
        outgoing.uses.push_back({chunk, std::move(slice.chunk)});
      }
    }
  }
  outgoing.item = {pending.key, std::move(pending.table), pending.priority, std::move(trajectory)};
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

absl::Status PendingItems::SubmitReady(ItemSender& sender) {
  while (!items_.empty() && IsReady(items_.front())) {
    PendingItem item = std::move(items_.front());
    items_.pop_front();
    GR_RETURN_IF_ERROR(sender.Submit(ToOutgoing(std::move(item))));
  }
  return absl::OkStatus();
}

}  // namespace gear_reverb::writer
