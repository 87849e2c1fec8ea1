#include "native/memory/arena.h"

#include <array>
#include <atomic>
#include <utility>

#include "native/base/status.h"
#include "native/memory/fork_guard.h"
#include "native/memory/poison.h"
#include "native/memory/run_heap.h"
#include "native/memory/slab_cache.h"

namespace gear_reverb::memory {

class Arena::Impl {
 public:
  explicit Impl(const ArenaOptions& options)
      : max_bytes_(options.max_bytes),
        shareable_(options.shareable),
        generation_(ForkGeneration()),
        heap_(options) {
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
    void* home;
  };
  absl::StatusOr<Place> Find(size_t size) {
    if (size <= kMaxSmallBytes) {
      GR_ASSIGN_OR_RETURN(const SmallBlock small, caches_[SizeClassOf(size)].Allocate());
      return Place{small.slab->run, small.offset, small.slab};
    }
    GR_ASSIGN_OR_RETURN(PageRun * run, heap_.Allocate(PagesOf(size)));
    return Place{run, 0, run};
  }

  void Release(const Block& block) {
    if (block.size_ <= kMaxSmallBytes) {
      auto* slab = static_cast<Slab*>(block.home_);
      caches_[slab->size_class].Free({slab, block.offset_ - slab->run->first_page * kPageBytes});
    } else {
      heap_.Free(static_cast<PageRun*>(block.home_));
    }
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
  std::vector<SegmentView> segments() const { return heap_.segments(); }

 private:
  const size_t max_bytes_;
  const bool shareable_;
  const uint64_t generation_;
  RunHeap heap_;
  std::array<SlabCache, kNumSizeClasses> caches_;
  std::atomic<size_t> used_bytes_{0};
  std::atomic<size_t> payload_bytes_{0};
  std::atomic<size_t> live_blocks_{0};
};

Block::Block(Block&& other) noexcept
    : arena_(std::move(other.arena_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      offset_(std::exchange(other.offset_, 0)),
      segment_(std::exchange(other.segment_, 0)),
      home_(std::exchange(other.home_, nullptr)) {}

Block& Block::operator=(Block&& other) noexcept {
  if (this == &other) return *this;
  // What this block held goes with `old`.
  Block old(std::move(*this));
  arena_ = std::move(other.arena_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  offset_ = std::exchange(other.offset_, 0);
  segment_ = std::exchange(other.segment_, 0);
  home_ = std::exchange(other.home_, nullptr);
  return *this;
}

Block::~Block() {
  if (arena_ != nullptr) arena_->Free(this);
}

std::shared_ptr<Arena> Arena::Create(const ArenaOptions& options) {
  return std::shared_ptr<Arena>(new Arena(options));
}

Arena::Arena(const ArenaOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Arena::~Arena() = default;

absl::StatusOr<Block> Arena::Allocate(size_t size) {
  Block block;
  if (size == 0) return block;
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
  block.arena_ = shared_from_this();
  block.data_ = place->run->data() + place->offset;
  block.size_ = size;
  block.offset_ = place->run->first_page * kPageBytes + place->offset;
  block.segment_ = place->run->segment->id();
  block.home_ = place->home;
  Poison(block.data_, capacity);
  Unpoison(block.data_, size);
  return block;
}

void Arena::Free(Block* block) {
  if (impl_->foreign()) return;
  const size_t capacity = CapacityOf(block->size_);
  Poison(block->data_, capacity);
  impl_->Release(*block);
  impl_->Uncount(block->size_);
  impl_->Unreserve(capacity);
}

ArenaStats Arena::stats() const { return impl_->stats(); }
std::vector<SegmentView> Arena::segments() const { return impl_->segments(); }

const std::shared_ptr<Arena>& ProcessArena() {
  static const auto& arena =
      *new std::shared_ptr<Arena>(Arena::Create({.max_bytes = 0, .shareable = false}));
  return arena;
}

}  // namespace gear_reverb::memory
