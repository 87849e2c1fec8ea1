// One writer's way into a service: the chunks it sent and still needs, and its items.
#pragma once

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "native/service/replay_service.h"

namespace gear_reverb::service {

// Thread-compatible. Items that wait for the rate limiter when the session ends are inserted all
// the same; a writer that comes back and sends one again only assigns it.
class InsertSession {
 public:
  explicit InsertSession(std::shared_ptr<ReplayService> service) : service_(std::move(service)) {}

  // A chunk whose key the session holds already is ignored.
  void AddChunk(storage::ChunkPtr chunk);

  // Null if the session does not hold it.
  storage::ChunkPtr FindChunk(uint64_t key) const;

  // `done` is called once, now or later, unless an error is returned. The item's trajectory must
  // have been checked. NOT_FOUND for an unknown table.
  absl::Status AddItem(const std::string& table, table::Item item, table::Table::InsertDone done);

  // Drops all chunks but these. FAILED_PRECONDITION (nothing dropped) if one is not held.
  absl::Status KeepOnly(absl::Span<const uint64_t> chunk_keys);

  ReplayService& service() const { return *service_; }

 private:
  const std::shared_ptr<ReplayService> service_;
  absl::flat_hash_map<uint64_t, storage::ChunkPtr> chunks_;
  // The table of the last item: writers seldom change it.
  std::shared_ptr<table::Table> table_;
};

}  // namespace gear_reverb::service
