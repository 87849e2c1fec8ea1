// Stores a server's tables on disk and brings them back. The format is in
// docs/formats/checkpoint.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/checkpoint/foreign_format.h"
#include "native/memory/arena.h"
#include "native/table/table.h"

namespace gear_reverb::checkpoint {

// Thread-compatible; checkpointers of several processes may share a path.
class Checkpointer {
 public:
  // Checkpoints go to `path`/`group`. `fallback_path` is read where `path` has none. Both may be a
  // directory of checkpoints or one checkpoint. With `keep_latest` > 0 a save removes all but so
  // many of the newest. Checkpoints of the `foreign` formats are read too, and never removed.
  // INVALID_ARGUMENT for an empty path or a negative number.
  static absl::StatusOr<std::shared_ptr<Checkpointer>> Create(
      const std::string& path, const std::string& group,
      const std::optional<std::string>& fallback_path, int64_t keep_latest = 0,
      std::vector<std::shared_ptr<const ForeignFormat>> foreign = {});

  // Writes all tables and returns the new checkpoint's directory. Traffic goes on meanwhile: each
  // table is stored as it is at one moment.
  absl::StatusOr<std::string> Save(absl::Span<const std::shared_ptr<table::Table>> tables);

  struct Contents {
    std::string path;
    std::vector<table::TableSnapshot> tables;
    const ForeignFormat* format = nullptr;  // Null for our own.
  };
  // The newest checkpoint that is whole. NOT_FOUND if there is none, DATA_LOSS if all are damaged.
  absl::StatusOr<Contents> ReadLatest(memory::Arena& arena);

  // Fills `tables`, which must be empty, from the newest checkpoint that is whole; on an error they
  // stay empty. NOT_FOUND if there is no checkpoint, DATA_LOSS if all are damaged,
  // INVALID_ARGUMENT naming a table of the checkpoint that is not among `tables`,
  // FAILED_PRECONDITION naming table and field if it does not fit them otherwise.
  absl::Status LoadLatest(absl::Span<const std::shared_ptr<table::Table>> tables,
                          memory::Arena& arena);

  // "Checkpointer(path=…)".
  std::string DebugString() const;

 private:
  Checkpointer(std::string path, std::string group, std::optional<std::string> fallback_path,
               int64_t keep_latest, std::vector<std::shared_ptr<const ForeignFormat>> foreign)
      : path_(std::move(path)),
        group_(std::move(group)),
        fallback_path_(std::move(fallback_path)),
        keep_latest_(keep_latest),
        foreign_(std::move(foreign)) {}

  // Where the group's checkpoints of `path` lie.
  std::string Root(const std::string& path) const;
  // The format of `directory` if it is foreign, or null.
  const ForeignFormat* FormatOf(const std::string& directory) const;
  bool IsAnyCheckpoint(const std::string& directory) const;
  // The checkpoints in `root`, newest first, and then `root` if it is one.
  absl::StatusOr<std::vector<std::string>> Candidates(const std::string& root) const;

  const std::string path_;
  const std::string group_;
  const std::optional<std::string> fallback_path_;
  const int64_t keep_latest_;
  const std::vector<std::shared_ptr<const ForeignFormat>> foreign_;
};

}  // namespace gear_reverb::checkpoint
