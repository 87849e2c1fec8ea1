// All of a server's tables in one file, and back.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/memory/arena.h"
#include "native/table/table.h"

namespace gear_reverb::checkpoint {

// Writes a new file and flushes it. Each table is locked once, for as long as it takes to copy its
// list of items.
absl::Status WriteCheckpointFile(const std::string& path,
                                 absl::Span<const std::shared_ptr<table::Table>> tables);

// Reads and checks a whole file. DATA_LOSS if it is damaged, UNIMPLEMENTED if it is of another
// version, RESOURCE_EXHAUSTED if there is no memory for it.
absl::StatusOr<std::vector<table::TableSnapshot>> ReadCheckpointFile(const std::string& path,
                                                                     memory::Arena& arena);

}  // namespace gear_reverb::checkpoint
