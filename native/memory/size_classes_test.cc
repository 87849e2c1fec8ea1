#include "native/memory/size_classes.h"

#include "gtest/gtest.h"

namespace gear_reverb::memory {
namespace {

TEST(SizeClassesTest, CapacityHoldsTheSizeAndWastesLittle) {
  for (size_t size = 1; size <= 300000; ++size) {
    const size_t capacity = CapacityOf(size);
    ASSERT_GE(capacity, size);
    const size_t waste = capacity - size;
    if (size <= 128) {
      ASSERT_LT(waste, 16) << size;
    } else if (size <= 1024) {
      ASSERT_LT(waste, 128) << size;
    } else if (size <= kMaxSmallBytes) {
      ASSERT_LT(waste * 4, size) << size;
    } else {
      ASSERT_LT(waste, kPageBytes) << size;
    }
    ASSERT_LE(CapacityOf(size), CapacityOf(size + 1));
  }
}

TEST(SizeClassesTest, EveryClassIsReachedAndTight) {
  size_t previous = 0;
  for (int size_class = 0; size_class < kNumSizeClasses; ++size_class) {
    const size_t bytes = SizeClassBytes(size_class);
    ASSERT_GT(bytes, previous);
    EXPECT_EQ(bytes % kSmallestBlock, 0);
    EXPECT_EQ(SizeClassOf(bytes), size_class);
    EXPECT_EQ(SizeClassOf(previous + 1), size_class);
    previous = bytes;
  }
}

TEST(SizeClassesTest, SlabTailsAreSmall) {
  for (int size_class = 0; size_class < kNumSizeClasses; ++size_class) {
    const size_t slab = SlabPages(size_class) * kPageBytes;
    const size_t blocks = BlocksPerSlab(size_class);
    EXPECT_GE(blocks, 8);
    EXPECT_LE(blocks, kMaxBlocksPerSlab);
    EXPECT_LE((slab - blocks * SizeClassBytes(size_class)) * 16, slab) << size_class;
  }
}

TEST(SizeClassesTest, ExtremeSizesDoNotOverflow) {
  EXPECT_EQ(CapacityOf(0), 0);
  EXPECT_EQ(PagesOf(SIZE_MAX), SIZE_MAX / kPageBytes + 1);
}

}  // namespace
}  // namespace gear_reverb::memory
