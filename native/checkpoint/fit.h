// Whether a checkpoint fits the tables it is to be loaded into, and how they differ.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/table/table.h"

namespace gear_reverb::checkpoint {

// Whether two signatures, which may be empty, ask the same of items.
using SameSignature = std::function<bool(const std::string& a, const std::string& b)>;

// The table for each snapshot, by name. INVALID_ARGUMENT if there is none, FAILED_PRECONDITION
// naming table and field if its signature or max_size does not take the items, or it has items.
absl::StatusOr<std::vector<std::shared_ptr<table::Table>>> MatchTables(
    absl::Span<const table::TableSnapshot> snapshots,
    absl::Span<const std::shared_ptr<table::Table>> tables, const SameSignature& same_signature);

// One line for each field of the configuration in which the table, whose value holds, differs from
// the checkpoint: "Table t: max_size is 5 (in the checkpoint: 9)".
std::vector<std::string> DescribeDifferences(const table::TableInfo& table,
                                             const table::TableInfo& saved);

}  // namespace gear_reverb::checkpoint
