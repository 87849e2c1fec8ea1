#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/base/testing_rounds.h"
#include "native/shm/control_records.h"
#include "native/shm/drawn_record.h"
#include "native/shm/insert_records.h"
#include "native/shm/sealed_memory.h"
#include "native/storage/trajectory.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::shm {
namespace {

using tensor::DType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// In a shareable arena: 4 steps of int32[2] and of strings.
class RecordsTest : public ::testing::Test {
 protected:
  RecordsTest() : arena_(memory::Arena::Create({})) {
    for (uint64_t key = 1; key <= 2; ++key) chunks_.push_back(MakeChunk(key));
    for (const memory::SegmentView& segment : arena_->segments()) {
      EXPECT_TRUE(segments_.Add(segment.id, *OpenReadOnly(segment.fd)).ok());
    }
  }

  storage::ChunkPtr MakeChunk(uint64_t key) {
    std::vector<int32_t> numbers;
    for (int32_t i = 0; i < 8; ++i) numbers.push_back(static_cast<int32_t>(100 * key) + i);
    const std::string packed = tensor::PackStrings({"a", "", "ccc", "dd"});
    return *storage::CopyToChunk(
        *arena_, key, {7, 0, 3, false},
        {{DType::kInt32, {4, 2}, {reinterpret_cast<const std::byte*>(numbers.data()), 32}},
         {DType::kString,
          {4},
          {reinterpret_cast<const std::byte*>(packed.data()), packed.size()}}});
  }

  // Numbers of both chunks, and the strings of the first.
  storage::TrajectoryBuilder MakeBuilder() const {
    return {{{{{chunks_[0], 1, 3, 0}, {chunks_[1], 0, 2, 0}}, false},
             {{{chunks_[0], 1, 3, 1}}, false}}};
  }
  storage::TrajectoryPtr MakeTrajectory() const { return MakeBuilder().Build(); }

  table::SampledItem MakeItem(uint64_t key) const {
    table::SampledItem item;
    item.item.key = key;
    item.item.priority = 0.5;
    item.item.times_sampled = 3;
    item.item.trajectory = MakeTrajectory();
    item.probability = 0.25;
    item.table_size = 9;
    item.rate_limited = true;
    return item;
  }

  storage::ChunkPtr Find(uint64_t key) const {
    for (const auto& chunk : chunks_) {
      if (chunk->key() == key) return chunk;
    }
    return nullptr;
  }
  absl::StatusOr<ItemRecord> Decode(absl::string_view body) const {
    return DecodeItem(body, [this](uint64_t key) { return Find(key); });
  }
  absl::StatusOr<Drawn> DecodeBatch(absl::string_view body) const {
    return DecodeDrawn(body, [this](uint32_t id) { return segments_.Find(id); });
  }

  // The body of the one record in `record`.
  static std::string Body(const std::string& record) { return record.substr(sizeof(RecordHeader)); }
  std::string ItemBody() const {
    std::string record;
    EXPECT_TRUE(EncodeItem(11, 2.5, "table", *MakeTrajectory(), {1, 2}, &record).ok());
    return Body(record);
  }
  std::string ChunkBody() const {
    std::string record;
    EncodeChunk(*chunks_[0], &record);
    return Body(record);
  }
  // Two items of two steps.
  std::string RowsBody(int32_t row_steps = 2, bool squeeze = false) const {
    std::vector<tensor::TensorView> columns;
    for (const storage::ChunkColumn& column : chunks_[0]->columns()) {
      columns.push_back(column.view());
    }
    std::string record;
    EncodeRows(5, {7, 0, 3, false}, columns, "table", row_steps, squeeze, {11, 12}, {0.5, 1.5},
               &record);
    return Body(record);
  }
  std::string DrawnBody() const {
    const std::vector<table::SampledItem> items = {MakeItem(1), MakeItem(2)};
    std::string body;
    absl::flat_hash_set<uint32_t> segments;
    EXPECT_TRUE(EncodeDrawn(5, items, SIZE_MAX, &body, &segments).ok());
    EXPECT_EQ(segments.size(), 1u);
    return body;
  }

  std::shared_ptr<memory::Arena> arena_;
  std::vector<storage::ChunkPtr> chunks_;
  SegmentMap segments_;
};

std::vector<int32_t> Numbers(const batch::DrawnColumn& column, size_t begin, size_t end) {
  std::vector<int32_t> numbers;
  for (size_t i = begin; i < end; ++i) {
    const batch::Piece& piece = column.pieces[i];
    const size_t at = numbers.size();
    numbers.resize(at + piece.bytes / 4);
    std::memcpy(numbers.data() + at, piece.data, piece.bytes);
  }
  return numbers;
}

TEST_F(RecordsTest, AChunkKeepsAllButItsBytes) {
  const auto chunk = DecodeChunk(ChunkBody());
  ASSERT_TRUE(chunk.ok()) << chunk.status();
  EXPECT_EQ(chunk->key, 1u);
  EXPECT_EQ(chunk->range.episode_id, 7u);
  EXPECT_EQ(chunk->range.end, 3);
  ASSERT_EQ(chunk->columns.size(), 2u);
  EXPECT_EQ(chunk->columns[0].dtype, DType::kInt32);
  EXPECT_THAT(chunk->columns[0].shape, ElementsAre(4, 2));
  EXPECT_EQ(chunk->columns[0].bytes, 32u);
}

TEST_F(RecordsTest, RowsKeepEverything) {
  const std::string body = RowsBody();
  const auto rows = DecodeRows(body);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->chunk.key, 5u);
  EXPECT_EQ(rows->chunk.range.episode_id, 7u);
  EXPECT_THAT(rows->chunk.columns[0].shape, ElementsAre(4, 2));
  EXPECT_EQ(rows->table, "table");
  EXPECT_EQ(rows->row_steps, 2);
  EXPECT_FALSE(rows->squeeze);
  EXPECT_THAT(rows->keys, ElementsAre(11, 12));
  EXPECT_THAT(rows->priorities, ElementsAre(0.5, 1.5));
}

TEST_F(RecordsTest, RowsMustFitTheirChunk) {
  const auto error = [](const std::string& body) {
    const absl::Status status = DecodeRows(body).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  EXPECT_THAT(error(RowsBody(1)), HasSubstr("needs 2 steps but column 0 has shape [4,2]"));
  EXPECT_THAT(error(RowsBody(0)), HasSubstr("items of 0 steps"));
  EXPECT_THAT(error(RowsBody(-1)), HasSubstr("items of -1 steps"));
  EXPECT_THAT(error(RowsBody(2, true)), HasSubstr("squeezed items of 2 steps"));
  EXPECT_THAT(error(RowsBody(INT32_MAX)), HasSubstr("too many"));
  std::string record;
  EncodeRows(5, {}, {}, "t", 1, false, {1}, {1.0}, &record);
  EXPECT_THAT(error(Body(record)), HasSubstr("no column"));
  record.clear();
  EncodeRows(5, {}, {}, "t", 1, false, {1}, {}, &record);
  EXPECT_THAT(error(Body(record)), HasSubstr("1 keys and 0 priorities"));
  record.clear();
  constexpr int64_t kRows = 1 << 10;
  const std::vector<tensor::TensorView> many(kMaxRowSlices / kRows + 1,
                                             {DType::kInt32, {kRows, 0}, {}});
  EncodeRows(5, {}, many, "t", 1, false, std::vector<uint64_t>(kRows), std::vector<double>(kRows),
             &record);
  EXPECT_THAT(error(Body(record)), HasSubstr("1025 columns of 1024 rows"));
}

TEST_F(RecordsTest, AnItemKeepsEverything) {
  const std::string body = ItemBody();
  const auto item = Decode(body);
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ(item->key, 11u);
  EXPECT_EQ(item->priority, 2.5);
  EXPECT_EQ(item->table, "table");
  EXPECT_THAT(item->keep_chunk_keys, ElementsAre(1, 2));
  ASSERT_EQ(item->trajectory->columns.size(), 2u);
  EXPECT_EQ(item->trajectory->columns[0].length(), 5);
}

TEST_F(RecordsTest, ErrorsNameWhatIsWrong) {
  storage::TrajectoryBuilder builder = MakeBuilder();
  builder.columns[0].slices[0].length = 4;
  const storage::TrajectoryPtr trajectory = std::move(builder).Build();
  std::string record;
  ASSERT_TRUE(EncodeItem(11, 1, "t", *trajectory, {}, &record).ok());
  const absl::Status outside = Decode(Body(record)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(outside));
  EXPECT_THAT(std::string(outside.message()), HasSubstr("Item 11: Column 0, slice 0"));

  chunks_.pop_back();
  EXPECT_THAT(std::string(Decode(ItemBody()).status().message()),
              HasSubstr("Could not find sequence chunk 2"));
}

TEST_F(RecordsTest, AColumnsBytesMustFitItsShape) {
  std::string body = ChunkBody();
  // The first axis of the first column follows key, range, count of columns, dtype and rank.
  const int64_t steps = int64_t{1} << 40;
  std::memcpy(body.data() + 8 + 8 + 4 + 4 + 1 + 4 + 4 + 4, &steps, sizeof(steps));
  const absl::Status status = DecodeChunk(body).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("Chunk 1, column 0"));
}

// Its memory would be asked for before a byte of it has come.
TEST_F(RecordsTest, AColumnIsNotLargerThanAChunkTakes) {
  std::string body;
  const tensor::TensorView column{DType::kInt8, {int64_t{1} << 46}, {}};
  EncodeRows(1, {}, {&column, 1}, "t", 1, false, {}, {}, &body);
  const uint64_t bytes = uint64_t{1} << 46;
  // Behind key, range, count of columns, dtype and shape.
  std::memcpy(body.data() + sizeof(RecordHeader) + 29 + 4 + 12, &bytes, sizeof(bytes));
  const absl::Status status = DecodeRows(body.substr(sizeof(RecordHeader))).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("a column of a chunk takes 2^32 - 1"));
}

TEST_F(RecordsTest, DescriptionsThatAreTooLongAreNotMade) {
  const std::vector<table::SampledItem> items(10, MakeItem(1));
  std::string body;
  absl::flat_hash_set<uint32_t> segments;
  EXPECT_TRUE(EncodeDrawn(1, items, 10000, &body, &segments).ok());
  const size_t needed = body.size();
  body.clear();
  EXPECT_TRUE(EncodeDrawn(1, items, needed, &body, &segments).ok());
  body.clear();
  EXPECT_TRUE(absl::IsResourceExhausted(EncodeDrawn(1, items, needed - 1, &body, &segments)));
  body.clear();
  EXPECT_TRUE(absl::IsResourceExhausted(EncodeDrawn(1, items, 10, &body, &segments)));
  EXPECT_EQ(body, "");  // Of many pieces nothing is written first.
}

TEST_F(RecordsTest, DrawnItemsPointToTheSameBytes) {
  const auto drawn = DecodeBatch(DrawnBody());
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  EXPECT_EQ(drawn->lease, 5u);
  EXPECT_EQ(drawn->segments.size(), 1u);
  ASSERT_EQ(drawn->groups.size(), 1u);
  const batch::DrawnBatch& batch = drawn->groups[0];
  EXPECT_THAT(batch.keys, ElementsAre(1, 2));
  EXPECT_THAT(batch.priorities, ElementsAre(0.5, 0.5));
  EXPECT_THAT(batch.table_sizes, ElementsAre(9, 9));
  EXPECT_THAT(batch.rate_limited, ElementsAre(1, 1));
  ASSERT_EQ(batch.columns.size(), 2u);
  EXPECT_THAT(batch.columns[0].lengths, ElementsAre(5, 5));
  EXPECT_THAT(batch.columns[0].piece_ends, ElementsAre(2, 4));
  EXPECT_THAT(Numbers(batch.columns[0], 2, 4),
              ElementsAre(102, 103, 104, 105, 106, 107, 200, 201, 202, 203));
  std::vector<std::string> texts;
  for (size_t i = 0; i < 3; ++i) {
    const batch::Piece& piece = batch.columns[1].pieces[i];
    texts.emplace_back(reinterpret_cast<const char*>(piece.data), piece.bytes);
  }
  EXPECT_THAT(texts, ElementsAre("", "ccc", "dd"));
}

TEST_F(RecordsTest, ItemsThatDifferAreGroupsOfTheirOwn) {
  std::vector<table::SampledItem> items = {MakeItem(1), MakeItem(2), MakeItem(3)};
  storage::TrajectoryBuilder other = MakeBuilder();
  other.columns.pop_back();
  items[1].item.trajectory = std::move(other).Build();
  std::string body;
  absl::flat_hash_set<uint32_t> segments;
  EXPECT_TRUE(EncodeDrawn(1, items, SIZE_MAX, &body, &segments).ok());
  const auto drawn = DecodeBatch(body);
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  ASSERT_EQ(drawn->groups.size(), 3u);
  EXPECT_EQ(drawn->groups[1].columns.size(), 1u);
}

TEST_F(RecordsTest, PlacesOutsideOfASegmentAreRefused) {
  const std::string body = DrawnBody();
  EXPECT_TRUE(absl::IsInvalidArgument(
      DecodeDrawn(body, [](uint32_t) -> std::shared_ptr<const MappedSegment> {
        return nullptr;
      }).status()));
  const auto small = MappedSegment::Map(*NewSealedMemory("small", 4096));
  EXPECT_EQ((*small)->At(4096, 1), nullptr);
  EXPECT_EQ((*small)->At(0, 4097), nullptr);
  EXPECT_EQ((*small)->At(~uint64_t{0}, 2), nullptr);
  EXPECT_NE((*small)->At(4000, 96), nullptr);
}

TEST_F(RecordsTest, MappingsAreReadOnlyAndOfSealedSize) {
  UniqueFd unsealed(memfd_create("test", 0));
  ASSERT_EQ(ftruncate(unsealed.get(), 4096), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(MappedSegment::Map(unsealed).status()));
  const UniqueFd memory = *NewSealedMemory("test", 4096);
  const UniqueFd read_only = *OpenReadOnly(memory.get());
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, read_only.get(), 0),
            MAP_FAILED);
}

TEST_F(RecordsTest, RequestsKeepEverything) {
  DrawRequest request;
  request.released = {3, 4};
  request.table = "t";
  request.n = 12;
  request.timeout = absl::Milliseconds(5);
  request.seed = 42;
  request.once = true;
  const auto decoded = DecodeDrawRequest(EncodeDrawRequest(request));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_THAT(decoded->released, ElementsAre(3, 4));
  EXPECT_EQ(decoded->timeout, absl::Milliseconds(5));
  EXPECT_EQ(decoded->seed, 42u);
  EXPECT_TRUE(decoded->once);
  request.timeout = absl::InfiniteDuration();
  EXPECT_EQ(DecodeDrawRequest(EncodeDrawRequest(request))->timeout, absl::InfiniteDuration());
  request.n = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeDrawRequest(EncodeDrawRequest(request)).status()));

  const auto mutation = DecodeMutateRequest(EncodeMutateRequest("t", {{1, 0.5}, {2, 1.5}}, {7}));
  ASSERT_TRUE(mutation.ok());
  EXPECT_EQ(mutation->updates[1].priority, 1.5);
  EXPECT_THAT(mutation->delete_keys, ElementsAre(7));
}

// Whatever comes, the answer is an error or something valid.
TEST_F(RecordsTest, TruncationsAreErrors) {
  const auto check = [](const std::string& body, auto decode) {
    for (size_t bytes = 0; bytes < body.size(); ++bytes) {
      // Exact, so that reading further is seen by the sanitizers.
      const std::vector<char> cut(body.begin(), body.begin() + bytes);
      EXPECT_FALSE(decode(absl::string_view(cut.data(), cut.size())).ok()) << bytes;
    }
  };
  check(ChunkBody(), [](absl::string_view body) { return DecodeChunk(body); });
  check(ItemBody(), [this](absl::string_view body) { return Decode(body); });
  check(RowsBody(), [](absl::string_view body) { return DecodeRows(body); });
  DrawRequest request;
  request.n = 1;
  check(EncodeDrawRequest(request), DecodeDrawRequest);
  check(EncodeMutateRequest("t", {{1, 0.5}}, {7}), DecodeMutateRequest);
  const std::string drawn = DrawnBody();
  check(drawn.substr(0, drawn.size()), [&](absl::string_view body) {
    auto decoded = DecodeBatch(body);
    // The lease alone is a batch of no items.
    return body.size() == sizeof(uint64_t) ? absl::InvalidArgumentError("") : decoded.status();
  });
}

TEST_F(RecordsTest, MutationsDoNoHarm) {
  std::mt19937_64 random(3);
  const auto mutate = [&random](std::string body) {
    for (uint64_t i = random() % 4 + 1; i > 0; --i) {
      body[random() % body.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) body.resize(random() % body.size());
    return body;
  };
  const std::string chunk = ChunkBody(), item = ItemBody(), drawn = DrawnBody(), rows = RowsBody();
  size_t read = 0;
  for (int round = 0; round < base::testing::Rounds(30000); ++round) {
    DecodeChunk(mutate(chunk)).IgnoreError();
    DecodeRows(mutate(rows)).IgnoreError();
    const std::string item_body = mutate(item);
    if (const auto decoded = Decode(item_body); decoded.ok()) {
      for (const storage::TrajectoryColumn& column : decoded->trajectory->columns) {
        std::string out(storage::LayoutOf(column).bytes, '\0');
        storage::Gather(column, reinterpret_cast<std::byte*>(out.data()));
      }
    }
    if (const auto decoded = DecodeBatch(mutate(drawn)); decoded.ok()) {
      for (const batch::DrawnBatch& group : decoded->groups) {
        for (const batch::DrawnColumn& column : group.columns) {
          for (const batch::Piece& piece : column.pieces) {
            for (size_t i = 0; i < piece.bytes; ++i) read += static_cast<size_t>(piece.data[i]);
          }
        }
      }
    }
  }
  EXPECT_GT(read, 0u) << "some mutations are harmless";
}

}  // namespace
}  // namespace gear_reverb::shm
