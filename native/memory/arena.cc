#include "native/memory/arena.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "native/base/copy_bytes.h"
#include "native/base/status.h"
#include "native/memory/fork_guard.h"
#include "native/memory/poison.h"
#include "native/memory/run_heap.h"
#include "native/memory/slab_cache.h"

namespace gear_reverb::memory {
namespace {

// Below this a system call costs more than the page faults that it saves, and memcpy less than what
// goes past the caches.
constexpr size_t kMinFastWrite = size_t{32} << 10;

// Of one foreign block.
class ForeignHome final : public BlockHome {
 public:
  ForeignHome(std::shared_ptr<const void> owner, const std::byte* data)
      : owner_(std::move(owner)), data_(data) {}
  void Free(std::byte*, size_t) override { delete this; }
  uint32_t segment_id() const override { return 0; }
  const std::byte* segment_base() const override { return data_; }
  const Arena* arena() const override { return nullptr; }

 private:
  const std::shared_ptr<const void> owner_;
  const std::byte* const data_;
};

}  // namespace

class Arena::Impl {
 public:
  Impl(const ArenaOptions& options, Arena* arena)
      : max_bytes_(options.max_bytes),
        cache_bytes_(options.cache_bytes),
        shareable_(options.shareable),
        generation_(ForkGeneration()),
        heap_(options, arena) {
    for (int i = 0; i < kNumSizeClasses; ++i) caches_[i].Init(i, &heap_);
  }

  // Whether the segments belong to the process that forked this one.
  bool foreign() const { return shareable_ && ForkGeneration() != generation_; }

  absl::Status Reserve(size_t capacity) {
    size_t used = used_bytes_.load(std::memory_order_relaxed);
    do {
      if (max_bytes_ != 0 && (used > max_bytes_ || capacity > max_bytes_ - used)) {
        return absl::ResourceExhaustedError(absl::StrCat("Cannot allocate ", capacity,
                                                         " bytes: ", used, " of the arena's ",
                                                         max_bytes_, " are in use."));
      }
    } while (!used_bytes_.compare_exchange_weak(used, used + capacity, std::memory_order_relaxed));
    return absl::OkStatus();
  }
  void Unreserve(size_t capacity) { used_bytes_.fetch_sub(capacity, std::memory_order_relaxed); }

  // Where a block of `size` > 0 bytes lies: its run, the offset in the run, and its home.
  struct Place {
    PageRun* run;
    size_t offset;
    BlockHome* home;
  };
  absl::StatusOr<Place> Find(size_t size) {
    if (size <= kMaxSmallBytes) {
      GR_ASSIGN_OR_RETURN(const SmallBlock small, caches_[SizeClassOf(size)].Allocate());
      return Place{small.slab->run, small.offset, small.slab};
    }
    GR_ASSIGN_OR_RETURN(PageRun * run, heap_.Allocate(PagesOf(size)));
    return Place{run, 0, run};
  }

  void Release(PageRun* run, const std::byte*) { heap_.Free(run); }
  void Release(Slab* slab, const std::byte* data) {
    caches_[slab->size_class].Free({slab, static_cast<size_t>(data - slab->run->data())});
  }

  void Count(size_t size) {
    payload_bytes_.fetch_add(size, std::memory_order_relaxed);
    live_blocks_.fetch_add(1, std::memory_order_relaxed);
  }
  void Uncount(size_t size) {
    payload_bytes_.fetch_sub(size, std::memory_order_relaxed);
    live_blocks_.fetch_sub(1, std::memory_order_relaxed);
  }

  ArenaStats stats() const {
    const RunHeap::Stats heap = heap_.stats();
    ArenaStats stats;
    stats.reserved_bytes = heap.reserved_bytes;
    stats.used_bytes = used_bytes_.load(std::memory_order_relaxed);
    stats.payload_bytes = payload_bytes_.load(std::memory_order_relaxed);
    stats.live_blocks = live_blocks_.load(std::memory_order_relaxed);
    stats.segments = heap.segments;
    stats.idle_bytes = heap.idle_bytes;
    return stats;
  }
  bool outgrows_caches() const {
    return used_bytes_.load(std::memory_order_relaxed) > cache_bytes_;
  }
  std::vector<SegmentView> segments() const { return heap_.segments(); }
  uint64_t segments_version() const { return heap_.segments_version(); }
  void KeepMemory() { heap_.KeepMemory(); }
  void PreferNode(int node) { heap_.PreferNode(node); }

 private:
  const size_t max_bytes_;
  const size_t cache_bytes_;
  const bool shareable_;
  const uint64_t generation_;
  RunHeap heap_;
  std::array<SlabCache, kNumSizeClasses> caches_;
  std::atomic<size_t> used_bytes_{0};
  std::atomic<size_t> payload_bytes_{0};
  std::atomic<size_t> live_blocks_{0};
};

Block Block::Foreign(std::shared_ptr<const void> owner, const std::byte* data, size_t size) {
  return Block(const_cast<std::byte*>(data), size, new ForeignHome(std::move(owner), data));
}

size_t PageRun::WriteFast(std::byte* data, absl::Span<const std::byte> bytes) {
  if (fresh) {
    const size_t written = segment->WriteToFile(data - segment->base(), bytes);
    if (written > 0) return written;
  }
  if (!segment->arena()->OutgrowsCaches() || !base::StreamingPays()) return 0;
  base::CopyStreaming(data, bytes.data(), bytes.size());
  base::FinishStreaming();
  return bytes.size();
}
void PageRun::Free(std::byte* data, size_t size) { segment->arena()->Free(this, data, size); }
void Slab::Free(std::byte* data, size_t size) { run->segment->arena()->Free(this, data, size); }

void Block::Write(size_t offset, absl::Span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (bytes.size() >= kMinFastWrite) {
    const size_t written = home_->WriteFast(data_ + offset, bytes);
    offset += written;
    bytes.remove_prefix(written);
  }
  std::memcpy(data_ + offset, bytes.data(), bytes.size());
}

size_t ArenaOptions::CacheBytes() {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  if (const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE); bytes > 0) return bytes;
#endif
  return size_t{32} << 20;
}

std::shared_ptr<Arena> Arena::Create(const ArenaOptions& options) {
  return {new Arena(options), [](Arena* arena) { arena->Unref(); }};
}

Arena::Arena(const ArenaOptions& options) : impl_(std::make_unique<Impl>(options, this)) {}
Arena::~Arena() = default;

bool Arena::OutgrowsCaches() const { return impl_->outgrows_caches(); }

void Arena::Unref() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

absl::StatusOr<Block> Arena::Allocate(size_t size) {
  if (size == 0) return Block();
  if (impl_->foreign()) {
    return base::FailedPrecondition("This memory belongs to the process that forked this one; ",
                                    "start processes by spawn instead.");
  }
  if (size > SIZE_MAX / 2) {
    return absl::ResourceExhaustedError(absl::StrCat("Cannot allocate ", size, " bytes."));
  }
  const size_t capacity = CapacityOf(size);
  GR_RETURN_IF_ERROR(impl_->Reserve(capacity));
  const absl::StatusOr<Impl::Place> place = impl_->Find(size);
  if (!place.ok()) {
    impl_->Unreserve(capacity);
    return place.status();
  }
  impl_->Count(size);
  references_.fetch_add(1, std::memory_order_relaxed);
  std::byte* const data = place->run->data() + place->offset;
  Poison(data, capacity);
  Unpoison(data, size);
  return Block(data, size, place->home);
}

template <typename Home>
void Arena::Free(Home* home, std::byte* data, size_t size) {
  if (!impl_->foreign()) {
    const size_t capacity = CapacityOf(size);
    Poison(data, capacity);
    impl_->Release(home, data);
    impl_->Uncount(size);
    impl_->Unreserve(capacity);
  }
  Unref();
}

ArenaStats Arena::stats() const { return impl_->stats(); }
std::vector<SegmentView> Arena::segments() const { return impl_->segments(); }
uint64_t Arena::segments_version() const { return impl_->segments_version(); }
void Arena::KeepMemory() { impl_->KeepMemory(); }
void Arena::PreferNode(int node) { impl_->PreferNode(node); }

const std::shared_ptr<Arena>& ProcessArena() {
  static const auto& arena =
      *new std::shared_ptr<Arena>(Arena::Create({.max_bytes = 0, .shareable = false}));
  return arena;
}

}  // namespace gear_reverb::memory
