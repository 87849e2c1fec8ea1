// From snapshots to dm-reverb's files.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/time/clock.h"
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

// Every chunk once, however many items and tables share it.
absl::Status WriteChunks(const std::string& path, absl::Span<const table::TableSnapshot> tables) {
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
        GR_RETURN_IF_ERROR(
            file->Write(rpc::EncodeChunk(chunk, rpc::Compression::kSnappy).TakeString()));
      }
    }
  }
  return file->Finish();
}

absl::Status WriteItems(const std::string& path, absl::Span<const table::TableSnapshot> tables) {
  GR_ASSIGN_OR_RETURN(const auto file, RecordWriter::Create(path));
  for (const table::TableSnapshot& table : tables) {
    for (const table::Item& item : table.items) {
      GR_RETURN_IF_ERROR(file->Write(rpc::EncodeItem(item, table.info.name).TakeString()));
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
  GR_RETURN_IF_ERROR(WriteChunks(directory + kChunksFile, tables));
  GR_RETURN_IF_ERROR(WriteItems(directory + kItemsFile, tables));
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
