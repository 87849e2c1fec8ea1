// Stores a server's tables on disk and brings them back. The format is in
// docs/formats/checkpoint.md.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/memory/arena.h"
#include "native/storage/chunk_store.h"
#include "native/table/table.h"

namespace gear_reverb::checkpoint {

// Thread-compatible.
class Checkpointer {
 public:
  // Checkpoints go to `path`/`group`. `fallback_path` is read where `path` has none.
  static absl::StatusOr<std::shared_ptr<Checkpointer>> Create(
      const std::string& path, const std::string& group,
      const std::optional<std::string>& fallback_path);

  // Writes all tables and returns the new checkpoint's directory. Traffic goes on meanwhile: each
  // table is stored as it is at one moment.
  absl::StatusOr<std::string> Save(absl::Span<const std::shared_ptr<table::Table>> tables);

  // Fills `tables`, which must be empty, from the newest checkpoint that is whole. NOT_FOUND if
  // there is none; FAILED_PRECONDITION naming table and field if it does not fit the tables.
  absl::Status LoadLatest(absl::Span<const std::shared_ptr<table::Table>> tables,
                          memory::Arena& arena, storage::ChunkStore& chunks);

  // "Checkpointer(path=…)".
  std::string DebugString() const;

 private:
  Checkpointer(std::string root, std::optional<std::string> fallback_root)
      : root_(std::move(root)), fallback_root_(std::move(fallback_root)) {}

  const std::string root_;
  const std::optional<std::string> fallback_root_;
};

}  // namespace gear_reverb::checkpoint
