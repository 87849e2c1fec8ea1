#include "native/memory/run_heap.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "native/memory/testing_util.h"

namespace gear_reverb::memory {
namespace {

// What the system holds for the memfds of `heap`.
size_t CommittedBytes(const RunHeap& heap) {
  size_t bytes = 0;
  for (const SegmentView& segment : heap.segments()) {
    struct stat status;
    EXPECT_EQ(fstat(segment.fd, &status), 0);
    bytes += status.st_blocks * 512;
  }
  return bytes;
}

PageRun* AllocateTouched(RunHeap& heap, size_t pages) {
  PageRun* run = heap.Allocate(pages).value();
  std::memset(run->data(), 1, run->bytes());
  return run;
}

TEST(RunBinsTest, FitsAreLargeEnoughAndExactOnesAreFound) {
  std::mt19937_64 random(1);
  std::vector<PageRun> runs(500);
  RunBins bins;
  for (PageRun& run : runs) {
    run.pages = 1 + (random() >> (44 + random() % 20));
    bins.Insert(&run);
  }
  for (int round = 0; round < 2000; ++round) {
    const size_t pages = 1 + (random() >> (44 + random() % 20));
    PageRun* fit = bins.FindFit(pages);
    if (fit == nullptr) continue;
    EXPECT_GE(fit->pages, pages);
    bins.Remove(fit);
    EXPECT_EQ(fit->previous, nullptr);
    EXPECT_EQ(fit->next, nullptr);
    bins.Insert(fit);
    EXPECT_EQ(bins.FindFit(fit->pages)->pages, fit->pages);
  }
  for (PageRun& run : runs) bins.Remove(&run);
  EXPECT_EQ(bins.FindFit(1), nullptr);
  EXPECT_EQ(bins.Largest(1), nullptr);
}

TEST(RunHeapTest, NothingIsMappedBeforeTheFirstRun) {
  RunHeap heap({});
  EXPECT_EQ(heap.stats().segments, 0);
}

TEST(RunHeapTest, FreedRunsMergeInAnyOrder) {
  std::mt19937_64 random(2);
  RunHeap heap({.segment_bytes = 8 * kMiB});
  for (int round = 0; round < 20; ++round) {
    std::vector<PageRun*> runs;
    for (size_t left = 2048; left > 0;) {
      const size_t pages = std::min<size_t>(left, 1 + random() % 100);
      runs.push_back(heap.Allocate(pages).value());
      left -= pages;
    }
    EXPECT_EQ(heap.stats().segments, 1);
    std::shuffle(runs.begin(), runs.end(), random);
    for (PageRun* run : runs) heap.Free(run);
    PageRun* all = heap.Allocate(2048).value();
    EXPECT_EQ(all->pages, 2048);
    EXPECT_EQ(heap.stats().segments, 1);
    heap.Free(all);
  }
}

TEST(RunHeapTest, RandomRunsNeverOverlap) {
  std::mt19937_64 random(3);
  RunHeap heap({.segment_bytes = 4 * kMiB});
  std::map<std::byte*, PageRun*> live;
  for (int step = 0; step < 20000; ++step) {
    if (live.empty() || random() % 100 < 52) {
      const size_t pages = random() % 50 == 0 ? 1 + random() % 3000 : 1 + random() % 60;
      PageRun* run = heap.Allocate(pages).value();
      ASSERT_GE(run->pages, pages);
      const auto next = live.lower_bound(run->data());
      if (next != live.end()) {
        ASSERT_LE(run->data() + run->bytes(), next->first);
      }
      if (next != live.begin()) {
        const PageRun* before = std::prev(next)->second;
        ASSERT_LE(before->data() + before->bytes(), run->data());
      }
      live[run->data()] = run;
    } else {
      const auto chosen = std::next(live.begin(), random() % live.size());
      heap.Free(chosen->second);
      live.erase(chosen);
    }
    if (live.size() > 300) {
      for (const auto& [data, run] : live) heap.Free(run);
      live.clear();
    }
  }
  for (const auto& [data, run] : live) heap.Free(run);
}

TEST(RunHeapTest, OversizedRunsHaveTheirOwnSegmentThatGoesWithThem) {
  RunHeap heap({.segment_bytes = 4 * kMiB});
  PageRun* small = heap.Allocate(1).value();
  PageRun* large = heap.Allocate(5 * kMiB / kPageBytes + 1).value();
  EXPECT_EQ(large->pages, large->segment->pages());
  EXPECT_EQ(heap.stats().segments, 2);
  heap.Free(large);
  EXPECT_EQ(heap.stats().segments, 1);
  EXPECT_EQ(heap.stats().reserved_bytes, 4 * kMiB);
  heap.Free(small);
  EXPECT_EQ(heap.stats().segments, 1);
}

TEST(RunHeapTest, SegmentsGrowWithTheHeap) {
  RunHeap heap({.segment_bytes = kMiB});
  std::vector<PageRun*> runs;
  for (int i = 0; i < 4096; ++i) runs.push_back(heap.Allocate(256).value());  // 4 GiB, untouched.
  EXPECT_LT(heap.stats().segments, 100);
  for (PageRun* run : runs) heap.Free(run);
}

TEST(RunHeapTest, AShrinkingHeapGivesMemoryBack) {
  RunHeap heap({});
  std::vector<PageRun*> runs;
  for (int i = 0; i < 400; ++i) runs.push_back(AllocateTouched(heap, 256));
  EXPECT_GE(CommittedBytes(heap), 400 * kMiB);
  // Every eighth survives, so that no segment is wholly free.
  for (size_t i = 0; i < runs.size(); ++i) {
    if (i % 8 != 0) heap.Free(runs[i]);
  }
  EXPECT_LE(heap.stats().idle_bytes, RunHeap::kMaxIdleBytes);
  EXPECT_LE(CommittedBytes(heap), 50 * kMiB + RunHeap::kMaxIdleBytes + 8 * kMiB);
  // What was given back is used again, and counts as idle no more.
  const size_t idle = heap.stats().idle_bytes;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (i % 8 == 0) continue;
    runs[i] = heap.Allocate(256).value();
    EXPECT_LE(heap.stats().idle_bytes, idle);
  }
  EXPECT_EQ(heap.stats().idle_bytes, 0);
  for (size_t i = 0; i < runs.size(); ++i) {
    if (i % 8 != 0) heap.Free(runs[i]);
  }
  for (size_t i = 0; i < runs.size(); i += 8) {
    EXPECT_EQ(runs[i]->data()[runs[i]->bytes() - 1], std::byte{1});
    heap.Free(runs[i]);
  }
  // When the peak has passed, no more than the minimum is kept.
  for (int i = 0; i < 2000; ++i) heap.Free(heap.Allocate(256).value());
  EXPECT_LE(heap.stats().idle_bytes, RunHeap::kMinIdleBytes);
  EXPECT_LE(CommittedBytes(heap), RunHeap::kMinIdleBytes + 8 * kMiB);
}

TEST(RunHeapTest, SteadyTurnoverKeepsItsPages) {
  std::mt19937_64 random(4);
  RunHeap heap({});
  std::vector<PageRun*> runs;
  for (int i = 0; i < 100; ++i) runs.push_back(AllocateTouched(heap, 256));
  const size_t committed = CommittedBytes(heap);
  for (int round = 0; round < 50; ++round) {
    std::shuffle(runs.begin(), runs.end(), random);
    for (int i = 0; i < 100; ++i) heap.Free(runs[i]);
    EXPECT_EQ(CommittedBytes(heap), committed);  // Nothing went, so nothing faults again.
    for (int i = 0; i < 100; ++i) runs[i] = heap.Allocate(256).value();
  }
  for (PageRun* run : runs) heap.Free(run);
}

TEST(RunHeapTest, RegisteredMemoryStays) {
  RunHeap heap({.segment_bytes = 4 * kMiB, .returns_memory = false});
  PageRun* large = AllocateTouched(heap, 40 * kMiB / kPageBytes);
  heap.Free(large);
  EXPECT_EQ(heap.stats().segments, 1);
  EXPECT_GE(CommittedBytes(heap), 40 * kMiB);
  // And is used again, in parts.
  heap.Free(heap.Allocate(10).value());
  EXPECT_EQ(heap.stats().segments, 1);
}

}  // namespace
}  // namespace gear_reverb::memory
