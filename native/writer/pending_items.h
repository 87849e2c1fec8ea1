// Items that refer to chunks which are not all finished yet, in the order of their creation.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "native/writer/chunk_builder.h"
#include "native/writer/item_sender.h"

namespace gear_reverb::writer {

// Slices of chunks under construction; see storage::TrajectoryColumn.
struct PendingColumn {
  struct Slice {
    std::shared_ptr<ChunkBuilder> chunk;
    int32_t offset = 0;
    int32_t length = 0;
    int32_t column = 0;
  };

  // Adds a run of steps of a chunk, as part of the last slice where it continues that.
  void Add(const std::shared_ptr<ChunkBuilder>& chunk, int32_t offset, int32_t length,
           int32_t column);

  absl::InlinedVector<Slice, 2> slices;
  bool squeeze = false;
};

struct PendingItem {
  using Columns = absl::InlinedVector<PendingColumn, 1>;

  uint64_t key = 0;
  std::string table;
  double priority = 0;
  Columns columns;
};

// INVALID_ARGUMENT unless finite. (Some tables take no negative ones; they tell.)
absl::Status CheckPriority(double priority);

// Thread-compatible: guarded by its writer's lock, as the chunks are.
class PendingItems {
 public:
  // Adds an item, and submits as SubmitReady does.
  absl::Status Push(PendingItem item, ItemSender& sender);
  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  void Clear() { items_.clear(); }

  // Finishes the chunks of all items but the newest `count`.
  absl::Status FinishAllBut(int64_t count);

  // Submits items from the front for as long as all their chunks are finished.
  absl::Status SubmitReady(ItemSender& sender);

 private:
  std::deque<PendingItem> items_;
};

}  // namespace gear_reverb::writer
