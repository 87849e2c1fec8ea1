#include "native/table/slot_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "absl/hash/hash.h"

namespace gear_reverb::table {
namespace {

// Keys of slots, as a store would hold them, and the plainest index of them beside ours.
class SlotIndexTest : public testing::Test {
 protected:
  auto key_of() const {
    return [this](Slot slot) { return keys_[slot]; };
  }
  void Insert(uint64_t key) {
    Slot slot = static_cast<Slot>(keys_.size());
    if (free_.empty()) {
      keys_.push_back(key);
    } else {
      slot = free_.back();
      free_.pop_back();
      keys_[slot] = key;
    }
    index_.Insert(key, slot, key_of());
    expected_[key] = slot;
  }
  void Erase(uint64_t key) {
    const auto found = expected_.find(key);
    index_.Erase(key, found->second);
    free_.push_back(found->second);
    expected_.erase(found);
  }
  Slot Find(uint64_t key) const { return index_.Find(key, key_of()); }
  void ExpectAllAreFound() {
    ASSERT_EQ(index_.size(), expected_.size());
    for (const auto& [key, slot] : expected_) ASSERT_EQ(Find(key), slot) << key;
  }

  SlotIndex index_;
  std::vector<uint64_t> keys_;
  std::vector<Slot> free_;
  std::map<uint64_t, Slot> expected_;
};

TEST_F(SlotIndexTest, FindsNothingInNothing) {
  EXPECT_EQ(Find(0), SlotIndex::kNone);
  Insert(0);
  EXPECT_EQ(Find(0), 0u);
  Erase(0);
  EXPECT_EQ(Find(0), SlotIndex::kNone);
}

TEST_F(SlotIndexTest, DoesWhatAMapDoes) {
  // Keys at random, in runs, and at few distances from each other.
  const std::vector<uint64_t> strides = {0x9e3779b97f4a7c15, 1, 1 << 20};
  for (const uint64_t stride : strides) {
    std::mt19937_64 random(stride);
    for (int step = 0; step < 60000; ++step) {
      const uint64_t key = random() % 3000 * stride;
      const bool growing = step % 20000 < 12000;
      if (const bool present = expected_.contains(key); !present) {
        ASSERT_EQ(Find(key), SlotIndex::kNone);
        if (growing) Insert(key);
      } else {
        ASSERT_EQ(Find(key), expected_[key]);
        if (!growing || random() % 2 == 0) Erase(key);
      }
      if (step % 5000 == 0) ExpectAllAreFound();
    }
    ExpectAllAreFound();
  }
}

TEST_F(SlotIndexTest, AWindowOfKeysMayMoveOnForEver) {
  // Every bucket has been full at some time; searches for what is not there still end.
  constexpr uint64_t kWindow = 140;
  for (uint64_t key = 0; key < 100000; ++key) {
    Insert(key);
    if (key >= kWindow) Erase(key - kWindow);
    ASSERT_EQ(Find(key + 1), SlotIndex::kNone);
  }
  ExpectAllAreFound();
  while (!expected_.empty()) Erase(expected_.begin()->first);
  for (uint64_t key = 0; key < 1000; ++key) ASSERT_EQ(Find(key), SlotIndex::kNone);
}

TEST_F(SlotIndexTest, NeighboursAreFoundTogether) {
  for (uint64_t key = 0; key < 500; ++key) Insert(2 * key);
  const auto of = [this](Slot slot) { return keys_[slot]; };
  for (uint64_t key = 0; key < 1000; key += 2) {
    ASSERT_TRUE(SlotIndex::AreNeighbours(key, key + 1));
    ASSERT_FALSE(SlotIndex::AreNeighbours(key + 1, key + 2));
    EXPECT_EQ(index_.FindAny({key, key + 1}, of), expected_[key]);
    EXPECT_EQ(index_.FindAny({key + 1}, of), SlotIndex::kNone);
    EXPECT_EQ(index_.FindAny({key + 2000, key + 2001}, of), SlotIndex::kNone);
  }
}

TEST_F(SlotIndexTest, SpreadOutHasRoomAfterItsNextGrowth) {
  index_.SpreadOut();
  for (uint64_t key = 0; key < 5000; ++key) Insert(key);
  ExpectAllAreFound();
  for (uint64_t key = 0; key < 5000; key += 3) Erase(key);
  ExpectAllAreFound();
}

TEST_F(SlotIndexTest, MoreMayPassABucketThanItCounts) {
  // Keys whose search begins at the first of 4096 buckets, and goes on alike.
  constexpr uint64_t kBuckets = 4096, kOthers = kBuckets * 12 / 2;
  std::vector<uint64_t> colliding;
  for (uint64_t key = kOthers; colliding.size() < 600; key += 2) {
    const uint64_t hash = absl::Hash<uint64_t>()(key / SlotIndex::kNeighbours);
    if (hash % kBuckets == 0 && hash >> 62 == 0) colliding.push_back(key);
  }
  for (uint64_t key = 0; key < kOthers; ++key) Insert(key);
  for (size_t i = 0; i < 500; ++i) Insert(colliding[i]);
  ExpectAllAreFound();
  for (size_t i = 0; i < 400; ++i) Erase(colliding[i]);
  ExpectAllAreFound();
  for (size_t i = 500; i < 600; ++i) EXPECT_EQ(Find(colliding[i]), SlotIndex::kNone);
  for (size_t i = 500; i < 600; ++i) Insert(colliding[i]);
  ExpectAllAreFound();
  while (!expected_.empty()) Erase(expected_.begin()->first);
  for (const uint64_t key : colliding) EXPECT_EQ(Find(key), SlotIndex::kNone);
}

}  // namespace
}  // namespace gear_reverb::table
