#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "native/base/copy_bytes.h"
#include "native/base/philox.h"
#include "native/kernels/copy_pool.h"
#include "native/kernels/gather.h"

namespace gear_reverb::kernels {
namespace {

constexpr std::byte kUntouched{0xEE};

std::vector<std::byte> RandomBytes(size_t size, uint64_t seed) {
  std::vector<uint64_t> words(size / sizeof(uint64_t) + 1);
  base::Philox(seed).Fill(absl::MakeSpan(words));
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), words.data(), size);
  return bytes;
}

// Gathers pieces of `sizes` from random places of one source to places in random order, a gap of
// `gap` bytes after each, and checks every byte of the destination.
void CheckGather(const std::vector<size_t>& sizes, size_t gap, int threads, uint64_t seed = 1) {
  size_t largest = 1, total = 0;
  for (const size_t size : sizes) {
    largest = std::max(largest, size);
    total += size + gap;
  }
  const std::vector<std::byte> source = RandomBytes(2 * largest + 64, seed);
  std::vector<std::byte> out(total + 1, kUntouched), expected(total + 1, kUntouched);
  base::Philox random(seed);
  std::vector<Copy> copies;
  size_t offset = 1;  // Not aligned.
  for (const size_t size : sizes) {
    const std::byte* const from = source.data() + random.NextBelow(source.size() - size);
    copies.push_back({from, out.data() + offset, size});
    std::copy(from, from + size, expected.begin() + offset);
    offset += size + gap;
  }
  for (size_t i = copies.size(); i > 1; --i) {
    std::swap(copies[i - 1], copies[random.NextBelow(i)]);
  }
  Gather(copies, {threads});
  EXPECT_TRUE(out == expected) << sizes.size() << " pieces, " << threads << " threads";
}

TEST(GatherTest, NothingIsNothing) {
  Gather({});
  CheckGather({0}, 0, 1);
  CheckGather({0, 0, 0}, 3, 4);
}

TEST(GatherTest, EverySmallSizeIsExact) {
  for (size_t size = 0; size <= 300; ++size) CheckGather(std::vector<size_t>(5, size), 2, 1, size);
}

TEST(GatherTest, StreamingCopiesAreExactAtEveryAlignment) {
  const std::vector<std::byte> source = RandomBytes(40000, 9);
  if (!base::HasStreaming()) GTEST_SKIP() << "this processor has no AVX2";
  for (size_t to = 0; to < 70; to += 7) {
    for (const size_t size : {0, 1, 63, 64, 2047, 2048, 2049, 4096, 16384, 32768, 39800}) {
      std::vector<std::byte> out(40000, kUntouched), expected(40000, kUntouched);
      base::CopyStreaming(out.data() + to, source.data() + size % 7, size);
      base::FinishStreaming();
      std::copy_n(source.begin() + size % 7, size, expected.begin() + to);
      EXPECT_TRUE(out == expected) << to << " " << size;
    }
  }
}

TEST(GatherTest, LargeGathersAreExactWithAnyNumberOfThreads) {
  for (const bool streaming : {false, true}) {
    base::SetStreamingPays(streaming);
    for (const int threads : {0, 1, 2, 3, 8}) {
      CheckGather({(size_t{9} << 20) + 3}, 0, threads);  // A single piece is split.
      CheckGather(std::vector<size_t>(200, 65536), 0, threads);
      CheckGather(std::vector<size_t>(60000, 33), 1, threads);
      CheckGather({0, 3 << 20, 0, 1, 0, 262144, 262144, 262143, 2, 0}, 5, threads);
    }
  }
  base::SetStreamingPays(std::nullopt);
}

TEST(GatherTest, RandomSizes) {
  base::Philox random(5);
  for (uint64_t round = 0; round < 20; ++round) {
    std::vector<size_t> sizes(1 + random.NextBelow(50));
    for (size_t& size : sizes) size = random.NextBelow(uint64_t{1} << random.NextBelow(20));
    CheckGather(sizes, random.NextBelow(3), 1 + random.NextBelow(4), round);
  }
}

TEST(GatherTest, ManyThreadsGatherAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 10; ++i) CheckGather(std::vector<size_t>(40, 65536), 0, 3, t * 100 + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CopyPoolTest, AfterWorkThatThrewThereIsHelpAgain) {
  for (int round = 0; round < 3; ++round) {
    const auto caller = std::this_thread::get_id();
    std::atomic<bool> helped{false};
    const auto work = [&] {
      if (std::this_thread::get_id() != caller) {
        helped.store(true);
      } else {
        while (!helped.load()) std::this_thread::yield();
        if (round < 2) throw std::bad_alloc();
      }
    };
    if (round < 2) {
      EXPECT_THROW(CopyPool::Get().Run(1, work), std::bad_alloc);
    } else {
      CopyPool::Get().Run(1, work);
    }
  }
}

#if !defined(__SANITIZE_THREAD__)
TEST(GatherTest, AForkedChildHasThreadsOfItsOwn) {
  CheckGather(std::vector<size_t>(40, 65536), 0, 3);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // Rather than hanging.
    CheckGather(std::vector<size_t>(40, 65536), 0, 3);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  CheckGather(std::vector<size_t>(40, 65536), 0, 3);
}
#endif

}  // namespace
}  // namespace gear_reverb::kernels
