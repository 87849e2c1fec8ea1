// Items on Reverb's wire (PrioritizedItem, SampleInfo).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "native/rpc/message_writer.h"
#include "native/table/item.h"

namespace gear_reverb::rpc {

// An item whose chunks are still only keys.
struct ItemMessage {
  struct Slice {
    uint64_t chunk_key = 0;
    int32_t offset = 0;
    int32_t length = 0;
    int32_t index = 0;
  };
  struct Column {
    std::vector<Slice> slices;
    bool squeeze = false;
  };

  uint64_t key = 0;
  std::string table;
  double priority = 0;
  int32_t times_sampled = 0;
  absl::Time inserted_at = absl::UnixEpoch();
  std::vector<Column> columns;
};

struct SampleInfoMessage {
  ItemMessage item;
  double probability = 0;
  int64_t table_size = 0;
  bool rate_limited = false;
};

MessageWriter EncodeItem(const table::Item& item, const std::string& table);
absl::StatusOr<ItemMessage> DecodeItem(absl::string_view message);

MessageWriter EncodeSampleInfo(const table::SampledItem& sample, const std::string& table);
absl::StatusOr<SampleInfoMessage> DecodeSampleInfo(absl::string_view message);

// The checked trajectory of `item`, whose chunks `find` gives (null: INTERNAL "Could not find
// sequence chunk"). INVALID_ARGUMENT as CheckTrajectory.
absl::StatusOr<storage::TrajectoryPtr> ResolveTrajectory(
    const ItemMessage& item, absl::FunctionRef<storage::ChunkPtr(uint64_t key)> find);

}  // namespace gear_reverb::rpc
