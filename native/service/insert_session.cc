#include "native/service/insert_session.h"

#include <utility>

#include "native/base/status.h"

namespace gear_reverb::service {

void InsertSession::AddChunk(storage::ChunkPtr chunk) {
  const uint64_t key = chunk->key();
  if (chunks_.contains(key)) return;
  chunks_.emplace(key, service_->chunks().Insert(std::move(chunk)));
}

storage::ChunkPtr InsertSession::FindChunk(uint64_t key) const {
  const auto found = chunks_.find(key);
  return found == chunks_.end() ? nullptr : found->second;
}

absl::Status InsertSession::AddItem(const std::string& table, table::Item item,
                                    table::Table::InsertDone done) {
  if (table_ == nullptr || table_->name() != table) {
    GR_ASSIGN_OR_RETURN(table_, service_->FindTable(table));
  }
  table_->InsertOrAssignAsync(std::move(item), absl::InfiniteFuture(), std::move(done));
  return absl::OkStatus();
}

absl::Status InsertSession::KeepOnly(absl::Span<const uint64_t> chunk_keys) {
  absl::flat_hash_map<uint64_t, storage::ChunkPtr> kept;
  kept.reserve(chunk_keys.size());
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
