// Checkpoints of dm-reverb: see docs/formats/dm_checkpoint.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/checkpoint/foreign_format.h"

namespace gear_reverb::dm_checkpoint {

// What checkpoint::Checkpointer needs to restore them.
std::shared_ptr<const checkpoint::ForeignFormat> Format();

// Writes the tables to a new directory in `root`, named as dm-reverb finds it, and returns its
// path; it is seen whole or not at all. INVALID_ARGUMENT naming table and item if one has no data.
absl::StatusOr<std::string> Write(const std::string& root,
                                  absl::Span<const table::TableSnapshot> tables);

// Writes to `root` what our own checkpoint `path` holds; `path` may be the parent of checkpoints.
absl::StatusOr<std::string> Export(const std::string& path, const std::string& root);

}  // namespace gear_reverb::dm_checkpoint
