// What the tests of checkpoints share: tables with contents, their description, a directory.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "native/base/log.h"
#include "native/checkpoint/checkpointer.h"
#include "native/checkpoint/directory.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::checkpoint {

namespace fs = std::filesystem;
using table::Table;
using Tables = std::vector<std::shared_ptr<Table>>;

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void WriteFile(const std::string& path, absl::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), bytes.size());
}

inline table::TableOptions Options(const std::string& name) {
  table::TableOptions options;
  options.name = name;
  options.max_size = 100;
  options.sampler = selectors::PrioritizedOptions{0.7};
  options.remover = selectors::FifoOptions{};
  options.rate_limiter = {2, 1, -1e9, 1e9};
  return options;
}
inline std::shared_ptr<Table> MakeTable(table::TableOptions options) {
  return Table::Create(std::move(options)).value();
}

// A chunk of two steps with a number and a string column.
inline storage::ChunkPtr MakeChunk(uint64_t key) {
  const float numbers[2] = {static_cast<float>(key), 0.5};
  const std::string text = std::string("text\0", 5) + std::to_string(key);
  const std::string packed = tensor::PackStrings({absl::string_view(), absl::string_view(text)});
  const tensor::TensorView views[2] = {
      {tensor::DType::kFloat32, {2, 1}, {reinterpret_cast<const std::byte*>(numbers), 8}},
      {tensor::DType::kString,
       {2},
       {reinterpret_cast<const std::byte*>(packed.data()), packed.size()}}};
  return storage::CopyToChunk(*memory::ProcessArena(), key, {key / 2, 3, 4, true}, views).value();
}

// Column 0: both steps of `a`; column 1: the last string of `b`, squeezed.
inline table::Item MakeItem(uint64_t key, const storage::ChunkPtr& a, const storage::ChunkPtr& b) {
  storage::TrajectoryBuilder trajectory;
  trajectory.columns.push_back({{{a, 0, 2, 0}, {b, 1, 1, 0}}, false});
  trajectory.columns.push_back({{{b, 1, 1, 1}}, true});
  table::Item item;
  item.key = key;
  item.priority = 0.25 * key;
  item.trajectory = std::move(trajectory).Build();
  return item;
}

inline std::string Describe(const storage::Trajectory& trajectory) {
  std::string text;
  for (const auto& column : trajectory.columns) {
    const storage::ColumnLayout layout = storage::LayoutOf(column);
    std::string bytes(layout.bytes, '\0');
    storage::Gather(column, reinterpret_cast<std::byte*>(bytes.data()));
    absl::StrAppend(&text, tensor::Name(layout.dtype), tensor::ShapeString(layout.shape), bytes);
    for (const auto& slice : column.slices) {
      const auto range = slice.chunk->range();
      absl::StrAppend(&text, "|", slice.chunk->key(), " ", slice.offset, " ", slice.length, " ",
                      range.episode_id, " ", range.start, " ", range.end, " ", range.sparse);
    }
  }
  return text;
}

// All that a checkpoint keeps of a table.
inline std::string Describe(const Table& table) {
  const table::TableSnapshot snapshot = table.Snapshot();
  const table::TableInfo& info = snapshot.info;
  std::string text = absl::StrCat(
      info.name, " ", info.signature, " size ", info.current_size, " counts ", info.counts.inserts,
      " ", info.counts.samples, " ", info.counts.deletes, " episodes ", info.num_episodes, " ",
      info.num_deleted_episodes, " unique ", info.num_unique_samples, " bytes ", info.bytes,
      " random ", snapshot.seed, " ", snapshot.random_position);
  for (const table::Item& item : snapshot.items) {
    absl::StrAppend(&text, "\n", item.key, " ", item.priority, " ", item.times_sampled, " ",
                    absl::ToUnixNanos(item.inserted_at), " ",
                    item.trajectory == nullptr ? "none" : Describe(*item.trajectory));
  }
  return text;
}

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    path = fs::path(testing::TempDir()) /
           absl::StrCat("checkpoint_test_", getpid(), "_",
                        testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(path);
    base::SetLogSink([this](base::LogLevel, const std::string& line) { log += line + "\n"; });
  }
  void TearDown() override {
    base::SetLogSink(nullptr);
    fs::remove_all(path);
  }

  std::shared_ptr<Checkpointer> Open(const std::string& group = "",
                                     std::optional<std::string> fallback = std::nullopt) {
    return Checkpointer::Create(path, group, fallback).value();
  }
  std::string Save(const Tables& tables) {
    const auto saved = Open()->Save(tables);
    EXPECT_TRUE(saved.ok()) << saved.status();
    return saved.value_or("");
  }
  std::vector<std::string> Saved() const { return ListCheckpoints(path).value(); }
  absl::Status Load(const Tables& tables) { return Open()->LoadLatest(tables, *arena); }

  // Two tables that share chunks, after some traffic.
  static Tables FilledTables(int items = 5) {
    Tables tables = {MakeTable(Options("a")), MakeTable(Options("b"))};
    std::vector<storage::ChunkPtr> made;
    for (int i = 0; i <= items; ++i) made.push_back(MakeChunk(100 + i));
    for (int i = 0; i < items; ++i) {
      const table::Item item = MakeItem(1 + i, made[i], made[i + 1]);
      EXPECT_TRUE(tables[0]->InsertOrAssign(item).ok());
      if (i % 2 == 0) {
        EXPECT_TRUE(tables[1]->InsertOrAssign(item).ok());
      }
    }
    EXPECT_TRUE(tables[0]->Sample(3).ok());
    EXPECT_TRUE(tables[0]->MutateItems({{2, 9.5}}, {1}).ok());
    return tables;
  }
  static size_t DistinctChunks(const Tables& tables) {
    std::set<const storage::Chunk*> distinct;
    for (const auto& table : tables) {
      for (const table::Item& item : table->Snapshot().items) {
        for (const auto& chunk : item.trajectory->chunks()) distinct.insert(chunk.get());
      }
    }
    return distinct.size();
  }
  static Tables EmptyTables() { return {MakeTable(Options("b")), MakeTable(Options("a"))}; }

  std::string path;
  std::string log;
  std::shared_ptr<memory::Arena> arena = memory::Arena::Create({});
};

}  // namespace gear_reverb::checkpoint
