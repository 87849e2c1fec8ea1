#include "native/memory/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "native/base/copy_bytes.h"
#include "native/base/mutex.h"
#include "native/memory/size_classes.h"
#include "native/memory/testing_util.h"

namespace gear_reverb::memory {
namespace {

// A block filled with a pattern of its own, so that any overlap or stray write shows.
struct Filled {
  Block block;
  uint64_t seed = 0;

  static Filled Of(Block block, uint64_t seed) {
    Filled filled{std::move(block), seed};
    for (size_t i = 0; i < filled.block.size(); ++i) filled.block.data()[i] = filled.At(i);
    return filled;
  }
  std::byte At(size_t i) const {
    return static_cast<std::byte>((seed + i) * 0x9e3779b97f4a7c15 >> 56);
  }
  bool Intact() const {
    for (size_t i = 0; i < block.size(); ++i) {
      if (block.data()[i] != At(i)) return false;
    }
    return true;
  }
};

size_t RandomSize(std::mt19937_64& random) {
  switch (random() % 10) {
    case 0: return random() % 3;
    case 1: return random() % (random() % 20 == 0 ? 3 * kMiB : 60000);
    default: return random() % 5000;
  }
}

class ArenaTest : public testing::TestWithParam<bool> {
 protected:
  std::shared_ptr<Arena> New(ArenaOptions options = {}) {
    options.shareable = GetParam();
    return Arena::Create(options);
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, ArenaTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Shareable" : "Anonymous"; });

TEST_P(ArenaTest, RandomBlocksKeepTheirBytesAndAreAccounted) {
  std::mt19937_64 random(1);
  auto arena = New({.segment_bytes = 2 * kMiB});
  std::vector<Filled> live;
  size_t used = 0, payload = 0, blocks = 0;
  for (int step = 0; step < 4000; ++step) {
    if (live.empty() || (live.size() < 200 && random() % 100 < 55)) {
      const size_t size = RandomSize(random);
      auto block = arena->Allocate(size);
      ASSERT_TRUE(block.ok()) << block.status();
      ASSERT_EQ(block->size(), size);
      const size_t alignment =
          size < Arena::kAlignment ? Arena::kSmallAlignment : Arena::kAlignment;
      ASSERT_EQ(reinterpret_cast<uintptr_t>(block->data()) % alignment, 0);
      used += CapacityOf(size);
      payload += size;
      blocks += size > 0;
      live.push_back(Filled::Of(*std::move(block), random()));
    } else {
      std::swap(live[random() % live.size()], live.back());
      ASSERT_TRUE(live.back().Intact());
      used -= CapacityOf(live.back().block.size());
      payload -= live.back().block.size();
      blocks -= live.back().block.size() > 0;
      live.pop_back();
    }
    const ArenaStats stats = arena->stats();
    ASSERT_EQ(stats.used_bytes, used);
    ASSERT_EQ(stats.payload_bytes, payload);
    ASSERT_EQ(stats.live_blocks, blocks);
    ASSERT_LE(stats.used_bytes, stats.reserved_bytes);
  }
  for (const Filled& filled : live) EXPECT_TRUE(filled.Intact());
  live.clear();
  EXPECT_EQ(arena->stats().used_bytes, 0);
  EXPECT_EQ(arena->stats().payload_bytes, 0);
  EXPECT_EQ(arena->stats().live_blocks, 0);
}

TEST_P(ArenaTest, BlocksLieWhereTheySay) {
  auto arena = New({.segment_bytes = kMiB});
  std::vector<Block> blocks;
  for (size_t size : {1, 128, 129, 5000, 40000, 300000, 1 << 20, 3 << 20}) {
    for (int i = 0; i < 5; ++i) blocks.push_back(arena->Allocate(size).value());
  }
  std::map<uint32_t, SegmentView> segments;
  for (const SegmentView& segment : arena->segments()) {
    EXPECT_TRUE(segments.emplace(segment.id, segment).second);
    EXPECT_EQ(segment.fd >= 0, GetParam());
  }
  EXPECT_EQ(arena->stats().segments, segments.size());
  for (const Block& block : blocks) {
    const SegmentView& segment = segments.at(block.segment());
    EXPECT_EQ(segment.base + block.offset(), block.data());
    EXPECT_LE(block.offset() + block.size(), segment.bytes);
  }
}

TEST_P(ArenaTest, EmptyBlocksHaveNoBytesAndCostNothing) {
  auto arena = New();
  const Block block = arena->Allocate(0).value();
  EXPECT_EQ(block.size(), 0);
  EXPECT_TRUE(block.span().empty());
  EXPECT_EQ(arena->stats().live_blocks, 0);
  EXPECT_EQ(arena->stats().reserved_bytes, 0);
}

TEST_P(ArenaTest, BlocksMove) {
  auto arena = New();
  Filled a = Filled::Of(arena->Allocate(1000).value(), 1);
  Filled b = Filled::Of(arena->Allocate(2000).value(), 2);
  Block moved = std::move(a.block);
  EXPECT_EQ(a.block.data(), nullptr);
  EXPECT_EQ(a.block.size(), 0);
  moved = std::move(b.block);  // Frees what `moved` held.
  EXPECT_EQ(arena->stats().live_blocks, 1);
  b.block = std::move(moved);
  EXPECT_TRUE(b.Intact());
  Block& same = b.block;
  b.block = std::move(same);
  EXPECT_TRUE(b.Intact());
  b.block = Block();
  EXPECT_EQ(arena->stats().live_blocks, 0);
}

TEST_P(ArenaTest, BlocksKeepTheArenaAlive) {
  auto arena = New();
  Filled filled = Filled::Of(arena->Allocate(100000).value(), 7);
  std::weak_ptr<Arena> weak = arena;
  arena.reset();
  EXPECT_TRUE(filled.Intact());
  filled.block = Block();
  EXPECT_TRUE(weak.expired());
}

TEST_P(ArenaTest, TheLimitIsOnCapacityAndAnErrorChangesNothing) {
  auto arena = New({.max_bytes = 10 * kSmallestBlock + kMiB});
  std::vector<Block> blocks;
  blocks.push_back(arena->Allocate(kMiB).value());
  for (int i = 0; i < 10; ++i) blocks.push_back(arena->Allocate(1).value());
  const ArenaStats before = arena->stats();
  for (size_t size : {size_t{1}, kMiB, SIZE_MAX}) {
    EXPECT_EQ(arena->Allocate(size).status().code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(arena->stats().used_bytes, before.used_bytes);
  EXPECT_EQ(arena->stats().live_blocks, before.live_blocks);
  EXPECT_TRUE(arena->Allocate(0).ok());
  blocks.pop_back();
  EXPECT_TRUE(arena->Allocate(kSmallestBlock).ok());
}

TEST_P(ArenaTest, WhatTheSystemRefusesIsExhausted) {
  auto arena = New();
  for (size_t size : {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 62, size_t{1} << 50}) {
    EXPECT_EQ(arena->Allocate(size).status().code(), absl::StatusCode::kResourceExhausted) << size;
  }
  EXPECT_EQ(arena->stats().used_bytes, 0);
  EXPECT_EQ(arena->stats().segments, 0);
  EXPECT_TRUE(arena->Allocate(100).ok());
}

TEST_P(ArenaTest, ThreadsFreeEachOthersBlocks) {
  auto arena = New({.segment_bytes = 2 * kMiB});
  base::Mutex mutex;
  std::vector<Filled> mailbox;
  std::vector<std::thread> threads;
  std::atomic<int> broken{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<Filled> mine;
      for (int step = 0; step < 1500; ++step) {
        const size_t size = random() % 20 == 0 ? random() % 100000 : random() % 2000;
        mine.push_back(Filled::Of(arena->Allocate(size).value(), random()));
        Filled taken;
        {
          base::MutexLock lock(&mutex);
          if (!mailbox.empty() && random() % 2 == 0) {
            std::swap(mailbox[random() % mailbox.size()], mailbox.back());
            taken = std::move(mailbox.back());
            mailbox.pop_back();
          } else if (mailbox.size() < 200) {
            mailbox.push_back(std::move(mine.back()));
            mine.pop_back();
          }
        }
        broken += !taken.Intact();
        if (mine.size() > 50) {
          broken += !mine[random() % mine.size()].Intact();
          mine.erase(mine.begin(), mine.begin() + 30);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(broken, 0);
  mailbox.clear();
  EXPECT_EQ(arena->stats().used_bytes, 0);
  EXPECT_EQ(arena->stats().live_blocks, 0);
}

TEST_P(ArenaTest, FreedSmallBlocksMakeRoomForLargeOnes) {
  auto arena = New({.segment_bytes = 4 * kMiB});
  std::vector<Block> blocks;
  for (int i = 0; i < 30000; ++i) blocks.push_back(arena->Allocate(128).value());
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937_64(5));
  blocks.clear();
  // One slab of the class may stay; the rest is one run again.
  EXPECT_TRUE(arena->Allocate(2 * kMiB).ok());
  EXPECT_EQ(arena->stats().segments, 1);
}

#if defined(__SANITIZE_ADDRESS__)
TEST_P(ArenaTest, TheSanitizerSeesUseOutsideOfBlocks) {
  auto arena = New();
  Block block = arena->Allocate(1000).value();
  volatile std::byte* data = block.data();
  EXPECT_DEATH(data[1000] = std::byte{1}, "use-after-poison");
  block = Block();
  EXPECT_DEATH(data[0] = std::byte{1}, "use-after-poison");
}
#endif

size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST_P(ArenaTest, TheProcessShrinksWhenBlocksGo) {
  auto arena = New();
  for (const auto& [size, count] : {std::pair<size_t, int>{kMiB, 448}, {10000, 45000}}) {
    std::vector<Block> blocks;
    for (int i = 0; i < count; ++i) {
      blocks.push_back(arena->Allocate(size).value());
      std::memset(blocks.back().data(), 1, size);
    }
    const size_t full = ResidentBytes();
    blocks.clear();
    EXPECT_LT(ResidentBytes() + 150 * kMiB, full);
  }
}

TEST(SharedArenaTest, AnotherMappingSeesTheBytes) {
  auto arena = Arena::Create({});
  const Filled filled = Filled::Of(arena->Allocate(100000).value(), 3);
  const SegmentView segment = arena->segments().at(0);
  const std::string path = "/proc/self/fd/" + std::to_string(segment.fd);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  void* mapped = mmap(nullptr, segment.bytes, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_EQ(std::memcmp(static_cast<char*>(mapped) + filled.block.offset(), filled.block.data(),
                        filled.block.size()),
            0);
  munmap(mapped, segment.bytes);
  EXPECT_EQ(mmap(nullptr, segment.bytes, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  close(fd);
}

TEST(SharedArenaTest, NobodyCanResizeASegment) {
  auto arena = Arena::Create({});
  const Block block = arena->Allocate(1).value();
  const SegmentView segment = arena->segments().at(0);
  EXPECT_NE(ftruncate(segment.fd, 4096), 0);
  EXPECT_NE(ftruncate(segment.fd, segment.bytes * 2), 0);
  EXPECT_NE(fcntl(segment.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  EXPECT_NE(fcntl(segment.fd, F_GETFD) & FD_CLOEXEC, 0);
}

// The blocks are so many that freeing them gives memory, which is the parent's too, to the system.
TEST(SharedArenaTest, AForkedChildCannotDisturbItsParent) {
  auto arena = Arena::Create({});
  std::vector<Block> large;
  for (int i = 0; i < 6; ++i) {
    large.push_back(arena->Allocate(60 * kMiB).value());
    large.back().data()[30 * kMiB] = std::byte{7};
  }
  Filled small = Filled::Of(arena->Allocate(100).value(), 2);
  const auto intact = [&] {
    return small.Intact() && std::all_of(large.begin(), large.end(), [](const Block& block) {
             return block.data()[30 * kMiB] == std::byte{7};
           });
  };
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool readable = intact();
    const bool refused =
        arena->Allocate(100).status().code() == absl::StatusCode::kFailedPrecondition;
    large.clear();
    small.block = Block();
    arena.reset();
    _exit(readable && refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(intact());
  EXPECT_TRUE(arena->Allocate(100).ok());
}

// Fresh or used memory, whole or in parts, shareable or not, past the caches or through them: the
// bytes arrive.
TEST(BlockTest, WriteCopiesInto) {
  std::vector<std::byte> bytes(300 * kKiB + 7);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 31 % 251);
  const absl::Span<const std::byte> all(bytes);
  struct Case {
    bool shareable;
    size_t cache_bytes;
    bool streaming;
  };
  for (const auto& [shareable, cache_bytes, streaming] :
       {Case{true, kKiB << 20, true}, Case{false, kKiB << 20, true}, Case{true, 0, true},
        Case{false, 0, true}, Case{true, 0, false}}) {
    base::SetStreamingPays(streaming);
    auto arena = Arena::Create({.shareable = shareable, .cache_bytes = cache_bytes});
    for (const size_t size : {bytes.size(), bytes.size(), 100 * kKiB, 20 * kKiB, size_t{1}}) {
      Block block = arena->Allocate(size).value();
      const size_t split = size / 3;
      block.Write(0, all.first(split));
      block.Write(split, all.subspan(split, size - split));
      EXPECT_TRUE(std::equal(block.data(), block.data() + size, bytes.begin())) << size;
      block.data()[size - 1] = std::byte{1};  // The mapping and the file are one memory.
      block.Write(0, all.first(size));
      EXPECT_TRUE(std::equal(block.data(), block.data() + size, bytes.begin())) << size;
    }
  }
  base::SetStreamingPays(std::nullopt);
}

TEST(ProcessArenaTest, IsOneAnonymousArena) {
  EXPECT_EQ(ProcessArena(), ProcessArena());
  const Block block = ProcessArena()->Allocate(10).value();
  for (const SegmentView& segment : ProcessArena()->segments()) EXPECT_EQ(segment.fd, -1);
}

}  // namespace
}  // namespace gear_reverb::memory
