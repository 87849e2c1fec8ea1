// One writer's way into a service: the chunks it sent and still needs, and its items.
#pragma once

#include <memory>
#include <string>
#include <vector>

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

  // An item on its way to its table; `done` is called once, now or later.
  struct NewItem {
    std::shared_ptr<table::Table> table;
    table::Table::Insertion insertion;
  };
  // NOT_FOUND for an unknown table.
  absl::StatusOr<std::shared_ptr<table::Table>> FindTable(const std::string& name);
  // In order; items of one table that follow each other go in together. Their trajectories must
  // have been checked.
  void AddItems(std::vector<NewItem> items);

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
