// Saving and loading whole servers.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "native/checkpoint/checkpoint_test_util.h"

namespace gear_reverb::checkpoint {
namespace {

using testing::HasSubstr;

TEST_F(CheckpointTest, RestoresAllOfTheTablesState) {
  Tables saved = FilledTables();
  ASSERT_TRUE(saved[1]->InsertKeys({77, 78}, {1, 2}).ok());
  const std::string checkpoint = Save(saved);
  EXPECT_EQ(fs::path(checkpoint).parent_path(), path);
  const Tables restored = EmptyTables();
  ASSERT_TRUE(Load(restored).ok()) << Load(restored);
  EXPECT_EQ(Describe(*restored[1]), Describe(*saved[0]));
  EXPECT_EQ(Describe(*restored[0]), Describe(*saved[1]));
  EXPECT_THAT(log, HasSubstr("Restored 9 items of 2 table(s)"));
}

TEST_F(CheckpointTest, SharedChunksAreStoredAndRestoredOnce) {
  const Tables saved = FilledTables(/*items=*/5);
  Save(saved);
  const Tables restored = EmptyTables();
  ASSERT_TRUE(Load(restored).ok());
  EXPECT_EQ(DistinctChunks(restored), 6);
  EXPECT_EQ(restored[1]->Snapshot().items[1].trajectory->chunks()[0],
            restored[0]->Snapshot().items[1].trajectory->chunks()[0]);
  restored[0]->Reset();
  restored[1]->Reset();
  EXPECT_EQ(arena->stats().live_blocks, 0);
}

TEST_F(CheckpointTest, ManyItemsSpanManyBlocks) {
  auto options = Options("a");
  options.max_size = 20000;
  const auto saved = MakeTable(options);
  std::vector<uint64_t> keys(20000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * i;
  ASSERT_TRUE(saved->InsertKeys(keys, std::vector<double>(keys.size(), 1)).ok());
  Save({saved});
  const auto restored = MakeTable(options);
  ASSERT_TRUE(Load({restored}).ok());
  EXPECT_EQ(Describe(*restored), Describe(*saved));
}

TEST_F(CheckpointTest, AMisfitIsNamedAndNothingIsRestored) {
  auto with_signature = Options("a");
  with_signature.signature = "old";
  Tables saved = FilledTables();
  const auto signed_table = MakeTable(with_signature);
  ASSERT_TRUE(signed_table->Restore(saved[0]->Snapshot()).ok());
  Save({saved[1], signed_table});

  const auto load = [&](const Tables& tables) {
    const absl::Status status = Load(tables);
    EXPECT_EQ(tables[0]->size(), 0);
    return status;
  };
  const absl::Status missing = load({MakeTable(Options("b")), MakeTable(Options("c"))});
  EXPECT_TRUE(absl::IsInvalidArgument(missing));
  EXPECT_EQ(missing.message(),
            "Trying to load table 'a' but table was not found in provided list of tables. "
            "Available tables: ['b', 'c']");

  auto other_signature = Options("a");
  other_signature.signature = "new";
  const absl::Status signature = load({MakeTable(Options("b")), MakeTable(other_signature)});
  EXPECT_TRUE(absl::IsFailedPrecondition(signature));
  EXPECT_THAT(std::string(signature.message()), HasSubstr("'a': signature"));

  auto small = Options("a");
  small.max_size = 3;
  const absl::Status size = load({MakeTable(Options("b")), MakeTable(small)});
  EXPECT_TRUE(absl::IsFailedPrecondition(size));
  EXPECT_THAT(std::string(size.message()), HasSubstr("'a': max_size: 4 items do not fit 3"));

  const Tables full = {MakeTable(Options("b")), MakeTable(Options("a"))};
  ASSERT_TRUE(full[1]->InsertKeys({1}, {1}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(load(full)));
}

TEST_F(CheckpointTest, TheTablesConfigurationWinsAndTheLogSaysSo) {
  Save(FilledTables());
  auto options = Options("a");
  options.max_size = 7;
  options.rate_limiter.samples_per_insert = 3;
  const Tables tables = {MakeTable(options), MakeTable(Options("b")), MakeTable(Options("new"))};
  ASSERT_TRUE(Load(tables).ok());
  EXPECT_EQ(tables[0]->info().max_size, 7);
  EXPECT_EQ(tables[2]->size(), 0);
  EXPECT_THAT(log, HasSubstr("Table a: max_size is 7 (in the checkpoint: 100)"));
  EXPECT_THAT(log, HasSubstr("Table a: samples_per_insert is 3 (in the checkpoint: 2)"));
}

TEST_F(CheckpointTest, TrafficGoesOnWhileSaving) {
  base::SetLogSink([](base::LogLevel, const std::string&) {});
  const Tables tables = FilledTables();
  std::atomic<bool> stop{false};
  std::thread traffic([&] {
    for (uint64_t key = 1000; !stop; ++key) {
      const table::Item item = MakeItem(key, MakeChunk(2 * key), MakeChunk(2 * key + 1));
      EXPECT_TRUE(tables[0]->InsertOrAssign(item).ok());
      EXPECT_TRUE(tables[0]->Sample(2).ok());
    }
  });
  for (int i = 0; i < 20; ++i) Save(tables);
  stop = true;
  traffic.join();
  for (const std::string& checkpoint : Saved()) {
    const Tables restored = EmptyTables();
    const auto checkpointer = Checkpointer::Create(checkpoint, "", {}).value();
    EXPECT_TRUE(checkpointer->LoadLatest(restored, *arena).ok());
  }
}

}  // namespace
}  // namespace gear_reverb::checkpoint
