// From snapshots to dm-reverb's files.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/clock.h"
#include "native/base/philox.h"
#include "native/base/status.h"
#include "native/checkpoint/block_file.h"
#include "native/checkpoint/checkpointer.h"
#include "native/checkpoint/directory.h"
#include "native/dm_checkpoint/dm_checkpoint.h"
#include "native/dm_checkpoint/files.h"
#include "native/dm_checkpoint/record_file.h"
#include "native/dm_checkpoint/table_codec.h"
#include "native/rpc/chunk_codec.h"
#include "native/rpc/item_codec.h"

namespace gear_reverb::dm_checkpoint {
namespace {

absl::Status WriteTables(const std::string& path, absl::Span<const table::TableSnapshot> tables) {
  GR_ASSIGN_OR_RETURN(const auto file, RecordWriter::Create(path));
  for (const table::TableSnapshot& table : tables) {
    GR_RETURN_IF_ERROR(file->Write(EncodeTable(table).TakeString()));
  }
  return file->Finish();
}

// Chunks, of which dm-reverb knows no two by one key, as our tables may: one that comes with the
// key of another has a new one.
class ChunksByKey {
 public:
  // `chunk`, or one of the same data and another key; the same one every time.
  absl::StatusOr<storage::ChunkPtr> Of(const storage::ChunkPtr& chunk) {
    storage::ChunkPtr& known = known_[chunk.get()];
    if (known != nullptr) return known;
    uint64_t key = chunk->key();
    while (!keys_.insert(key).second) key = base::RandomUint64();
    if (key == chunk->key()) return known = chunk;
    std::vector<storage::ChunkColumn> columns;
    for (const storage::ChunkColumn& column : chunk->columns()) {
      columns.emplace_back(column.dtype(), column.shape(),
                           memory::Block::Foreign(std::make_shared<storage::ChunkPtr>(chunk),
                                                  column.data.data(), column.data.size()));
    }
    GR_ASSIGN_OR_RETURN(known, storage::Chunk::Create(key, chunk->range(), std::move(columns)));
    return known;
  }

  // `item`, of such chunks.
  absl::StatusOr<table::Item> WithThem(table::Item item) {
    bool same = true;
    storage::TrajectoryBuilder made;
    for (const storage::TrajectoryColumn& column : item.trajectory->columns) {
      storage::TrajectoryBuilder::Column& slices = made.columns.emplace_back();
      slices.squeeze = column.squeeze;
      for (storage::ChunkSlice slice : column.slices) {
        GR_ASSIGN_OR_RETURN(storage::ChunkPtr chunk, Of(slice.chunk));
        same = same && chunk == slice.chunk;
        slice.chunk = std::move(chunk);
        slices.slices.push_back(std::move(slice));
      }
    }
    if (!same) item.trajectory = std::move(made).Build();
    return item;
  }

 private:
  absl::flat_hash_map<const storage::Chunk*, storage::ChunkPtr> known_;
  absl::flat_hash_set<uint64_t> keys_;
};

// Every chunk once, however many items and tables share it.
absl::Status WriteChunks(const std::string& path, absl::Span<const table::TableSnapshot> tables,
                         ChunksByKey* by_key) {
  GR_ASSIGN_OR_RETURN(const auto file, RecordWriter::Create(path));
  absl::flat_hash_set<const storage::Chunk*> written;
  for (const table::TableSnapshot& table : tables) {
    for (const table::Item& item : table.items) {
      if (item.trajectory == nullptr) {
        return base::InvalidArgument("Table ", table.info.name, ": item ", item.key,
                                     " has no data, which dm-reverb's checkpoints cannot say.");
      }
      for (const storage::ChunkPtr& chunk : item.trajectory->chunks()) {
        if (!written.insert(chunk.get()).second) continue;
        GR_ASSIGN_OR_RETURN(const storage::ChunkPtr keyed, by_key->Of(chunk));
        GR_RETURN_IF_ERROR(
            file->Write(rpc::EncodeChunk(keyed, rpc::Compression::kSnappy).TakeString()));
      }
    }
  }
  return file->Finish();
}

absl::Status WriteItems(const std::string& path, absl::Span<const table::TableSnapshot> tables,
                        ChunksByKey* by_key) {
  GR_ASSIGN_OR_RETURN(const auto file, RecordWriter::Create(path));
  for (const table::TableSnapshot& table : tables) {
    for (const table::Item& item : table.items) {
      GR_ASSIGN_OR_RETURN(const table::Item keyed, by_key->WithThem(item));
      GR_RETURN_IF_ERROR(file->Write(rpc::EncodeItem(keyed, table.info.name).TakeString()));
    }
  }
  return file->Finish();
}

absl::Status WriteDone(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("Cannot create ", path));
  const checkpoint::File file(fd);
  if (fsync(fd) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("Cannot flush ", path));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> Write(const std::string& root,
                                  absl::Span<const table::TableSnapshot> tables) {
  GR_ASSIGN_OR_RETURN(const auto unpublished, checkpoint::UnpublishedCheckpoint::Create(root));
  const std::string directory = absl::StrCat(unpublished->directory(), "/");
  GR_RETURN_IF_ERROR(WriteTables(directory + kTablesFile, tables));
  ChunksByKey by_key;
  GR_RETURN_IF_ERROR(WriteChunks(directory + kChunksFile, tables, &by_key));
  GR_RETURN_IF_ERROR(WriteItems(directory + kItemsFile, tables, &by_key));
  GR_RETURN_IF_ERROR(WriteDone(directory + kDoneFile));
  return unpublished->Publish(absl::Now());
}

absl::StatusOr<std::string> Export(const std::string& path, const std::string& root) {
  if (root.empty()) return base::InvalidArgument("The directory to write to must not be empty.");
  GR_ASSIGN_OR_RETURN(const auto checkpointer,
                      checkpoint::Checkpointer::Create(path, "", std::nullopt));
  const auto arena = memory::Arena::Create({});
  GR_ASSIGN_OR_RETURN(const auto contents, checkpointer->ReadLatest(*arena));
  return Write(root, contents.tables);
}

}  // namespace gear_reverb::dm_checkpoint
