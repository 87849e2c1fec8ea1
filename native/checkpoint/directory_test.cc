// Where checkpoints lie, which is loaded, and what unfinished saves leave.
#include "native/checkpoint/directory.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include "native/checkpoint/block_file.h"
#include "native/checkpoint/checkpoint_test_util.h"

namespace gear_reverb::checkpoint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using DirectoryTest = CheckpointTest;

TEST_F(DirectoryTest, NoCheckpointIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(Load(EmptyTables())));
  fs::create_directories(path + "/2026-11-20T22:17:17.813344334+00:00");  // dm-reverb's.
  fs::create_directories(path + "/other");
  EXPECT_TRUE(absl::IsNotFound(Load(EmptyTables())));
  EXPECT_TRUE(absl::IsInvalidArgument(Checkpointer::Create("", "", {}).status()));
}

TEST_F(DirectoryTest, TheNewestIsLoadedAndTheOthersKept) {
  const auto table = MakeTable(Options("a"));
  for (uint64_t key = 1; key <= 3; ++key) {
    ASSERT_TRUE(table->InsertKeys({key}, {1}).ok());
    Save({table});
  }
  EXPECT_THAT(Saved(), SizeIs(3));
  const auto restored = MakeTable(Options("a"));
  ASSERT_TRUE(Load({restored}).ok());
  EXPECT_EQ(restored->size(), 3);
}

TEST_F(DirectoryTest, KeepLatestRemovesTheOldest) {
  const auto table = MakeTable(Options("a"));
  const auto checkpointer = Checkpointer::Create(path, "", {}, /*keep_latest=*/2).value();
  std::vector<std::string> saved;
  for (int i = 0; i < 4; ++i) saved.push_back(checkpointer->Save({table}).value());
  EXPECT_THAT(Saved(), ElementsAre(saved[3], saved[2]));
}

TEST_F(DirectoryTest, NamesAscendEvenIfTheClockIsSetBack) {
  const auto publish = [&](absl::Time now) {
    const auto unpublished = UnpublishedCheckpoint::Create(path).value();
    WriteFile(unpublished->file(), "x");
    return unpublished->Publish(now).value();
  };
  const absl::Time now = absl::FromUnixMicros(1800000000123456);
  const std::string first = publish(now);
  EXPECT_EQ(first, path + "/2027-01-15T08:00:00.123456+00:00");
  const std::string second = publish(now - absl::Hours(1));
  const std::string third = publish(now);
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_THAT(Saved(), ElementsAre(third, second, first));
}

TEST_F(DirectoryTest, ThePathMayBeACheckpointOrItsParent) {
  const Tables saved = FilledTables();
  const std::string checkpoint = *Open("group")->Save(saved);
  EXPECT_EQ(fs::path(checkpoint).parent_path(), path + "/group");
  for (const std::string& from : {checkpoint, path + "/group"}) {
    const Tables restored = EmptyTables();
    ASSERT_TRUE(Checkpointer::Create(from, "", {}).value()->LoadLatest(restored, *arena).ok());
    EXPECT_EQ(Describe(*restored[1]), Describe(*saved[0]));
  }
  const Tables restored = EmptyTables();
  EXPECT_TRUE(Open("group")->LoadLatest(restored, *arena).ok());
  EXPECT_TRUE(absl::IsNotFound(Open("other")->LoadLatest(EmptyTables(), *arena)));
}

TEST_F(DirectoryTest, TheFallbackIsReadWhereThePathHasNone) {
  const auto old_checkpointer = Checkpointer::Create(path + "/old", "", {}).value();
  const std::string old = *old_checkpointer->Save(FilledTables());
  for (const std::string& fallback : {old, path + "/old"}) {
    const auto checkpointer = Checkpointer::Create(path + "/new", "", fallback).value();
    const Tables restored = EmptyTables();
    ASSERT_TRUE(checkpointer->LoadLatest(restored, *arena).ok());
    EXPECT_EQ(restored[1]->size(), 4);
  }
  const auto checkpointer = Checkpointer::Create(path + "/new", "", old).value();
  ASSERT_TRUE(checkpointer->Save(EmptyTables()).ok());
  const Tables restored = EmptyTables();
  ASSERT_TRUE(checkpointer->LoadLatest(restored, *arena).ok());
  EXPECT_EQ(restored[1]->size(), 0);
}

TEST_F(DirectoryTest, AProcessKilledBeforeTheRenameLeavesThePreviousCheckpoint) {
  const auto table = MakeTable(Options("a"));
  Save({table});
  const pid_t child = fork();
  if (child == 0) {
    const auto unpublished = UnpublishedCheckpoint::Create(path);
    WriteFile((*unpublished)->file(), "nearly done");
    _exit(0);
  }
  int exit_status;
  ASSERT_EQ(waitpid(child, &exit_status, 0), child);
  const auto leftovers = [&] {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().filename().string()[0] == '.') found.push_back(entry.path());
    }
    return found;
  };
  ASSERT_THAT(leftovers(), SizeIs(1));
  EXPECT_THAT(Saved(), SizeIs(1));
  EXPECT_TRUE(Load({MakeTable(Options("a"))}).ok());

  Save({table});
  EXPECT_THAT(leftovers(), SizeIs(1)) << "it may have just begun";
  const auto old = fs::file_time_type::clock::now() - std::chrono::minutes(2);
  const std::string left = leftovers()[0] + "/" + kFileName;
  fs::last_write_time(left, old);
  Save({table});
  EXPECT_THAT(leftovers(), IsEmpty());
}

TEST_F(DirectoryTest, ASaveThatIsStillWritingIsLeftAlone) {
  const auto unpublished = UnpublishedCheckpoint::Create(path).value();
  const auto writer = BlockWriter::Create(unpublished->file()).value();
  ASSERT_TRUE(writer->Sync().ok());
  fs::last_write_time(unpublished->file(),
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  Save(FilledTables());
  EXPECT_TRUE(fs::exists(unpublished->file()));
}

TEST_F(DirectoryTest, AFailedSaveLeavesNothing) {
  WriteFile(path, "a file where the directory should be");
  EXPECT_FALSE(Open()->Save(FilledTables()).ok());
  EXPECT_FALSE(Load(EmptyTables()).ok());
  fs::remove(path);
  {
    const auto unpublished = UnpublishedCheckpoint::Create(path).value();
    WriteFile(unpublished->file(), "given up");
  }
  EXPECT_TRUE(fs::is_empty(path));
}

}  // namespace
}  // namespace gear_reverb::checkpoint
