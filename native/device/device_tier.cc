#include "native/device/device_tier.h"

#include <utility>

#include "absl/time/clock.h"
#include "native/base/prefetch.h"
#include "native/device/tier_state.h"
#include "native/memory/fork_guard.h"

namespace gear_reverb::device {
namespace {

// Times that a column's copy may fail before it is left where it is.
constexpr int kMaxFailures = 8;
// Columns that find no room in one pass before it gives up for now.
constexpr int kMaxMisfits = 256;
// Look-ups whose cache misses are to overlap.
constexpr size_t kLookUpAtOnce = 32;
// What is let go under one hold of the lock.
constexpr size_t kDropAtOnce = 1024;

}  // namespace

DeviceCopy::DeviceCopy(std::shared_ptr<TierState> state, std::byte* data, uint64_t bytes)
    : state_(std::move(state)), data_(data), bytes_(bytes) {}
DeviceCopy::~DeviceCopy() { state_->Free(data_, bytes_); }

// The thread. What is not in the state is its own.
class DeviceTier::Worker {
 public:
  explicit Worker(std::shared_ptr<TierState> state) : state_(std::move(state)) {}

  void Run() {
    std::vector<TierState::Event> events;
    while (TakeEvents(&events)) {
      for (TierState::Event& event : events) Apply(std::move(event));
      events.clear();
      DropUnused();
      more_ = CopySome();
      base::MutexLock lock(&state_->mutex);
      state_->stats.resident_bytes = bytes_[kResident];
      // What is wanted waits for the next pass, or for room.
      state_->stats.waiting_bytes = more_ ? bytes_[kWanted] : 0;
      state_->stats.overflow_bytes = bytes_[kFailed] + (more_ ? 0 : bytes_[kWanted]);
    }
  }

 private:
  // Where a column is. One that is wanted is in `wanted_`, too.
  enum Where { kWanted, kResident, kFailed };
  using Wanted = std::list<const std::byte*>;
  struct Column {
    storage::ChunkPtr chunk;  // Keeps the column's address its own.
    uint64_t bytes = 0;
    uint64_t references = 0;  // Of slices of items.
    Where where = kWanted;
    int failures = 0;  // Of its copy.
    Wanted::iterator wanted;
  };

  // Waits for something to do; false at the end.
  bool TakeEvents(std::vector<TierState::Event>* events) {
    base::MutexLock lock(&state_->mutex);
    const auto called = [this] {
      return state_->stopping || !state_->events.empty() || state_->look_again;
    };
    while (!more_ && !called() && absl::Now() < copy_again_) {
      state_->settled = true;
      state_->changed.NotifyAll();
      state_->changed.WaitUntil(&state_->mutex, copy_again_, called);
    }
    if (state_->stopping) return false;
    events->swap(state_->events);
    state_->look_again = false;
    state_->settled = false;
    return true;
  }

  void Apply(TierState::Event event) {
    if (event.slot == TierState::kAllSlots) {
      for (const storage::TrajectoryPtr& trajectory : slots_) Count(trajectory, -1);
      slots_.clear();
      return;
    }
    if (event.slot >= slots_.size()) slots_.resize(event.slot + 1);
    // The new one first: what both refer to stays.
    Count(event.trajectory, 1);
    std::swap(slots_[event.slot], event.trajectory);
    Count(event.trajectory, -1);
  }

  void Count(const storage::TrajectoryPtr& trajectory, int change) {
    if (trajectory == nullptr) return;
    for (const storage::TrajectoryColumn& column : trajectory->columns) {
      for (const storage::ChunkSlice& slice : column.slices) {
        const storage::ChunkColumn& source = slice.source();
        // Strings are never gathered on a device.
        if (source.data.size() == 0 || source.dtype() == tensor::DType::kString) continue;
        const std::byte* const block = source.data.data();
        Column& counted = columns_[block];
        if (counted.chunk == nullptr) {
          counted.chunk = slice.chunk;
          counted.bytes = source.data.size();
          counted.wanted = wanted_.insert(wanted_.end(), block);
          bytes_[kWanted] += counted.bytes;
        }
        counted.references += change;
        if (counted.references == 0) unused_.push_back(block);
      }
    }
  }

  void Move(Column& column, Where where) {
    bytes_[column.where] -= column.bytes;
    bytes_[where] += column.bytes;
    column.where = where;
  }

  void DropUnused() {
    std::vector<DeviceCopyPtr> copies;  // Let go of without the lock.
    std::vector<storage::ChunkPtr> chunks;
    for (size_t i = 0; i < unused_.size();) {
      copies.clear();
      chunks.clear();
      base::MutexLock lock(&state_->mutex);
      for (const size_t end = std::min(unused_.size(), i + kDropAtOnce); i < end; ++i) {
        const auto found = columns_.find(unused_[i]);
        // It may have been used again, or be in the list twice.
        if (found == columns_.end() || found->second.references > 0) continue;
        Column& column = found->second;
        bytes_[column.where] -= column.bytes;
        if (column.where == kWanted) wanted_.erase(column.wanted);
        if (auto copy = state_->copies.extract(found->first)) {
          copies.push_back(std::move(copy.mapped()));
        }
        chunks.push_back(std::move(column.chunk));
        columns_.erase(found);
      }
    }
    unused_.clear();
  }

  // Copies columns that are wanted, about kPassBytes of them. Whether there may be more to copy
  // now.
  bool CopySome() {
    if (copy_again_ != absl::InfiniteFuture() && absl::Now() < copy_again_) return false;
    copy_again_ = absl::InfiniteFuture();
    std::vector<kernels::Copy> copies;
    std::vector<std::pair<const std::byte*, DeviceCopyPtr>> placed;
    uint64_t bytes = 0;
    uint64_t too_large = UINT64_MAX;
    int misfits = 0;
    for (size_t n = wanted_.size(); n > 0 && bytes < kPassBytes && misfits < kMaxMisfits; --n) {
      const std::byte* const block = wanted_.front();
      Column& column = columns_.find(block)->second;
      std::byte* const data = column.bytes < too_large ? state_->Allocate(column.bytes) : nullptr;
      if (data == nullptr) {
        ++misfits;
        too_large = std::min(too_large, column.bytes);
        wanted_.splice(wanted_.end(), wanted_, wanted_.begin());
        continue;
      }
      placed.emplace_back(block, std::make_shared<DeviceCopy>(state_, data, column.bytes));
      copies.push_back({block, data, column.bytes});
      bytes += column.bytes;
      wanted_.pop_front();
    }
    if (placed.empty()) return false;
    const absl::Status status = state_->memory().Copy(copies);
    if (!status.ok()) {
      state_->NoteFailure(status);
      for (const auto& [block, copy] : placed) TryAgainLater(block, status);
    } else {
      for (const auto& [block, copy] : placed) Move(columns_.find(block)->second, kResident);
      base::MutexLock lock(&state_->mutex);
      for (auto& [block, copy] : placed) state_->copies.emplace(block, std::move(copy));
      std::erase_if(state_->arrivals, [&placed](const auto& each) {
        const auto arrivals = each.lock();
        if (arrivals == nullptr) return true;
        for (const auto& [block, copy] : placed) arrivals->Add(block);
        return false;
      });
    }
    return copy_again_ == absl::InfiniteFuture();
  }

  // After a failure: but for errors that stay, and columns that have failed too often.
  void TryAgainLater(const std::byte* block, const absl::Status& status) {
    Column& column = columns_.find(block)->second;
    if (absl::IsUnimplemented(status) || ++column.failures == kMaxFailures) {
      Move(column, kFailed);
      return;
    }
    column.wanted = wanted_.insert(wanted_.end(), block);
    copy_again_ = absl::Now() + state_->retry_after();
  }

  const std::shared_ptr<TierState> state_;
  bool more_ = false;
  absl::Time copy_again_ = absl::InfiniteFuture();  // After a copy that failed: when to go on.
  std::vector<storage::TrajectoryPtr> slots_;
  absl::flat_hash_map<const std::byte*, Column> columns_;  // By their bytes' address.
  Wanted wanted_;
  std::vector<const std::byte*> unused_;
  uint64_t bytes_[3] = {};  // Of columns, by where they are.
};

DeviceTier::DeviceTier(std::string table, std::shared_ptr<TierMemory> memory, TierOptions options)
    : generation_(memory::ForkGeneration()),
      state_(std::make_shared<TierState>(std::move(table), std::move(memory), options)),
      worker_(std::make_unique<Worker>(state_)),
      thread_(std::make_unique<std::thread>([worker = worker_.get()] { worker->Run(); })) {}

DeviceTier::~DeviceTier() {
  if (memory::ForkGeneration() != generation_) {
    // The thread is the parent's, and stopped in the middle of something.
    (void)thread_.release();
    (void)worker_.release();
    (void)new std::shared_ptr<TierState>(std::move(state_));
    return;
  }
  {
    base::MutexLock lock(&state_->mutex);
    state_->stopping = true;
    state_->changed.NotifyAll();
  }
  thread_->join();
  absl::flat_hash_map<const std::byte*, DeviceCopyPtr> copies;  // They hold the state.
  std::vector<TierState::Event> events;
  base::MutexLock lock(&state_->mutex);
  copies.swap(state_->copies);
  events.swap(state_->events);
}

void DeviceTier::Queue(uint32_t slot, storage::TrajectoryPtr trajectory) {
  if (memory::ForkGeneration() != generation_) return;
  base::MutexLock lock(&state_->mutex);
  if (slot >= state_->current.size()) state_->current.resize(slot + 1);
  if (state_->current[slot] == trajectory.get()) return;  // Its priority has changed.
  state_->current[slot] = trajectory.get();
  state_->events.push_back({slot, std::move(trajectory)});
  state_->changed.NotifyAll();
}

void DeviceTier::OnInsert(const table::Item& item) { Queue(item.slot, item.trajectory); }
void DeviceTier::OnUpdate(const table::Item& item) { Queue(item.slot, item.trajectory); }
void DeviceTier::OnDelete(const table::Item& item) { Queue(item.slot, nullptr); }

void DeviceTier::OnReset() {
  if (memory::ForkGeneration() != generation_) return;
  base::MutexLock lock(&state_->mutex);
  state_->current.clear();
  state_->events.push_back({TierState::kAllSlots, nullptr});
  state_->changed.NotifyAll();
}

DeviceCopyPtr DeviceTier::Find(const std::byte* block) const {
  DeviceCopyPtr copy;
  Find({&block, 1}, {&copy, 1});
  return copy;
}

void DeviceTier::Find(absl::Span<const std::byte* const> blocks,
                      absl::Span<DeviceCopyPtr> copies) const {
  base::MutexLock lock(&state_->mutex);
  const auto& all = state_->copies;
  for (size_t begin = 0; begin < blocks.size(); begin += kLookUpAtOnce) {
    const size_t end = std::min(blocks.size(), begin + kLookUpAtOnce);
    const DeviceCopyPtr* found[kLookUpAtOnce];
    for (size_t i = begin; i < end; ++i) all.prefetch(blocks[i]);
    for (size_t i = begin; i < end; ++i) {
      const auto place = all.find(blocks[i]);
      found[i - begin] = place == all.end() ? nullptr : &place->second;
      if (place != all.end()) base::Prefetch(place->second.get());
    }
    for (size_t i = begin; i < end; ++i) {
      if (found[i - begin] != nullptr) copies[i] = *found[i - begin];
    }
  }
}

std::shared_ptr<TierArrivals> DeviceTier::NewArrivals(size_t most) {
  auto arrivals = std::make_shared<TierArrivals>(most);
  base::MutexLock lock(&state_->mutex);
  state_->arrivals.push_back(arrivals);
  return arrivals;
}

void DeviceTier::UseSegments(std::weak_ptr<PinnedSegments> segments) {
  state_->memory().UseSegments(std::move(segments));
}

TierStats DeviceTier::stats() const {
  base::MutexLock lock(&state_->mutex);
  return state_->stats;
}

void DeviceTier::WaitUntilSettled() {
  base::MutexLock lock(&state_->mutex);
  state_->settled = false;
  state_->look_again = true;
  state_->changed.NotifyAll();
  while (!state_->settled) state_->changed.Wait(&state_->mutex);
}

}  // namespace gear_reverb::device
