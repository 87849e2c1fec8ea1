#include "native/writer/chunker.h"

#include <gtest/gtest.h>

#include "native/writer/test_tensors.h"

namespace gear_reverb::writer {
namespace {

// One thread, so the scope's lock is not taken around calls.
class ChunkerTest : public ::testing::Test {
 protected:
  base::Philox keys_{1};
  Chunker chunker_{std::make_shared<CellScope>(), 3, ConstantChunkerOptions(2, 4), &keys_};
};

TEST_F(ChunkerTest, AReservationThatCameToNothingFixesNeitherSpecNorEpisode) {
  const TensorCopy dropped = Int(1), kept = Float(2);
  ASSERT_TRUE(chunker_.Check(dropped.view(), {1, 0}).ok());
  ASSERT_TRUE(chunker_.Reserve(dropped.view(), {1, 0}).ok());
  ASSERT_TRUE(chunker_.Check(kept.view(), {2, 0}).ok());
  ASSERT_TRUE(chunker_.Reserve(kept.view(), {2, 0}).ok());
  EXPECT_EQ(chunker_.Append(kept.view(), {2, 0})->Copy().value(), kept);
  EXPECT_FALSE(chunker_.Check(dropped.view(), {2, 1}).ok());
}

TEST_F(ChunkerTest, AChunkIsFullAtItsLengthAndFinishOpensTheWayForTheNext) {
  const TensorCopy value = Int(1);
  for (int32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(chunker_.Reserve(value.view(), {1, i}).ok());
    chunker_.Append(value.view(), {1, i});
    EXPECT_EQ(chunker_.full(), i % 2 == 1);
    if (!chunker_.full()) continue;
    EXPECT_TRUE(chunker_.Finish().ok());
  }
  EXPECT_TRUE(chunker_.Finish().ok());
}

TEST_F(ChunkerTest, ErrorsNameTheColumn) {
  const TensorCopy value = Int(1);
  ASSERT_TRUE(chunker_.Reserve(value.view(), {1, 0}).ok());
  chunker_.Append(value.view(), {1, 0});
  for (const absl::Status& status :
       {chunker_.Check(value.view(), {1, 0}), chunker_.Check(Float(1).view(), {1, 1}),
        chunker_.Check(Ints({1}, {1}).view(), {1, 1})}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_NE(std::string(status.message()).find(" for column 3"), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace gear_reverb::writer
