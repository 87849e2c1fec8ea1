#include "native/memory/run_heap.h"

#include <algorithm>
#include <utility>

#include "native/base/status.h"

namespace gear_reverb::memory {
namespace {

constexpr size_t kMinSegmentBytes = size_t{1} << 20;
// A new segment has at least this share of the address space that the heap already has, so that
// the number of segments (and of file descriptors) grows with the logarithm of the bytes.
constexpr size_t kGrowthDivisor = 8;
// Shorter runs are not worth a system call.
constexpr size_t kMinReleasePages = 16;

}  // namespace

RunHeap::RunHeap(const ArenaOptions& options, Arena* arena)
    : arena_(arena),
      segment_pages_(PagesOf(std::max(options.segment_bytes, kMinSegmentBytes))),
      shareable_(options.shareable),
      returns_memory_(options.returns_memory) {}

absl::StatusOr<PageRun*> RunHeap::Allocate(size_t pages) {
  base::MutexLock lock(&mutex_);
  PageRun* run = touched_runs_.FindFit(pages);
  if (run == nullptr) run = untouched_runs_.FindFit(pages);
  bool own_segment = false;
  if (run == nullptr) {
    GR_ASSIGN_OR_RETURN(run, AddSegment(pages));
    own_segment = pages > segment_pages_;
  }
  RemoveFree(run);
  // Nothing else may keep a segment alive that was made for one block.
  if (run->pages > pages && !own_segment) Split(run, pages);
  run->fresh = run->segment->CountTouched(run->first_page, run->pages) == 0;
  run->segment->MarkTouched(run->first_page, run->pages, true);
  NoteAllocation(run->pages);
  return run;
}

void RunHeap::Free(PageRun* run) {
  // Destroyed without the lock; its memory goes at once, whoever else has it mapped.
  struct Releasing {
    ~Releasing() {
      if (segment != nullptr) segment->Release(0, segment->pages());
    }
    std::unique_ptr<Segment> segment;
  } unmapped;
  base::MutexLock lock(&mutex_);
  used_pages_ -= run->pages;
  Segment* segment = run->segment;
  if (returns_memory_ && run->pages == segment->pages() && run->pages > segment_pages_) {
    const auto found = segments_.find(segment->id());
    unmapped.segment = std::move(found->second);
    segments_.erase(found);
    segments_version_.fetch_add(1, std::memory_order_release);
    reserved_pages_ -= unmapped.segment->pages();
    return;
  }
  run->touched_pages = run->pages;
  InsertFree(Merge(run));
  if (returns_memory_) ReleaseIdle();
}

void RunHeap::KeepMemory() {
  base::MutexLock lock(&mutex_);
  returns_memory_ = false;
  while (releasing_) released_.Wait(&mutex_);
}

void RunHeap::PreferNode(int node) {
  base::MutexLock lock(&mutex_);
  if (node_ == kAnyNode) node_ = node;
}

RunHeap::Stats RunHeap::stats() const {
  base::MutexLock lock(&mutex_);
  return {segments_.size(), reserved_pages_ * kPageBytes, idle_pages_ * kPageBytes};
}

std::vector<SegmentView> RunHeap::segments() const {
  base::MutexLock lock(&mutex_);
  std::vector<SegmentView> views;
  for (const auto& [id, segment] : segments_) {
    views.push_back({id, segment->fd(), segment->base(), segment->bytes()});
  }
  std::sort(views.begin(), views.end(),
            [](const SegmentView& a, const SegmentView& b) { return a.id < b.id; });
  return views;
}

absl::StatusOr<PageRun*> RunHeap::AddSegment(size_t pages) {
  const size_t wanted =
      pages > segment_pages_ ? pages : std::max(segment_pages_, reserved_pages_ / kGrowthDivisor);
  if (wanted > SIZE_MAX / kPageBytes) {
    return absl::ResourceExhaustedError("Cannot map more memory than there are addresses.");
  }
  auto segment = Segment::Map(next_segment_, wanted * kPageBytes, shareable_, node_);
  if (!segment.ok() && wanted > std::max(pages, segment_pages_)) {
    segment = Segment::Map(next_segment_, segment_pages_ * kPageBytes, shareable_, node_);
  }
  // Memory that cannot be shared is better than none.
  if (!segment.ok() && shareable_) {
    segment =
        Segment::Map(next_segment_, std::max(pages, segment_pages_) * kPageBytes, false, node_);
  }
  if (!segment.ok()) return segment.status();
  ++next_segment_;
  reserved_pages_ += (*segment)->pages();
  (*segment)->set_arena(arena_);
  PageRun* run = (*segment)->run_at(0);
  segments_.emplace((*segment)->id(), *std::move(segment));
  InsertFree(run);
  return run;
}

void RunHeap::InsertFree(PageRun* run) {
  run->free = true;
  idle_pages_ += run->touched_pages;
  (run->touched_pages > 0 ? touched_runs_ : untouched_runs_).Insert(run);
}

void RunHeap::RemoveFree(PageRun* run) {
  run->free = false;
  idle_pages_ -= run->touched_pages;
  (run->touched_pages > 0 ? touched_runs_ : untouched_runs_).Remove(run);
}

// Joins `run`, which is in no bin, with its free neighbours; the result is in no bin either.
PageRun* RunHeap::Merge(PageRun* run) {
  Segment* segment = run->segment;
  const auto join = [&](PageRun* left, PageRun* right) {
    left->pages += right->pages;
    left->touched_pages += right->touched_pages;
    segment->SetBoundaries(left);
    delete right;
    return left;
  };
  if (run->first_page > 0) {
    PageRun* left = segment->run_at(run->first_page - 1);
    if (left->free) {
      RemoveFree(left);
      run = join(left, run);
    }
  }
  if (run->first_page + run->pages < segment->pages()) {
    PageRun* right = segment->run_at(run->first_page + run->pages);
    if (right->free) {
      RemoveFree(right);
      run = join(run, right);
    }
  }
  return run;
}

// Shortens `run`, which is in no bin, to `pages`; the rest becomes a free run.
void RunHeap::Split(PageRun* run, size_t pages) {
  Segment* segment = run->segment;
  const size_t touched = segment->CountTouched(run->first_page, pages);
  PageRun* rest = new PageRun(segment, run->first_page + pages, run->pages - pages);
  rest->touched_pages = run->touched_pages - touched;
  run->pages = pages;
  segment->SetBoundaries(run);
  segment->SetBoundaries(rest);
  InsertFree(rest);
}

void RunHeap::NoteAllocation(size_t pages) {
  used_pages_ += pages;
  period_allocated_ += pages;
  period_peak_ = std::max(period_peak_, used_pages_);
  if (period_allocated_ > 2 * std::max(period_peak_, kMinIdleBytes / kPageBytes)) {
    last_peak_ = period_peak_;
    period_peak_ = used_pages_;
    period_allocated_ = 0;
  }
}

size_t RunHeap::IdleLimitPages() const {
  const size_t peak = std::max(last_peak_, period_peak_);
  return std::clamp(peak - used_pages_, kMinIdleBytes / kPageBytes, kMaxIdleBytes / kPageBytes);
}

void RunHeap::ReleaseIdle() {
  const size_t limit = IdleLimitPages();
  if (idle_pages_ <= limit || releasing_) return;
  releasing_ = true;
  bool released = true;
  // Some more than necessary, so that the next free does not come here again.
  while (released && returns_memory_ && idle_pages_ > limit - limit / 4) {
    PageRun* run = touched_runs_.Largest(kMinReleasePages);
    if (run == nullptr) break;
    RemoveFree(run);  // Nobody touches a run that is neither free nor handed out.
    mutex_.Unlock();
    released = run->segment->Release(run->first_page, run->pages);
    mutex_.Lock();
    if (released) {
      run->segment->MarkTouched(run->first_page, run->pages, false);
      run->touched_pages = 0;
    }
    InsertFree(Merge(run));
  }
  releasing_ = false;
  released_.NotifyAll();
}

}  // namespace gear_reverb::memory
