#include "native/checkpoint/checkpoint_file.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "native/base/status.h"
#include "native/checkpoint/block_file.h"
#include "native/checkpoint/format.h"
#include "native/checkpoint/records.h"

namespace gear_reverb::checkpoint {
namespace {

constexpr size_t kItemsBlockBytes = size_t{256} << 10;

// Writes chunks when an item first needs them, and numbers them.
class ChunkNumbers {
 public:
  explicit ChunkNumbers(BlockWriter& file) : file_(file) {}

  absl::Status WriteNew(const table::Item& item) {
    if (item.trajectory == nullptr) return absl::OkStatus();
    for (const auto& column : item.trajectory->columns) {
      for (const auto& slice : column.slices) {
        if (!numbers_.try_emplace(slice.chunk, numbers_.size()).second) continue;
        head_.Clear();
        EncodeChunkHead(*slice.chunk, head_);
        std::vector<absl::string_view> pieces = {head_.bytes()};
        for (const auto& chunk_column : slice.chunk->columns()) {
          pieces.emplace_back(reinterpret_cast<const char*>(chunk_column.data.data()),
                              chunk_column.data.size());
        }
        GR_RETURN_IF_ERROR(file_.Write(BlockType::kChunk, pieces));
      }
    }
    return absl::OkStatus();
  }

  uint64_t Of(const storage::ChunkPtr& chunk) const { return numbers_.at(chunk); }
  uint64_t count() const { return numbers_.size(); }

 private:
  BlockWriter& file_;
  // Holds the chunks, so that no address is used again for another.
  absl::flat_hash_map<storage::ChunkPtr, uint64_t> numbers_;
  Encoder head_;
};

absl::Status WriteTable(const table::TableSnapshot& snapshot, ChunkNumbers& chunks,
                        BlockWriter& file) {
  Encoder payload;
  EncodeTable(snapshot, payload);
  GR_RETURN_IF_ERROR(file.Write(BlockType::kTable, {payload.bytes()}));
  payload.Clear();
  for (const table::Item& item : snapshot.items) {
    GR_RETURN_IF_ERROR(chunks.WriteNew(item));
    EncodeItem(item, [&](const storage::ChunkPtr& chunk) { return chunks.Of(chunk); }, payload);
    if (payload.bytes().size() < kItemsBlockBytes) continue;
    GR_RETURN_IF_ERROR(file.Write(BlockType::kItems, {payload.bytes()}));
    payload.Clear();
  }
  if (payload.bytes().empty()) return absl::OkStatus();
  return file.Write(BlockType::kItems, {payload.bytes()});
}

// What has been read so far, and what must still come.
class Contents {
 public:
  explicit Contents(memory::Arena& arena) : arena_(arena) {}

  absl::Status Add(const Block& block) {
    switch (block.type) {
      case BlockType::kTable: return AddTable(block.payload);
      case BlockType::kChunk: return AddChunk(block.payload);
      case BlockType::kItems: return AddItems(block.payload);
      case BlockType::kEnd: return CheckEnd(block.payload);
    }
    return base::InvalidArgument("its type ", static_cast<uint32_t>(block.type), " is unknown");
  }

  std::vector<table::TableSnapshot> Take() { return std::move(tables_); }

 private:
  absl::Status CheckTableIsComplete() const {
    if (missing_items_ == 0) return absl::OkStatus();
    return base::InvalidArgument("table ", tables_.back().info.name, " lacks ", missing_items_,
                                 " items before it");
  }
  absl::Status AddTable(absl::string_view payload) {
    GR_RETURN_IF_ERROR(CheckTableIsComplete());
    GR_ASSIGN_OR_RETURN(TableRecord record, DecodeTable(payload));
    if (!names_.insert(record.snapshot.info.name).second) {
      return base::InvalidArgument("table ", record.snapshot.info.name, " comes again");
    }
    missing_items_ = record.num_items;
    tables_.push_back(std::move(record.snapshot));
    return absl::OkStatus();
  }
  absl::Status AddChunk(absl::string_view payload) {
    GR_ASSIGN_OR_RETURN(storage::ChunkPtr chunk, DecodeChunk(payload, arena_));
    chunks_.push_back(std::move(chunk));
    return absl::OkStatus();
  }
  absl::Status AddItems(absl::string_view payload) {
    if (tables_.empty()) return base::InvalidArgument("items come before the first table");
    std::vector<table::Item>& items = tables_.back().items;
    const size_t before = items.size();
    GR_RETURN_IF_ERROR(DecodeItems(payload, chunks_, items));
    const uint64_t added = items.size() - before;
    if (added > missing_items_) {
      return base::InvalidArgument("table ", tables_.back().info.name, " has too many items");
    }
    missing_items_ -= added;
    num_items_ += added;
    return absl::OkStatus();
  }
  absl::Status CheckEnd(absl::string_view payload) const {
    GR_RETURN_IF_ERROR(CheckTableIsComplete());
    Decoder from(payload);
    if (from.Get<uint64_t>() == tables_.size() && from.Get<uint64_t>() == chunks_.size() &&
        from.Get<uint64_t>() == num_items_ && from.done()) {
      return absl::OkStatus();
    }
    return base::InvalidArgument("its totals are not those of the file");
  }

  memory::Arena& arena_;
  std::vector<table::TableSnapshot> tables_;
  absl::flat_hash_set<std::string> names_;
  std::vector<storage::ChunkPtr> chunks_;
  uint64_t missing_items_ = 0, num_items_ = 0;
};

}  // namespace

absl::Status WriteCheckpointFile(const std::string& path,
                                 absl::Span<const std::shared_ptr<table::Table>> tables) {
  GR_ASSIGN_OR_RETURN(const auto file, BlockWriter::Create(path));
  ChunkNumbers chunks(*file);
  uint64_t num_items = 0;
  for (const auto& table : tables) {
    const table::TableSnapshot snapshot = table->Snapshot();
    GR_RETURN_IF_ERROR(WriteTable(snapshot, chunks, *file));
    num_items += snapshot.items.size();
  }
  Encoder totals;
  totals.Put<uint64_t>(tables.size());
  totals.Put(chunks.count());
  totals.Put(num_items);
  GR_RETURN_IF_ERROR(file->Write(BlockType::kEnd, {totals.bytes()}));
  return file->Sync();
}

absl::StatusOr<std::vector<table::TableSnapshot>> ReadCheckpointFile(const std::string& path,
                                                                     memory::Arena& arena) {
  GR_ASSIGN_OR_RETURN(const auto file, BlockReader::Open(path));
  Contents contents(arena);
  while (true) {
    GR_ASSIGN_OR_RETURN(const Block block, file->Next());
    if (const absl::Status added = contents.Add(block); !added.ok()) {
      return absl::IsInvalidArgument(added) ? file->Damage(added.message()) : added;
    }
    if (block.type == BlockType::kEnd) break;
  }
  if (!file->at_end()) return file->Damage("the file goes on after it");
  return contents.Take();
}

}  // namespace gear_reverb::checkpoint
