#include "native/device/device_heap.h"

#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace gear_reverb::device {
namespace {

// Never read or written.
std::byte* Address(uint64_t offset) { return reinterpret_cast<std::byte*>(0x10000 + offset); }

TEST(DeviceHeapTest, RangesAreCutFromABlockAndMergedAgain) {
  DeviceHeap heap;
  heap.AddBlock(Address(0), 1024);
  EXPECT_EQ(heap.Allocate(2000), nullptr);
  std::byte* const a = heap.Allocate(1);
  std::byte* const b = heap.Allocate(257);
  EXPECT_EQ(a, Address(0));
  EXPECT_EQ(b, Address(256));
  EXPECT_EQ(heap.free_bytes(), 256u);
  EXPECT_EQ(heap.Allocate(300), nullptr);
  heap.Free(a, 1);
  heap.Free(b, 257);
  EXPECT_EQ(heap.Allocate(1024), Address(0));
  EXPECT_EQ(heap.free_bytes(), 0u);
}

TEST(DeviceHeapTest, BlocksThatTouchStayApart) {
  DeviceHeap heap;
  heap.AddBlock(Address(0), 512);
  heap.AddBlock(Address(512), 512);
  std::byte* const a = heap.Allocate(512);
  std::byte* const b = heap.Allocate(512);
  heap.Free(a, 512);
  heap.Free(b, 512);
  EXPECT_EQ(heap.capacity_bytes(), 1024u);
  EXPECT_EQ(heap.free_bytes(), 1024u);
  EXPECT_EQ(heap.Allocate(513), nullptr);
}

TEST(DeviceHeapTest, RandomRangesNeverOverlapAndNothingIsLost) {
  std::mt19937_64 random(7);
  DeviceHeap heap;
  const std::vector<std::pair<uint64_t, uint64_t>> blocks = {
      {0, 1 << 16}, {1 << 16, 1 << 15}, {1 << 20, 1 << 17}};
  for (const auto& [offset, bytes] : blocks) heap.AddBlock(Address(offset), bytes);
  std::map<std::byte*, uint64_t> live;
  uint64_t used = 0;
  for (int step = 0; step < 20000; ++step) {
    if (random() % 2 == 0 || live.empty()) {
      const uint64_t bytes = 1 + random() % (random() % 8 == 0 ? 20000 : 1000);
      std::byte* const data = heap.Allocate(bytes);
      if (data == nullptr) continue;
      ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % DeviceHeap::kAlignment, 0u);
      const auto [place, is_new] = live.emplace(data, bytes);
      ASSERT_TRUE(is_new);
      if (place != live.begin()) {
        const auto before = std::prev(place);
        ASSERT_LE(before->first + before->second, data);
      }
      if (std::next(place) != live.end()) {
        ASSERT_LE(data + bytes, std::next(place)->first);
      }
      bool inside = false;
      for (const auto& [offset, size] : blocks) {
        inside |= data >= Address(offset) && data + bytes <= Address(offset + size);
      }
      ASSERT_TRUE(inside);
      used += DeviceHeap::RoundUp(bytes);
    } else {
      const auto gone = std::next(live.begin(), random() % live.size());
      heap.Free(gone->first, gone->second);
      used -= DeviceHeap::RoundUp(gone->second);
      live.erase(gone);
    }
    ASSERT_EQ(heap.free_bytes(), heap.capacity_bytes() - used);
  }
  for (const auto& [data, bytes] : live) heap.Free(data, bytes);
  // Whole again.
  EXPECT_NE(heap.Allocate(1 << 17), nullptr);
  EXPECT_NE(heap.Allocate(1 << 16), nullptr);
  EXPECT_NE(heap.Allocate(1 << 15), nullptr);
}

}  // namespace
}  // namespace gear_reverb::device
