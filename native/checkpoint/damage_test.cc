// Damaged files: always found, and the checkpoint before them used.
#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "native/checkpoint/block_file.h"
#include "native/checkpoint/checkpoint_file.h"
#include "native/checkpoint/checkpoint_test_util.h"

namespace gear_reverb::checkpoint {
namespace {

using testing::HasSubstr;

// Damage to the newest of two checkpoints.
class DamageTest : public CheckpointTest {
 protected:
  void SetUp() override {
    CheckpointTest::SetUp();
    const auto old_table = MakeTable(Options("a"));
    EXPECT_TRUE(old_table->InsertKeys({1}, {1}).ok());
    Save({old_table});
    file = Save(FilledTables()) + "/" + kFileName;
    good = ReadFile(file);
  }

  // Loads after the file has been made `bytes`: it must be found damaged, the old one be used, and
  // nothing be kept of the new one.
  void ExpectPreviousIsUsed(absl::string_view bytes, const std::string& what) {
    log.clear();
    WriteFile(file, bytes);
    const absl::Status read = ReadCheckpointFile(file, *arena).status();
    ASSERT_TRUE(absl::IsDataLoss(read)) << what << ": " << read;
    ASSERT_THAT(std::string(read.message()), HasSubstr(file)) << what;
    const Tables restored = EmptyTables();
    ASSERT_TRUE(Load(restored).ok()) << what;
    ASSERT_EQ(restored[1]->size(), 1) << what;
    ASSERT_THAT(log, HasSubstr("Trying the checkpoint before it")) << what;
    ASSERT_EQ(arena->stats().live_blocks, 0) << what;
  }

  // Where blocks begin, and the end of the file.
  std::vector<size_t> Boundaries() const {
    std::vector<size_t> at = {kFileHeaderBytes};
    while (at.back() < good.size()) {
      uint64_t length;
      std::memcpy(&length, good.data() + at.back() + 8, sizeof(length));
      at.push_back(at.back() + kBlockHeaderBytes + length);
    }
    return at;
  }

  std::string file, good;
};

TEST_F(DamageTest, ATornFileIsFoundWhereverItIsTorn) {
  std::vector<size_t> cuts = {0, 1, kFileHeaderBytes - 1};
  for (const size_t boundary : Boundaries()) {
    for (const size_t cut : {boundary, boundary + 1, boundary + kBlockHeaderBytes - 1,
                             boundary + kBlockHeaderBytes, boundary + kBlockHeaderBytes + 1}) {
      if (cut < good.size()) cuts.push_back(cut);
    }
  }
  ASSERT_GT(cuts.size(), 40);
  for (const size_t cut : cuts) {
    ExpectPreviousIsUsed(absl::string_view(good).substr(0, cut), absl::StrCat("cut at ", cut));
  }
}

TEST_F(DamageTest, AnyChangedBitIsFound) {
  std::mt19937 random(5);
  for (int i = 0; i < 400; ++i) {
    std::string bad = good;
    const size_t at = i < 200 ? i : random() % bad.size();
    bad[at] ^= 1 << random() % 8;
    ExpectPreviousIsUsed(bad, absl::StrCat("changed at ", at));
  }
}

TEST_F(DamageTest, LostRepeatedSwappedAndAddedBlocksAreFound) {
  const std::vector<size_t> at = Boundaries();
  for (size_t i = 0; i + 1 < at.size(); ++i) {
    const std::string block = good.substr(at[i], at[i + 1] - at[i]);
    ExpectPreviousIsUsed(good.substr(0, at[i]) + good.substr(at[i + 1]), "lost");
    ExpectPreviousIsUsed(good.substr(0, at[i]) + block + good.substr(at[i]), "repeated");
    if (i + 2 >= at.size()) continue;
    const std::string next = good.substr(at[i + 1], at[i + 2] - at[i + 1]);
    ExpectPreviousIsUsed(good.substr(0, at[i]) + next + block + good.substr(at[i + 2]), "swapped");
  }
  ExpectPreviousIsUsed(good + "x", "added");
}

TEST_F(DamageTest, AMissingFileIsDamageAndSoAreAllBad) {
  fs::remove(file);
  ASSERT_TRUE(Load(EmptyTables()).ok());
  for (const std::string& checkpoint : Saved()) {
    WriteFile(checkpoint + "/" + kFileName, "GEARCKPT");
  }
  EXPECT_TRUE(absl::IsDataLoss(Load(EmptyTables())));
}

TEST_F(DamageTest, AnotherVersionIsNotDamage) {
  WriteFile(file, absl::string_view("GEARCKPT\2\0\0\0)e\xe7?", 16));  // With its CRC.
  const absl::Status status = Load(EmptyTables());
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 2"));
}

// Blocks with good CRCs and bad contents: whatever is in them, loading fails cleanly.
TEST_F(DamageTest, PayloadsAreNotBelieved) {
  std::mt19937 random(6);
  std::vector<std::pair<BlockType, std::string>> blocks;
  for (const auto reader = BlockReader::Open(file).value(); !reader->at_end();) {
    const Block block = reader->Next().value();
    blocks.emplace_back(block.type, block.payload);
  }
  for (int i = 0; i < 400; ++i) {
    const std::string copy = file + ".new";
    fs::remove(copy);
    {
      const auto writer = BlockWriter::Create(copy).value();
      const size_t victim = random() % blocks.size();
      for (size_t number = 0; number < blocks.size(); ++number) {
        auto [type, payload] = blocks[number];
        if (number == victim) {
          switch (random() % 3) {
            case 0: payload.resize(random() % payload.size()); break;
            case 1: payload += "x"; break;
            default:
              const char values[] = {0, 1, 2, 127, -1, -128, 7, 20};
              payload[random() % payload.size()] = values[random() % sizeof(values)];
          }
        }
        ASSERT_TRUE(writer->Write(type, {payload}).ok());
      }
      ASSERT_TRUE(writer->Sync().ok());
    }
    // Some changes are of no consequence; then the file loads.
    const auto read = ReadCheckpointFile(copy, *arena);
    if (!read.ok()) {
      ASSERT_TRUE(absl::IsDataLoss(read.status())) << read.status();
      continue;
    }
    fs::rename(copy, file);
    const Tables restored = EmptyTables();
    (void)Load(restored);
  }
}

}  // namespace
}  // namespace gear_reverb::checkpoint
