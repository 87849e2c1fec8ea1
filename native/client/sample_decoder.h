// Puts the entries of sample responses together to samples.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "native/rpc/item_codec.h"
#include "native/table/item.h"

namespace gear_reverb::client {

// Thread-compatible. Chunks are decoded into the process's arena.
class SampleDecoder {
 public:
  // The samples that `response` (a SampleStreamResponse) completes. INVALID_ARGUMENT or INTERNAL
  // for entries that do not make whole samples.
  absl::StatusOr<std::vector<table::SampledItem>> Decode(absl::string_view response);

 private:
  absl::StatusOr<table::SampledItem> Finish();

  bool has_info_ = false;
  rpc::SampleInfoMessage info_;
  absl::flat_hash_map<uint64_t, storage::ChunkPtr> chunks_;
};

}  // namespace gear_reverb::client
