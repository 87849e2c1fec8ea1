// dm-reverb's checkpoints: round trips by ourselves (compat_tests move them between both programs),
// which of several is loaded, and damage.
#include "native/dm_checkpoint/dm_checkpoint.h"

#include <gmock/gmock.h>

#include "native/checkpoint/checkpoint_test_util.h"
#include "native/dm_checkpoint/files.h"
#include "native/dm_checkpoint/record_file.h"
#include "native/dm_checkpoint/table_codec.h"
#include "native/rpc/chunk_codec.h"
#include "native/rpc/item_codec.h"

namespace gear_reverb::dm_checkpoint {
namespace {

namespace fs = std::filesystem;
using checkpoint::Checkpointer;
using testing::HasSubstr;

class DmCheckpointTest : public checkpoint::CheckpointTest {
 protected:
  static std::vector<table::TableSnapshot> Snapshots(const checkpoint::Tables& tables) {
    std::vector<table::TableSnapshot> snapshots;
    for (const auto& table : tables) snapshots.push_back(table->Snapshot());
    return snapshots;
  }
  std::string WriteFilled() { return Write(path, Snapshots(FilledTables())).value(); }
  absl::Status LoadInto(const checkpoint::Tables& tables) {
    return Checkpointer::Create(path, "", {}, 0, {Format()}).value()->LoadLatest(tables, *arena);
  }
  // The reason why `directory` is not loaded, having been made wrong.
  std::string Damage() {
    const absl::Status status = LoadInto(EmptyTables());
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    return std::string(status.message());
  }
  static std::vector<std::string> Records(const std::string& file) {
    std::vector<std::string> records;
    const auto reader = RecordReader::Open(file).value();
    for (auto record = reader->Next().value(); record.has_value();
         record = reader->Next().value()) {
      records.emplace_back(record->data(), record->size());
    }
    return records;
  }
  static void SetRecords(const std::string& file, const std::vector<std::string>& records) {
    fs::remove(file);
    const auto writer = RecordWriter::Create(file).value();
    for (const std::string& record : records) ASSERT_TRUE(writer->Write(record).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  // Without what dm-reverb's checkpoints do not keep: the random generator.
  static std::string Comparable(const table::Table& table) {
    std::string text = checkpoint::Describe(table);
    const size_t begin = text.find(" random "), end = text.find('\n');
    return begin == std::string::npos ? text : text.erase(begin, end - begin);
  }
};

TEST_F(DmCheckpointTest, RoundTrips) {
  const checkpoint::Tables saved = FilledTables();
  const std::string directory = Write(path, Snapshots(saved)).value();
  for (const char* file : {kTablesFile, kChunksFile, kItemsFile, kDoneFile}) {
    EXPECT_TRUE(fs::is_regular_file(directory + "/" + file)) << file;
  }
  EXPECT_EQ(Records(directory + "/" + kTablesFile).size(), 2);
  EXPECT_EQ(Records(directory + "/" + kChunksFile).size(), 6) << "Shared chunks are stored once.";
  EXPECT_EQ(Records(directory + "/" + kItemsFile).size(), 4 + 3);
  const checkpoint::Tables restored = EmptyTables();
  ASSERT_TRUE(LoadInto(restored).ok());
  EXPECT_EQ(Comparable(*restored[1]), Comparable(*saved[0]));
  EXPECT_EQ(Comparable(*restored[0]), Comparable(*saved[1]));
}

// As dm-reverb stores one that was sent twice.
TEST_F(DmCheckpointTest, AChunkMayComeAgain) {
  const checkpoint::Tables saved = FilledTables();
  const std::string file = Write(path, Snapshots(saved)).value() + "/" + kChunksFile;
  std::vector<std::string> stored = Records(file);
  stored.push_back(stored[0]);
  SetRecords(file, stored);
  const checkpoint::Tables restored = EmptyTables();
  ASSERT_TRUE(LoadInto(restored).ok());
  EXPECT_EQ(DistinctChunks(restored), 6);
  EXPECT_EQ(Comparable(*restored[1]), Comparable(*saved[0]));
}

// Two writers may have chosen the same one.
TEST_F(DmCheckpointTest, ChunksOfOneKeyStayApart) {
  const auto saved = checkpoint::MakeTable(checkpoint::Options("a"));
  const storage::ChunkPtr shared = checkpoint::MakeChunk(7);
  const auto other = [&](const std::string& text) {
    const std::string packed = tensor::PackStrings({text, text});
    const float numbers[2] = {1, 2};
    const tensor::TensorView views[2] = {
        {tensor::DType::kFloat32, {2, 1}, {reinterpret_cast<const std::byte*>(numbers), 8}},
        {tensor::DType::kString,
         {2},
         {reinterpret_cast<const std::byte*>(packed.data()), packed.size()}}};
    return storage::CopyToChunk(*memory::ProcessArena(), 7, {}, views).value();
  };
  const storage::ChunkPtr second = other("second");
  for (const auto& item :
       {checkpoint::MakeItem(1, shared, shared), checkpoint::MakeItem(2, second, shared),
        checkpoint::MakeItem(3, other("third"), second)}) {
    ASSERT_TRUE(saved->InsertOrAssign(item).ok());
  }
  ASSERT_TRUE(Write(path, Snapshots({saved})).ok());
  const auto restored = checkpoint::MakeTable(checkpoint::Options("a"));
  ASSERT_TRUE(LoadInto({restored}).ok());
  EXPECT_EQ(DistinctChunks({restored}), 3);
  const auto before = saved->Snapshot().items, after = restored->Snapshot().items;
  ASSERT_EQ(after.size(), 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(after[i].key, before[i].key);
    for (size_t column = 0; column < 2; ++column) {
      const auto bytes = [&](const table::Item& item) {
        const storage::TrajectoryColumn source = item.trajectory->columns[column];
        std::string bytes(storage::LayoutOf(source).bytes, '\0');
        storage::Gather(source, reinterpret_cast<std::byte*>(bytes.data()));
        return bytes;
      };
      EXPECT_EQ(bytes(after[i]), bytes(before[i])) << "item " << i << ", column " << column;
    }
  }
}

TEST_F(DmCheckpointTest, ExportTakesTheNewestOfOurs) {
  const checkpoint::Tables saved = FilledTables();
  const std::string own = Save(saved);
  for (const std::string& from : {own, path}) {
    const std::string out = path + "/out";
    fs::remove_all(out);
    ASSERT_TRUE(Export(from, out).ok());
    const checkpoint::Tables restored = EmptyTables();
    ASSERT_TRUE(Checkpointer::Create(out, "", {}, 0, {Format()})
                    .value()
                    ->LoadLatest(restored, *arena)
                    .ok());
    EXPECT_EQ(Comparable(*restored[1]), Comparable(*saved[0]));
  }
  EXPECT_TRUE(absl::IsNotFound(Export(path + "/none", path + "/out").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Export(path, "").status()));
}

TEST_F(DmCheckpointTest, ItemsWithoutDataCannotBeWritten) {
  const auto table = checkpoint::MakeTable(checkpoint::Options("a"));
  ASSERT_TRUE(table->InsertKeys({7}, {1}).ok());
  const auto written = Write(path, Snapshots({table}));
  EXPECT_TRUE(absl::IsInvalidArgument(written.status()));
  EXPECT_THAT(std::string(written.status().message()), HasSubstr("Table a: item 7 has no data"));
  EXPECT_TRUE(fs::is_empty(path)) << "Nothing is left of it.";
}

TEST_F(DmCheckpointTest, TheNewestCountsWhoeverWroteIt) {
  const auto table = checkpoint::MakeTable(checkpoint::Options("a"));
  const auto size_loaded = [&] {
    const auto restored = checkpoint::MakeTable(checkpoint::Options("a"));
    EXPECT_TRUE(LoadInto({restored, checkpoint::MakeTable(checkpoint::Options("b"))}).ok());
    return restored->size();
  };
  const std::string theirs = WriteFilled();
  EXPECT_EQ(size_loaded(), 4);
  Save({table});
  EXPECT_EQ(size_loaded(), 0);
  // dm-reverb's names have up to nine digits, and the time zone of the machine.
  fs::rename(theirs, path + "/2100-01-01T01:02:03.123456789+02:00");
  EXPECT_EQ(size_loaded(), 4);
  fs::rename(path + "/2100-01-01T01:02:03.123456789+02:00", path + "/2000-01-01T01:02:03-11:30");
  EXPECT_EQ(size_loaded(), 0);
}

TEST_F(DmCheckpointTest, TheirsAreNeverRemoved) {
  const std::string theirs = WriteFilled();
  const auto table = checkpoint::MakeTable(checkpoint::Options("a"));
  const auto checkpointer = Checkpointer::Create(path, "", {}, 1, {Format()}).value();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(checkpointer->Save({table}).ok());
  EXPECT_TRUE(fs::exists(theirs));
  EXPECT_EQ(Saved().size(), 2);
}

TEST_F(DmCheckpointTest, AnUnfinishedOneIsPassedOver) {
  const std::string older = WriteFilled();
  const std::string newer = Write(path, Snapshots({EmptyTables()[0]})).value();
  fs::remove(newer + "/" + kDoneFile);
  const checkpoint::Tables restored = EmptyTables();
  ASSERT_TRUE(LoadInto(restored).ok());
  EXPECT_EQ(restored[1]->size(), 4);
  EXPECT_THAT(log, HasSubstr("is unfinished: it has no file DONE. Trying the checkpoint before"));
}

TEST_F(DmCheckpointTest, SignaturesAreComparedByMeaning) {
  // {"a": int64 [], "b": float [?]}, as {51…}: see docs/formats/wire.md; the entries change places.
  const std::string a("\x0a\x0c\x0a\x01\x61\x12\x07\x8a\x02\x04\x12\x00\x18\x09", 14);
  const std::string b("\x0a\x0c\x0a\x01\x62\x12\x07\x8a\x02\x04\x12\x00\x18\x01", 14);
  const auto dict = [](const std::string& entries) {
    return std::string("\xaa\x03", 2) + static_cast<char>(entries.size()) + entries;
  };
  EXPECT_TRUE(Format()->SameSignature(dict(a + b), dict(b + a)));
  EXPECT_FALSE(Format()->SameSignature(dict(a + b), dict(a)));
  EXPECT_FALSE(Format()->SameSignature(dict(a), dict(b)));
  EXPECT_FALSE(Format()->SameSignature(dict(a), ""));
  auto options = checkpoint::Options("t");
  options.signature = dict(a + b);
  ASSERT_TRUE(Write(path, Snapshots({checkpoint::MakeTable(options)})).ok());
  options.signature = dict(b + a);
  EXPECT_TRUE(LoadInto({checkpoint::MakeTable(options)}).ok());
  options.signature = dict(a);
  const absl::Status misfit = LoadInto({checkpoint::MakeTable(options)});
  EXPECT_TRUE(absl::IsFailedPrecondition(misfit));
  EXPECT_THAT(std::string(misfit.message()), HasSubstr("table 't': signature"));
}

TEST_F(DmCheckpointTest, DamageIsNamed) {
  const std::string directory = WriteFilled() + "/";
  const auto with_records = [&](const char* file, const std::vector<std::string>& records) {
    const std::vector<std::string> good = Records(directory + file);
    SetRecords(directory + file, records);
    const std::string reason = Damage();
    SetRecords(directory + file, good);
    return reason;
  };
  const auto tables = Records(directory + kTablesFile), stored = Records(directory + kChunksFile),
             items = Records(directory + kItemsFile);
  EXPECT_THAT(with_records(kTablesFile, {tables[0], tables[0]}),
              HasSubstr("tables.tfrecord: record 1 at byte "));
  EXPECT_THAT(with_records(kTablesFile, {tables[0], "\xff"}), HasSubstr("Malformed"));
  EXPECT_THAT(with_records(kTablesFile, {tables[0]}), HasSubstr("is of the unknown table 'b'"));
  EXPECT_THAT(with_records(kTablesFile, {""}), HasSubstr("a table without a name"));
  EXPECT_THAT(with_records(kChunksFile, {stored[0], stored[1].substr(0, 30)}),
              HasSubstr("chunks.tfrecord: record 1 at byte "));
  EXPECT_THAT(with_records(kChunksFile, {stored[0]}),
              HasSubstr("items.tfrecord: record 0 at byte 0 of the uncompressed contents is "
                        "damaged: Could not find sequence chunk"));
  EXPECT_THAT(with_records(kItemsFile, {items[0], "\x08\x01\x12\x01\x61"}),
              HasSubstr("Item 1: Trajectory has no column"));
  for (const char* file : {kTablesFile, kChunksFile, kItemsFile}) {
    const std::string good = checkpoint::ReadFile(directory + file);
    std::string bytes = good;
    bytes[bytes.size() / 2] ^= 0x10;
    checkpoint::WriteFile(directory + file, bytes);
    EXPECT_THAT(Damage(), HasSubstr(file));
    checkpoint::WriteFile(directory + file, good.substr(0, good.size() - 3));
    EXPECT_THAT(Damage(), HasSubstr(file));
    fs::remove(directory + file);
    EXPECT_THAT(Damage(), HasSubstr(std::string(file) + " is missing"));
    checkpoint::WriteFile(directory + file, good);
  }
  EXPECT_TRUE(LoadInto(EmptyTables()).ok()) << "All was put right again.";
}

}  // namespace
}  // namespace gear_reverb::dm_checkpoint
