#include "native/client/sample_decoder.h"

#include <utility>

#include "native/base/status.h"
#include "native/rpc/chunk_codec.h"
#include "native/rpc/requests.h"

namespace gear_reverb::client {

absl::StatusOr<std::vector<table::SampledItem>> SampleDecoder::Decode(absl::string_view response) {
  GR_ASSIGN_OR_RETURN(const std::vector<rpc::SampleEntry> entries,
                      rpc::DecodeSampleResponse(response));
  std::vector<table::SampledItem> samples;
  for (const rpc::SampleEntry& entry : entries) {
    if (!entry.info.empty()) {
      if (has_info_) return base::InvalidArgument("A sample has two infos.");
      GR_ASSIGN_OR_RETURN(info_, rpc::DecodeSampleInfo(entry.info));
      has_info_ = true;
    }
    for (absl::string_view message : entry.chunks) {
      GR_ASSIGN_OR_RETURN(storage::ChunkPtr chunk,
                          rpc::DecodeChunk(message, *memory::ProcessArena()));
      chunks_[chunk->key()] = std::move(chunk);
    }
    if (!entry.end_of_sequence) continue;
    GR_ASSIGN_OR_RETURN(table::SampledItem sample, Finish());
    samples.push_back(std::move(sample));
  }
  return samples;
}

absl::StatusOr<table::SampledItem> SampleDecoder::Finish() {
  if (!has_info_) return base::InvalidArgument("A sample has no info.");
  table::SampledItem sample;
  sample.item.key = info_.item.key;
  sample.item.priority = info_.item.priority;
  sample.item.times_sampled = info_.item.times_sampled;
  sample.item.inserted_at = info_.item.inserted_at;
  sample.probability = info_.probability;
  sample.table_size = info_.table_size;
  sample.rate_limited = info_.rate_limited;
  GR_ASSIGN_OR_RETURN(sample.item.trajectory,
                      rpc::ResolveTrajectory(info_.item, [this](uint64_t key) {
                        const auto found = chunks_.find(key);
                        return found == chunks_.end() ? nullptr : found->second;
                      }));
  has_info_ = false;
  info_ = {};
  chunks_.clear();
  return sample;
}

}  // namespace gear_reverb::client
