// A replay server without its network: tables, the memory of their chunks, and checkpoints.
//
// Thread-safe. The gRPC server (native/server) and clients of the same process (native/client)
// stand on it side by side.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/base/mutex.h"
#include "native/checkpoint/checkpointer.h"
#include "native/memory/arena.h"
#include "native/table/table.h"

namespace gear_reverb::service {

class ReplayService {
 public:
  // Restores the newest checkpoint if there is a checkpointer that has one. INVALID_ARGUMENT for
  // two tables of one name; errors of the checkpointer.
  static absl::StatusOr<std::shared_ptr<ReplayService>> Create(
      std::vector<std::shared_ptr<table::Table>> tables,
      std::shared_ptr<checkpoint::Checkpointer> checkpointer);
  ~ReplayService();

  // NOT_FOUND "Priority table T was not found".
  absl::StatusOr<std::shared_ptr<table::Table>> FindTable(const std::string& name) const;
  absl::Span<const std::shared_ptr<table::Table>> tables() const { return tables_; }

  absl::Status MutatePriorities(const std::string& table,
                                absl::Span<const table::KeyWithPriority> updates,
                                absl::Span<const uint64_t> delete_keys);
  absl::Status Reset(const std::string& table);
  absl::Status ReportUnused(const std::string& table, int64_t n);
  // The path of the new checkpoint. INVALID_ARGUMENT without a checkpointer.
  absl::StatusOr<std::string> Checkpoint();

  // Ends all waiting calls; every later one fails. Idempotent.
  void Stop();
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  // `status`, or UNAVAILABLE in its place where it is only the echo of Stop.
  absl::Status Explain(absl::Status status) const;

  memory::Arena& arena() { return *arena_; }
  const std::shared_ptr<memory::Arena>& shared_arena() const { return arena_; }

  // 128 random bits that no other server has.
  const std::string& token() const { return token_; }
  // Changes with every server: clients then fetch the signatures anew.
  std::pair<uint64_t, uint64_t> tables_state_id() const { return tables_state_id_; }

 private:
  ReplayService(std::vector<std::shared_ptr<table::Table>> tables,
                std::shared_ptr<checkpoint::Checkpointer> checkpointer);

  const std::shared_ptr<memory::Arena> arena_;
  const std::vector<std::shared_ptr<table::Table>> tables_;
  absl::flat_hash_map<std::string, std::shared_ptr<table::Table>> table_by_name_;
  const std::shared_ptr<checkpoint::Checkpointer> checkpointer_;
  base::Mutex checkpoint_mutex_;  // One checkpoint at a time.
  const std::string token_;
  const std::pair<uint64_t, uint64_t> tables_state_id_;
  std::atomic<bool> stopped_{false};
};

// The running service of this process that has `token`, or null. A process that was forked from
// one with servers has none.
std::shared_ptr<ReplayService> FindLocalService(const std::string& token);
// How many services this process has had so far, those that stopped included.
uint64_t LocalServicesSeen();

}  // namespace gear_reverb::service
