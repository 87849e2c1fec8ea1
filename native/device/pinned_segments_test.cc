#include "native/device/pinned_segments.h"

#include <climits>
#include <cstring>
#include <map>

#include "gtest/gtest.h"
#include "native/base/status.h"

namespace gear_reverb::device {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Has other addresses than the host: `kOffset` more.
class FakeRegistrar : public Registrar {
 public:
  static constexpr uintptr_t kOffset = uintptr_t{1} << 50;

  absl::StatusOr<const std::byte*> Register(std::byte* base, size_t bytes,
                                            bool read_only) override {
    EXPECT_FALSE(read_only);
    base::MutexLock lock(&mutex_);
    ++attempts_;
    if (failures_ > 0) {
      --failures_;
      return error_;
    }
    registered_[base] = bytes;
    return reinterpret_cast<const std::byte*>(reinterpret_cast<uintptr_t>(base) + kOffset);
  }
  void Unregister(std::byte* base) override {
    base::MutexLock lock(&mutex_);
    EXPECT_EQ(registered_.erase(base), 1u);
  }
  size_t count() {
    base::MutexLock lock(&mutex_);
    return registered_.size();
  }
  int attempts() {
    base::MutexLock lock(&mutex_);
    return attempts_;
  }
  void Fail(int times, absl::Status error = absl::InternalError("no more")) {
    base::MutexLock lock(&mutex_);
    failures_ = times;
    error_ = std::move(error);
  }

 private:
  base::Mutex mutex_;
  std::map<std::byte*, size_t> registered_;
  int attempts_ = 0, failures_ = 0;
  absl::Status error_;
};

struct Fixture {
  explicit Fixture(uint64_t limit = 1 << 30, const PinnedSegments::Retries& retries = {})
      : budget(std::make_shared<RegistrationBudget>(limit)),
        segments(std::make_shared<ArenaSource>(arena), registrar, budget, retries) {}

  static const std::byte* OnDevice(const memory::Block& block) {
    return reinterpret_cast<const std::byte*>(reinterpret_cast<uintptr_t>(block.data()) +
                                              FakeRegistrar::kOffset);
  }

  std::shared_ptr<memory::Arena> arena = memory::Arena::Create({.segment_bytes = kMiB});
  std::shared_ptr<FakeRegistrar> registrar = std::make_shared<FakeRegistrar>();
  std::shared_ptr<RegistrationBudget> budget;
  PinnedSegments segments;
};

TEST(PinnedSegmentsTest, SegmentsAreFoundAlsoThoseThatCameLater) {
  Fixture f;
  std::vector<memory::Block> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(f.arena->Allocate(600 << 10).value());  // Each needs a segment.
    f.segments.WaitUntilTried();
    for (const memory::Block& block : blocks) {
      EXPECT_EQ(f.segments.Find(block.data(), block.size()), Fixture::OnDevice(block));
      EXPECT_EQ(f.segments.Find(block.data() + 5, 7), Fixture::OnDevice(block) + 5);
    }
  }
  EXPECT_EQ(f.registrar->count(), f.arena->segments().size());
  EXPECT_EQ(f.budget->used_bytes(), f.arena->stats().reserved_bytes);
  EXPECT_EQ(f.budget->last_error(), "");
}

TEST(PinnedSegmentsTest, SegmentsAreRegisteredBeforeAnybodyAsks) {
  Fixture f;
  std::vector<memory::Block> blocks;
  for (size_t i = 1; i < 4; ++i) {
    blocks.push_back(f.arena->Allocate(600 << 10).value());
    while (f.registrar->count() < i) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(f.segments.Find(blocks.back().data(), 1), Fixture::OnDevice(blocks.back()));
  }
}

TEST(PinnedSegmentsTest, WhatIsNotWhollyInASegmentIsNotFound) {
  Fixture f;
  const memory::Block block = f.arena->Allocate(100).value();
  f.segments.WaitUntilTried();
  const memory::SegmentView segment = f.arena->segments()[0];
  std::byte elsewhere{};
  EXPECT_EQ(f.segments.Find(&elsewhere, 1), nullptr);
  EXPECT_NE(f.segments.Find(segment.base, segment.bytes), nullptr);
  EXPECT_EQ(f.segments.Find(segment.base, segment.bytes + 1), nullptr);
  EXPECT_EQ(f.segments.Find(segment.base + segment.bytes, 1), nullptr);
}

TEST(PinnedSegmentsTest, TheLimitHoldsAndIsTold) {
  Fixture f(/*limit=*/kMiB + 10);
  const memory::Block first = f.arena->Allocate(600 << 10).value();
  f.segments.WaitUntilTried();
  const memory::Block second = f.arena->Allocate(600 << 10).value();
  f.segments.WaitUntilTried();
  EXPECT_NE(f.segments.Find(first.data(), first.size()), nullptr);
  EXPECT_EQ(f.segments.Find(second.data(), second.size()), nullptr);
  EXPECT_EQ(f.registrar->count(), 1u);
  EXPECT_NE(f.budget->last_error().find("over the limit"), std::string::npos);
}

TEST(PinnedSegmentsTest, AFailureIsToldAndCostsNothing) {
  Fixture f;
  f.registrar->Fail(INT_MAX);
  const memory::Block block = f.arena->Allocate(100).value();
  f.segments.WaitUntilTried();
  EXPECT_EQ(f.segments.Find(block.data(), block.size()), nullptr);
  EXPECT_EQ(f.budget->used_bytes(), 0u);
  EXPECT_EQ(f.budget->last_error(), "no more");
}

// What of `block` is found after each of `looks` times that its segment may be tried.
std::vector<bool> Looks(Fixture& f, const memory::Block& block, int looks) {
  std::vector<bool> found;
  for (int i = 0; i < looks; ++i) {
    f.segments.WaitUntilTried();
    found.push_back(f.segments.Find(block.data(), block.size()) == Fixture::OnDevice(block));
  }
  return found;
}

TEST(PinnedSegmentsTest, WhatFailedIsTriedAgain) {
  Fixture f(1 << 30, {.tries = 4, .after = absl::ZeroDuration()});
  f.registrar->Fail(2);
  const memory::Block block = f.arena->Allocate(100).value();
  while (!Looks(f, block, 1)[0]) {
  }
  EXPECT_EQ(f.registrar->attempts(), 3);
  EXPECT_EQ(f.budget->used_bytes(), f.arena->stats().reserved_bytes);
}

TEST(PinnedSegmentsTest, WhatFailsIsNotTriedForEver) {
  Fixture f(1 << 30, {.tries = 3, .after = absl::ZeroDuration()});
  f.registrar->Fail(INT_MAX);
  const memory::Block block = f.arena->Allocate(100).value();
  EXPECT_EQ(Looks(f, block, 10), std::vector<bool>(10));
  EXPECT_EQ(f.registrar->attempts(), 3);
  EXPECT_EQ(f.budget->used_bytes(), 0u);
}

TEST(PinnedSegmentsTest, WhatFailedIsNotTriedBeforeItsTimeNorWhereItCannotBe) {
  Fixture late(1 << 30, {.tries = 3, .after = absl::Hours(1)});
  Fixture never(1 << 30, {.tries = 3, .after = absl::ZeroDuration()});
  late.registrar->Fail(1);
  never.registrar->Fail(1, absl::UnimplementedError("there is no such thing"));
  for (Fixture* f : {&late, &never}) {
    const memory::Block block = f->arena->Allocate(100).value();
    EXPECT_EQ(Looks(*f, block, 5), std::vector<bool>(5));
    EXPECT_EQ(f->registrar->attempts(), 1);
  }
}

TEST(PinnedSegmentsTest, AtTheEndEverythingIsUnregistered) {
  auto arena = memory::Arena::Create({.segment_bytes = kMiB});
  auto registrar = std::make_shared<FakeRegistrar>();
  auto budget = std::make_shared<RegistrationBudget>(1 << 30);
  const memory::Block block = arena->Allocate(100).value();
  {
    PinnedSegments segments(std::make_shared<ArenaSource>(arena), registrar, budget);
    segments.WaitUntilTried();
    EXPECT_EQ(registrar->count(), 1u);
  }
  EXPECT_EQ(registrar->count(), 0u);
  EXPECT_EQ(budget->used_bytes(), 0u);
}

// Registered pages must stay the segment's: neither punched out nor unmapped.
TEST(PinnedSegmentsTest, TheArenaKeepsItsMemory) {
  Fixture f;
  f.segments.WaitUntilTried();
  const auto large = [&] { return f.arena->Allocate(100 * kMiB).value(); };
  {
    memory::Block block = large();
    std::memset(block.data(), 1, block.size());
  }
  const size_t segments = f.arena->segments().size();
  EXPECT_GE(f.arena->stats().idle_bytes, 100 * kMiB);
  EXPECT_EQ(f.arena->segments().size(), segments);
  EXPECT_GE(f.arena->stats().reserved_bytes, 100 * kMiB);
}

}  // namespace
}  // namespace gear_reverb::device
