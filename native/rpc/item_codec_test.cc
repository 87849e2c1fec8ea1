#include "native/rpc/item_codec.h"

#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/rpc/rpc_test_util.h"

namespace gear_reverb::rpc {
namespace {

using ::testing::HasSubstr;

table::Item MakeItem(const storage::ChunkPtr& chunk) {
  storage::TrajectoryBuilder trajectory;
  trajectory.columns.push_back({{{chunk, 1, 2, 0}}, false});
  trajectory.columns.push_back({{{chunk, 2, 1, 1}}, true});
  table::Item item;
  item.key = 0xfedcba9876543210;
  item.priority = 2.5;
  item.times_sampled = 3;
  item.inserted_at = absl::FromUnixNanos(1234567890123456789);
  item.trajectory = std::move(trajectory).Build();
  return item;
}

storage::ChunkPtr FindIn(const storage::ChunkPtr& chunk, uint64_t key) {
  return key == chunk->key() ? chunk : nullptr;
}

TEST(ItemCodec, RoundTripKeepsEveryField) {
  const storage::ChunkPtr chunk = MakeMixedChunk(11);
  const table::Item item = MakeItem(chunk);
  const auto decoded = DecodeItem(EncodeItem(item, "my_table").TakeString());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->key, item.key);
  EXPECT_EQ(decoded->table, "my_table");
  EXPECT_EQ(decoded->priority, 2.5);
  EXPECT_EQ(decoded->times_sampled, 3);
  EXPECT_EQ(decoded->inserted_at, item.inserted_at);
  const auto trajectory =
      ResolveTrajectory(*decoded, [&](uint64_t key) { return FindIn(chunk, key); });
  ASSERT_TRUE(trajectory.ok()) << trajectory.status();
  ASSERT_EQ((*trajectory)->columns.size(), 2u);
  EXPECT_EQ((*trajectory)->columns[0].slices[0].offset, 1);
  EXPECT_EQ((*trajectory)->columns[0].slices[0].length, 2);
  EXPECT_FALSE((*trajectory)->columns[0].squeeze);
  EXPECT_EQ((*trajectory)->columns[1].slices[0].column, 1);
  EXPECT_TRUE((*trajectory)->columns[1].squeeze);
}

TEST(SampleInfoCodec, RoundTripKeepsEveryField) {
  const table::SampledItem sample{MakeItem(MakeMixedChunk(11)), 0.25, 77, true};
  const auto decoded = DecodeSampleInfo(EncodeSampleInfo(sample, "t").TakeString());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->item.key, sample.item.key);
  EXPECT_EQ(decoded->probability, 0.25);
  EXPECT_EQ(decoded->table_size, 77);
  EXPECT_TRUE(decoded->rate_limited);
}

TEST(ResolveTrajectory, NamesAChunkThatIsNotThere) {
  const auto decoded = DecodeItem(EncodeItem(MakeItem(MakeMixedChunk(11)), "t").TakeString());
  const auto trajectory = ResolveTrajectory(*decoded, [](uint64_t) { return nullptr; });
  EXPECT_EQ(trajectory.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(trajectory.status().message()),
              HasSubstr("Could not find sequence chunk 11"));
}

TEST(ResolveTrajectory, RefusesSlicesOutsideTheirChunk) {
  const storage::ChunkPtr chunk = MakeMixedChunk(11);
  const ItemMessage good = *DecodeItem(EncodeItem(MakeItem(chunk), "t").TakeString());
  const auto refused = [&](auto change) {
    ItemMessage message = good;
    change(message.columns[0]);
    return absl::IsInvalidArgument(
        ResolveTrajectory(message, [&](uint64_t key) { return FindIn(chunk, key); }).status());
  };
  using Column = ItemMessage::Column;
  EXPECT_TRUE(refused([](Column& column) { column.slices[0].offset = 2; }));
  EXPECT_TRUE(refused([](Column& column) { column.slices[0].offset = -1; }));
  EXPECT_TRUE(refused([](Column& column) { column.slices[0].offset = 2147483647; }));
  EXPECT_TRUE(refused([](Column& column) { column.slices[0].length = 0; }));
  EXPECT_TRUE(refused([](Column& column) { column.slices[0].length = 2147483647; }));
  EXPECT_TRUE(refused([](Column& column) { column.slices[0].index = 2; }));
  EXPECT_TRUE(refused([](Column& column) { column.slices[0].index = -1; }));
  EXPECT_TRUE(refused([](Column& column) { column.slices.clear(); }));
  EXPECT_TRUE(refused([](Column& column) { column.squeeze = true; }));
  EXPECT_FALSE(refused([](Column&) {}));
}

TEST(DecodeItem, SurvivesMutationsOfAValidMessage) {
  const storage::ChunkPtr chunk = MakeMixedChunk(11);
  const std::string valid = EncodeItem(MakeItem(chunk), "t").TakeString();
  std::mt19937_64 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string message = valid;
    message[random() % message.size()] = static_cast<char>(random());
    if (random() % 3 == 0) message.resize(random() % message.size());
    const auto item = DecodeItem(message);
    if (!item.ok()) continue;
    // Whatever is accepted in the end lies within the chunk.
    const auto trajectory =
        ResolveTrajectory(*item, [&](uint64_t key) { return FindIn(chunk, key); });
    if (trajectory.ok()) {
      for (const storage::TrajectoryColumn& column : (*trajectory)->columns) {
        std::string out(storage::LayoutOf(column).bytes, '\0');
        storage::Gather(column, reinterpret_cast<std::byte*>(out.data()));
      }
    }
  }
}

}  // namespace
}  // namespace gear_reverb::rpc
