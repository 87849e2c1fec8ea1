#include "native/table/counters.h"

namespace gear_reverb::table {
namespace {

// Whether there is an episode, and which.
bool EpisodeOf(const storage::TrajectoryPtr& trajectory, uint64_t* episode) {
  if (trajectory == nullptr || trajectory->columns.empty()) return false;
  const auto& slices = trajectory->columns[0].slices;
  if (slices.empty()) return false;
  *episode = slices[0].chunk->range().episode_id;
  return true;
}

}  // namespace

void EpisodeCounter::Insert(const storage::TrajectoryPtr& trajectory) {
  if (uint64_t episode; EpisodeOf(trajectory, &episode)) ++items_[episode];
}

void EpisodeCounter::Erase(const storage::TrajectoryPtr& trajectory) {
  uint64_t episode;
  if (!EpisodeOf(trajectory, &episode)) return;
  const auto found = items_.find(episode);
  if (--found->second > 0) return;
  items_.erase(found);
  ++deleted_;
}

void EpisodeCounter::Clear() {
  items_.clear();
  deleted_ = 0;
}

void ByteCounter::Change(absl::Span<const storage::TrajectoryPtr> added,
                         absl::Span<const storage::TrajectoryPtr> removed) {
  if (added.empty() && removed.empty()) return;
  base::MutexLock lock(&mutex_);
  for (const auto& trajectory : added) {
    if (trajectory != nullptr) Count(*trajectory, 1);
  }
  for (const auto& trajectory : removed) {
    if (trajectory != nullptr) Count(*trajectory, -1);
  }
}

void ByteCounter::Count(const storage::Trajectory& trajectory, int64_t change) {
  // Runs of slices of one chunk count once; a trajectory is immutable, so it is removed as added.
  const storage::Chunk* last = nullptr;
  for (const auto& column : trajectory.columns) {
    for (const auto& slice : column.slices) {
      if (slice.chunk.get() == last) continue;
      last = slice.chunk.get();
      const auto entry = references_.try_emplace(last->key(), 0).first;
      const int64_t before = entry->second;
      entry->second += change;
      if (before == 0 && change > 0) bytes_ += last->bytes();
      if (before == 1 && change < 0) bytes_ -= last->bytes();
      if (entry->second == 0) references_.erase(entry);
    }
  }
}

int64_t ByteCounter::bytes() const {
  base::MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace gear_reverb::table
