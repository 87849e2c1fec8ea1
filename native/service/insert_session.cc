#include "native/service/insert_session.h"

#include <algorithm>
#include <utility>

#include "native/base/status.h"

namespace gear_reverb::service {

void InsertSession::AddChunk(storage::ChunkPtr chunk) {
  const uint64_t key = chunk->key();
  chunks_.try_emplace(key, std::move(chunk));
}

storage::ChunkPtr InsertSession::FindChunk(uint64_t key) const {
  const auto found = chunks_.find(key);
  return found == chunks_.end() ? nullptr : found->second;
}

absl::StatusOr<std::shared_ptr<table::Table>> InsertSession::FindTable(const std::string& name) {
  if (table_ == nullptr || table_->name() != name) {
    GR_ASSIGN_OR_RETURN(table_, service_->FindTable(name));
  }
  return table_;
}

void InsertSession::AddItems(std::vector<NewItem> items) {
  for (auto item = items.begin(); item != items.end();) {
    const std::shared_ptr<table::Table> table = item->table;
    std::vector<table::Table::Insertion> batch;
    for (; item != items.end() && item->table == table; ++item) {
      batch.push_back(std::move(item->insertion));
    }
    table->InsertOrAssignBatchAsync(std::move(batch), absl::InfiniteFuture());
  }
}

absl::Status InsertSession::KeepOnly(absl::Span<const uint64_t> chunk_keys) {
  absl::flat_hash_map<uint64_t, storage::ChunkPtr> kept;
  // A client may name a chunk more than once.
  kept.reserve(std::min(chunk_keys.size(), chunks_.size()));
  for (uint64_t key : chunk_keys) {
    const auto found = chunks_.find(key);
    if (found == chunks_.end()) {
      return base::FailedPrecondition("keep_chunk_keys: chunk ", key, " is not held.");
    }
    kept.emplace(key, found->second);
  }
  chunks_ = std::move(kept);
  return absl::OkStatus();
}

}  // namespace gear_reverb::service
