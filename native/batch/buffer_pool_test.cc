#include "native/batch/buffer_pool.h"

#include <cstring>
#include <thread>

#include "gtest/gtest.h"

namespace gear_reverb::batch {
namespace {

TEST(BufferPoolTest, ABufferIsUsedAgainOnceItIsFree) {
  for (const size_t bytes : {size_t{100}, size_t{100} << 10, size_t{5} << 20}) {
    const auto pool = BufferPool::Create(2);
    auto first = *pool->Allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first.get()) % BufferPool::kAlignment, 0u);
    std::memset(first.get(), 1, bytes);
    auto second = *pool->Allocate(bytes);
    EXPECT_NE(first.get(), second.get());
    std::byte* const address = first.get();
    auto other_owner = first;
    first = nullptr;
    EXPECT_EQ(pool->idle_bytes(), 0u);  // Still owned.
    other_owner = nullptr;
    EXPECT_GE(pool->idle_bytes(), bytes);
    EXPECT_EQ((*pool->Allocate(bytes - bytes / 50)).get(), address);
  }
}

TEST(BufferPoolTest, LargeBuffersStartAtHugePages) {
  const auto buffer = *BufferPool::Create(1)->Allocate(3 * BufferPool::kHugePageBytes + 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.get()) % BufferPool::kHugePageBytes, 0u);
}

TEST(BufferPoolTest, ALargeBufferIsNotSpentOnALittle) {
  const auto pool = BufferPool::Create(4);
  pool->Allocate(size_t{8} << 20)->reset();
  const auto small = *pool->Allocate(1000);
  EXPECT_GE(pool->idle_bytes(), size_t{8} << 20);
}

TEST(BufferPoolTest, IdleMemoryIsBounded) {
  const auto pool = BufferPool::Create(2);
  std::vector<std::shared_ptr<std::byte>> buffers;
  for (int i = 0; i < 10; ++i) buffers.push_back(*pool->Allocate(size_t{1} << 20));
  buffers.clear();
  EXPECT_EQ(pool->idle_bytes(), size_t{2} << 20);
}

TEST(BufferPoolTest, BuffersOutliveThePool) {
  auto pool = BufferPool::Create(2);
  const auto buffer = *pool->Allocate(size_t{1} << 20);
  pool = nullptr;
  std::memset(buffer.get(), 1, size_t{1} << 20);
}

TEST(BufferPoolTest, TooMuchIsRefused) {
  const auto pool = BufferPool::Create(2);
  EXPECT_TRUE(absl::IsResourceExhausted(pool->Allocate(SIZE_MAX - 5).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(pool->Allocate(size_t{1} << 60).status()));
}

TEST(BufferPoolTest, ManyThreads) {
  const auto pool = BufferPool::Create(3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const auto buffer = *pool->Allocate(70000 + 1000 * (i % 7));
        std::memset(buffer.get(), t, 70000);
        for (int k = 0; k < 70000; k += 10000) {
          ASSERT_EQ(buffer.get()[k], static_cast<std::byte>(t));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gear_reverb::batch
