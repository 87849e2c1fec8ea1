// Many items in one call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "native/client/client.h"
#include "native/storage/stacked_rows.h"

namespace gear_reverb::client {

// Inserts item i = row i of `rows`, with keys[i] and priorities[i], in order, waiting for the rate
// limiter, and returns when all are in; `keys` must be new, and both be as many as the
// rows. Into a table of this process the rows are copied once, straight to their place; elsewhere
// they go by an insert stream, which survives a server that goes away for a while.
//
// Nothing is inserted where `table`, its signature or a priority forbids it: NOT_FOUND,
// INVALID_ARGUMENT. (But a remote server refuses a negative weight when it comes to it.)
// DEADLINE_EXCEEDED says how many were confirmed; later ones may come in all the
// same, unless the server is of this process. CANCELLED, UNAVAILABLE, RESOURCE_EXHAUSTED: as
// many as were confirmed remain.
absl::Status InsertBatch(const std::shared_ptr<Client>& client, const std::string& table,
                         const storage::StackedRows& rows, absl::Span<const uint64_t> keys,
                         absl::Span<const double> priorities, absl::Time deadline);

}  // namespace gear_reverb::client
