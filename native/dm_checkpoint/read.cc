// From dm-reverb's files to snapshots.
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "native/base/status.h"
#include "native/dm_checkpoint/dm_checkpoint.h"
#include "native/dm_checkpoint/files.h"
#include "native/dm_checkpoint/record_file.h"
#include "native/dm_checkpoint/table_codec.h"
#include "native/rpc/chunk_codec.h"
#include "native/rpc/item_codec.h"
#include "native/rpc/signature_codec.h"

namespace gear_reverb::dm_checkpoint {
namespace {

bool Exists(const std::string& directory, const char* file) {
  std::error_code error;
  return std::filesystem::is_regular_file(absl::StrCat(directory, "/", file), error);
}

// One checkpoint as it is being read. Nothing in the files is believed.
class Reader {
 public:
  Reader(std::string directory, memory::Arena& arena)
      : directory_(std::move(directory)), arena_(arena) {}

  absl::StatusOr<std::vector<table::TableSnapshot>> Read() {
    if (!Exists(directory_, kDoneFile)) {
      return base::DataLoss(directory_, " is unfinished: it has no file ", kDoneFile, ".");
    }
    GR_RETURN_IF_ERROR(ReadFile(kTablesFile, &Reader::AddTable));
    GR_RETURN_IF_ERROR(ReadFile(kChunksFile, &Reader::AddChunk));
    GR_RETURN_IF_ERROR(ReadFile(kItemsFile, &Reader::AddItem));
    return std::move(tables_);
  }

 private:
  absl::Status ReadFile(const char* file, absl::Status (Reader::*add)(absl::string_view record)) {
    GR_ASSIGN_OR_RETURN(const auto records,
                        RecordReader::Open(absl::StrCat(directory_, "/", file)));
    while (true) {
      GR_ASSIGN_OR_RETURN(const auto record, records->Next());
      if (!record.has_value()) return absl::OkStatus();
      const absl::Status added = (this->*add)(*record);
      if (absl::IsResourceExhausted(added)) return added;
      if (!added.ok()) return records->Damage(added.message());
    }
  }

  absl::Status AddTable(absl::string_view record) {
    GR_ASSIGN_OR_RETURN(table::TableSnapshot snapshot, DecodeTable(record));
    const std::string name = snapshot.info.name;
    if (!numbers_.emplace(name, tables_.size()).second) {
      return base::InvalidArgument("table ", name, " comes again");
    }
    tables_.push_back(std::move(snapshot));
    return absl::OkStatus();
  }

  absl::Status AddChunk(absl::string_view record) {
    GR_ASSIGN_OR_RETURN(storage::ChunkPtr chunk, rpc::DecodeChunk(record, arena_));
    // dm-reverb stores a chunk twice if it was sent twice; the key says that it is the same.
    const uint64_t key = chunk->key();
    chunks_.try_emplace(key, std::move(chunk));
    return absl::OkStatus();
  }

  absl::Status AddItem(absl::string_view record) {
    GR_ASSIGN_OR_RETURN(const rpc::ItemMessage message, rpc::DecodeItem(record));
    const auto number = numbers_.find(message.table);
    if (number == numbers_.end()) {
      return base::InvalidArgument("item ", message.key, " is of the unknown table '",
                                   message.table, "'");
    }
    table::Item item;
    item.key = message.key;
    item.priority = message.priority;
    item.times_sampled = message.times_sampled;
    item.inserted_at = message.inserted_at;
    GR_ASSIGN_OR_RETURN(item.trajectory, rpc::ResolveTrajectory(message, [this](uint64_t key) {
                          const auto found = chunks_.find(key);
                          return found == chunks_.end() ? nullptr : found->second;
                        }));
    tables_[number->second].items.push_back(std::move(item));
    return absl::OkStatus();
  }

  const std::string directory_;
  memory::Arena& arena_;
  std::vector<table::TableSnapshot> tables_;
  absl::flat_hash_map<std::string, size_t> numbers_;  // Places in `tables_`, by name.
  absl::flat_hash_map<uint64_t, storage::ChunkPtr> chunks_;
};

class DmFormat final : public checkpoint::ForeignFormat {
 public:
  bool Recognizes(const std::string& directory) const override {
    return Exists(directory, kTablesFile) || Exists(directory, kItemsFile) ||
           Exists(directory, kChunksFile);
  }

  absl::StatusOr<std::vector<table::TableSnapshot>> Read(const std::string& directory,
                                                         memory::Arena& arena) const override {
    return Reader(directory, arena).Read();
  }

  // TensorFlow's serialisation of a nest is not the only one: a dict's entries have no order.
  bool SameSignature(const std::string& a, const std::string& b) const override {
    if (a.empty() || b.empty()) return a == b;
    const auto left = rpc::DecodeSignature(a), right = rpc::DecodeSignature(b);
    if (!left.ok() || !right.ok() || left->size() != right->size()) return false;
    for (size_t i = 0; i < left->size(); ++i) {
      const tensor::TensorSpec& x = (*left)[i];
      const tensor::TensorSpec& y = (*right)[i];
      if (x.path != y.path || x.dtype != y.dtype || x.shape != y.shape ||
          x.unknown_rank != y.unknown_rank) {
        return false;
      }
    }
    return true;
  }
};

}  // namespace

std::shared_ptr<const checkpoint::ForeignFormat> Format() { return std::make_shared<DmFormat>(); }

}  // namespace gear_reverb::dm_checkpoint
