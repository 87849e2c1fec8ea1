#include "native/storage/chunk_store.h"

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace gear_reverb::storage {
namespace {

ChunkPtr MakeChunk(uint64_t key, int32_t value = 0) {
  const auto bytes = absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&value), sizeof(value));
  static const auto& arena =
      *new std::shared_ptr<memory::Arena>(memory::Arena::Create({.shareable = false}));
  return CopyToChunk(*arena, key, {}, {tensor::TensorView{tensor::DType::kInt32, {1}, bytes}})
      .value();
}

TEST(ChunkStoreTest, FindsWhatLives) {
  ChunkStore store;
  EXPECT_EQ(store.Find(1), nullptr);
  ChunkPtr chunk = store.Insert(MakeChunk(1));
  EXPECT_EQ(store.Find(1), chunk);
  EXPECT_EQ(store.Find(2), nullptr);
  EXPECT_EQ(store.size(), 1);
}

TEST(ChunkStoreTest, TheLastReleaseRemovesTheEntry) {
  ChunkStore store;
  ChunkPtr chunk = store.Insert(MakeChunk(1));
  ChunkPtr second = store.Find(1);
  chunk.reset();
  EXPECT_NE(store.Find(1), nullptr);
  second.reset();
  EXPECT_EQ(store.Find(1), nullptr);
  EXPECT_EQ(store.size(), 0);
}

TEST(ChunkStoreTest, ARepeatedKeyGivesTheFirstChunk) {
  ChunkStore store;
  const ChunkPtr first = store.Insert(MakeChunk(7, 1));
  EXPECT_EQ(store.Insert(MakeChunk(7, 2)), first);
  EXPECT_EQ(store.Insert(first), first);
  EXPECT_EQ(store.size(), 1);
}

TEST(ChunkStoreTest, AKeyCanComeAgain) {
  ChunkStore store;
  store.Insert(MakeChunk(7, 1));
  EXPECT_EQ(store.size(), 0);
  const ChunkPtr again = store.Insert(MakeChunk(7, 2));
  EXPECT_EQ(store.Find(7), again);
}

TEST(ChunkStoreTest, ChunksOutliveTheStore) {
  ChunkPtr chunk;
  {
    ChunkStore store;
    chunk = store.Insert(MakeChunk(7, 5));
  }
  EXPECT_EQ(chunk->key(), 7);
  chunk.reset();
}

TEST(ChunkStoreTest, AChunkStaysInTheStoreThatItIsIn) {
  ChunkStore a, b;
  ChunkPtr chunk = a.Insert(MakeChunk(7));
  EXPECT_EQ(b.Insert(chunk), chunk);
  EXPECT_EQ(a.Find(7), chunk);
  EXPECT_EQ(b.Find(7), nullptr);
  chunk.reset();
  EXPECT_EQ(a.size() + b.size(), 0);
}

// Few keys and short lives, so that releases meet insertions of the same key.
TEST(ChunkStoreTest, ReleasesRaceWithInsertionsOfTheSameKey) {
  ChunkStore store;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<ChunkPtr> held(4);
      for (int step = 0; step < 20000; ++step) {
        const uint64_t key = random() % 4;
        ChunkPtr& slot = held[random() % held.size()];
        switch (random() % 3) {
          case 0: slot = store.Insert(MakeChunk(key)); break;
          case 1: slot = store.Find(key); break;
          case 2: slot.reset(); break;
        }
        // While one is held, the store has this very chunk.
        if (slot != nullptr) wrong += store.Find(slot->key()) != slot;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(store.size(), 0);
}

TEST(ChunkStoreTest, TheStoreMayGoWhileChunksAreReleased) {
  for (int round = 0; round < 200; ++round) {
    auto store = std::make_unique<ChunkStore>();
    std::vector<ChunkPtr> chunks;
    for (int i = 0; i < 20; ++i) chunks.push_back(store->Insert(MakeChunk(i)));
    std::thread releaser([&] { chunks.clear(); });
    store.reset();
    releaser.join();
  }
}

}  // namespace
}  // namespace gear_reverb::storage
