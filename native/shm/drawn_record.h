// Body of the message that tells what was drawn.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "native/batch/drawn_batch.h"
#include "native/shm/segment_map.h"
#include "native/table/item.h"

namespace gear_reverb::shm {

// Appends what was drawn, as places in segments of the arena that all of the items' chunks lie in.
// `segments` receives the ids of those that were used. RESOURCE_EXHAUSTED if that would take more
// than `max_bytes`.
absl::Status EncodeDrawn(uint64_t lease, absl::Span<const table::SampledItem> items,
                         size_t max_bytes, std::string* out,
                         absl::flat_hash_set<uint32_t>* segments);

// What was drawn, in groups of items that are alike; all groups but the last end where the next
// item differs. The batches have no lease yet.
struct Drawn {
  uint64_t lease = 0;
  std::vector<batch::DrawnBatch> groups;
  std::vector<std::shared_ptr<const MappedSegment>> segments;  // What the pieces point into.
};
// INVALID_ARGUMENT for malformed bytes, for a place outside of what `find` gives (null: unknown),
// and for pieces that do not make up their items.
absl::StatusOr<Drawn> DecodeDrawn(
    absl::string_view body,
    absl::FunctionRef<std::shared_ptr<const MappedSegment>(uint32_t segment)> find);

}  // namespace gear_reverb::shm
