#include "native/table/counters.h"

#include <atomic>

namespace gear_reverb::table {
namespace {

// Whether there is an episode, and which.
bool EpisodeOf(const storage::Trajectory* trajectory, uint64_t* episode) {
  if (trajectory == nullptr || trajectory->columns.empty()) return false;
  const auto& slices = trajectory->columns[0].slices;
  if (slices.empty()) return false;
  *episode = slices[0].chunk->range().episode_id;
  return true;
}

}  // namespace

void EpisodeCounter::Insert(const storage::Trajectory* trajectory, int64_t items) {
  uint64_t episode;
  if (!EpisodeOf(trajectory, &episode)) return;
  if (inserted_.count == nullptr || inserted_.episode != episode) {
    const auto [entry, added] = items_.try_emplace(episode, 0);
    if (added) erased_ = {};  // Counts may have moved.
    inserted_ = {episode, &entry->second};
  }
  *inserted_.count += items;
}

void EpisodeCounter::Erase(const storage::Trajectory* trajectory, int64_t items) {
  uint64_t episode;
  if (!EpisodeOf(trajectory, &episode)) return;
  if (erased_.count == nullptr || erased_.episode != episode) {
    erased_ = {episode, &items_.find(episode)->second};
  }
  if ((*erased_.count -= items) > 0) return;
  items_.erase(episode);
  ++deleted_;
  inserted_ = erased_ = {};
}

void EpisodeCounter::Reserve(int64_t more) {
  items_.reserve(items_.size() + more);
  inserted_ = erased_ = {};  // Counts may have moved.
}

void EpisodeCounter::Clear() {
  items_.clear();
  inserted_ = erased_ = {};
  deleted_ = 0;
}

// Chunk::user_count is the counter's id above, and the count below as a signed number.
constexpr int kCountBits = 40;
constexpr uint64_t kMaxId = (uint64_t{1} << (64 - kCountBits)) - 1;

ByteCounter::ByteCounter()
    : id_([] {
        static std::atomic<uint64_t> last{0};
        const uint64_t id = last.fetch_add(1, std::memory_order_relaxed) + 1;
        return id <= kMaxId ? id : 0;
      }()) {}

class ByteCounter::Run {
 public:
  explicit Run(ByteCounter* counter) : counter_(counter) {}

  // Adjacent slices of one chunk count once; a trajectory is immutable, so it is removed as added.
  void Add(const storage::Trajectory& trajectory, int64_t change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(counter_->mutex_) {
    if (&trajectory == of_one_chunk_) {
      change_ += change;
      return;
    }
    const storage::Chunk* last = nullptr;
    int chunks = 0;
    for (const auto& column : trajectory.columns) {
      for (const auto& slice : column.slices) {
        if (slice.chunk.get() == last) continue;
        last = slice.chunk.get();
        if (last != chunk_) Flush();
        chunk_ = last;
        change_ += change;
        ++chunks;
      }
    }
    of_one_chunk_ = chunks == 1 ? &trajectory : nullptr;
  }
  void Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(counter_->mutex_) {
    if (change_ != 0) counter_->Count(*chunk_, change_);
    change_ = 0;
  }

 private:
  ByteCounter* const counter_;
  const storage::Chunk* chunk_ = nullptr;
  int64_t change_ = 0;
  const storage::Trajectory* of_one_chunk_ = nullptr;  // The last, if it is: rows share it.
};

void ByteCounter::Change(absl::Span<const storage::TrajectoryPtr> added,
                         absl::Span<const storage::TrajectoryPtr> removed) {
  if (added.empty() && removed.empty()) return;
  base::MutexLock lock(&mutex_);
  Run run(this);
  for (const auto& trajectory : added) {
    if (trajectory != nullptr) run.Add(*trajectory, 1);
  }
  for (const auto& trajectory : removed) {
    if (trajectory != nullptr) run.Add(*trajectory, -1);
  }
  run.Flush();
}

void ByteCounter::Change(absl::Span<const Item> items, int64_t change) {
  if (items.empty()) return;
  base::MutexLock lock(&mutex_);
  Run run(this);
  for (const Item& item : items) {
    if (item.trajectory != nullptr) run.Add(*item.trajectory, change);
  }
  run.Flush();
}

void ByteCounter::Count(const storage::Chunk& chunk, int64_t change) {
  const int64_t before = Add(chunk, change);
  const int64_t after = before + change;
  if (before <= 0 && after > 0) bytes_ += chunk.bytes();
  if (before > 0 && after <= 0) bytes_ -= chunk.bytes();
}

int64_t ByteCounter::Add(const storage::Chunk& chunk, int64_t change) {
  constexpr int kIdBits = 64 - kCountBits;
  std::atomic<uint64_t>& word = chunk.user_count();
  uint64_t held = word.load(std::memory_order_relaxed);
  const bool in_map = !references_.empty() && references_.contains(&chunk);
  const uint64_t claim = id_ << kCountBits;
  if (!in_map && id_ != 0 &&
      (held >> kCountBits == id_ ||
       (held == 0 && word.compare_exchange_strong(held, claim, std::memory_order_relaxed)))) {
    // Nobody else changes it as long as the id is there.
    const int64_t before = held == 0 ? 0 : static_cast<int64_t>(held << kIdBits) >> kIdBits;
    const int64_t after = before + change;
    word.store(after == 0 ? 0 : claim | (static_cast<uint64_t>(after) << kIdBits >> kIdBits),
               std::memory_order_relaxed);
    return before;
  }
  const auto entry = references_.try_emplace(&chunk, 0).first;
  const int64_t before = entry->second;
  entry->second += change;
  if (entry->second == 0) references_.erase(entry);
  return before;
}

int64_t ByteCounter::bytes() const {
  base::MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace gear_reverb::table
