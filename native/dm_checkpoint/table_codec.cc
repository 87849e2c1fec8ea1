#include "native/dm_checkpoint/table_codec.h"

#include <utility>

#include "native/base/philox.h"
#include "native/base/status.h"
#include "native/rpc/parse.h"
#include "native/rpc/table_info_codec.h"

namespace gear_reverb::dm_checkpoint {
namespace {

namespace field {
constexpr uint32_t kName = 1, kDeprecatedItems = 2, kRateLimiter = 3, kSampler = 4, kRemover = 5,
                   kMaxSize = 6, kMaxTimesSampled = 7, kNumDeletedEpisodes = 8, kSignature = 9,
                   kNumUniqueSamples = 10;
}  // namespace field
namespace limiter_field {
constexpr uint32_t kSamplesPerInsert = 2, kMinDiff = 3, kMaxDiff = 4, kMinSizeToSample = 5,
                   kSamples = 6, kInserts = 7, kDeletes = 8;
}  // namespace limiter_field

void ReadRateLimiter(protozero::pbf_reader reader, table::TableInfo* info) {
  namespace f = limiter_field;
  while (reader.next()) {
    switch (reader.tag()) {
      case f::kSamplesPerInsert: info->rate_limiter.samples_per_insert = reader.get_double(); break;
      case f::kMinDiff: info->rate_limiter.min_diff = reader.get_double(); break;
      case f::kMaxDiff: info->rate_limiter.max_diff = reader.get_double(); break;
      case f::kMinSizeToSample: info->rate_limiter.min_size_to_sample = reader.get_int64(); break;
      case f::kSamples: info->counts.samples = reader.get_int64(); break;
      case f::kInserts: info->counts.inserts = reader.get_int64(); break;
      case f::kDeletes: info->counts.deletes = reader.get_int64(); break;
      default: reader.skip();
    }
  }
}

rpc::MessageWriter EncodeRateLimiter(const table::TableInfo& info) {
  namespace f = limiter_field;
  rpc::MessageWriter message;
  message.AddDouble(f::kSamplesPerInsert, info.rate_limiter.samples_per_insert);
  message.AddDouble(f::kMinDiff, info.rate_limiter.min_diff);
  message.AddDouble(f::kMaxDiff, info.rate_limiter.max_diff);
  message.AddInt64(f::kMinSizeToSample, info.rate_limiter.min_size_to_sample);
  message.AddInt64(f::kSamples, info.counts.samples);
  message.AddInt64(f::kInserts, info.counts.inserts);
  message.AddInt64(f::kDeletes, info.counts.deletes);
  return message;
}

absl::StatusOr<selectors::SelectorOptions> ReadSelector(protozero::pbf_reader& reader) {
  return rpc::DecodeSelectorOptions(rpc::ToStringView(reader.get_view()));
}

}  // namespace

rpc::MessageWriter EncodeTable(const table::TableSnapshot& snapshot) {
  const table::TableInfo& info = snapshot.info;
  rpc::MessageWriter message;
  message.AddBytes(field::kName, info.name);
  message.AddMessage(field::kRateLimiter, EncodeRateLimiter(info));
  message.AddMessage(field::kSampler, rpc::EncodeSelectorOptions(info.sampler));
  message.AddMessage(field::kRemover, rpc::EncodeSelectorOptions(info.remover));
  message.AddInt64(field::kMaxSize, info.max_size);
  message.AddInt64(field::kMaxTimesSampled, info.max_times_sampled);
  message.AddInt64(field::kNumDeletedEpisodes, info.num_deleted_episodes);
  if (!info.signature.empty()) message.AddBytes(field::kSignature, info.signature);
  message.AddInt64(field::kNumUniqueSamples, info.num_unique_samples);
  return message;
}

absl::StatusOr<table::TableSnapshot> DecodeTable(absl::string_view bytes) {
  table::TableSnapshot snapshot;
  table::TableInfo& info = snapshot.info;
  GR_RETURN_IF_ERROR(rpc::Guarded("PriorityTableCheckpoint", [&]() -> absl::Status {
    protozero::pbf_reader reader(rpc::ToDataView(bytes));
    while (reader.next()) {
      switch (reader.tag()) {
        case field::kName: info.name = reader.get_string(); break;
        case field::kDeprecatedItems:
          return base::InvalidArgument("its items lie in the table, as in very old versions");
        case field::kRateLimiter: ReadRateLimiter(reader.get_message(), &info); break;
        case field::kSampler: {
          GR_ASSIGN_OR_RETURN(info.sampler, ReadSelector(reader));
          break;
        }
        case field::kRemover: {
          GR_ASSIGN_OR_RETURN(info.remover, ReadSelector(reader));
          break;
        }
        case field::kMaxSize: info.max_size = reader.get_int64(); break;
        case field::kMaxTimesSampled: info.max_times_sampled = reader.get_int32(); break;
        case field::kNumDeletedEpisodes: info.num_deleted_episodes = reader.get_int64(); break;
        case field::kSignature: info.signature = reader.get_string(); break;
        case field::kNumUniqueSamples: info.num_unique_samples = reader.get_int64(); break;
        default: reader.skip();
      }
    }
    return absl::OkStatus();
  }));
  if (info.name.empty()) return base::InvalidArgument("it is a table without a name");
  snapshot.seed = base::RandomUint64();
  return snapshot;
}

}  // namespace gear_reverb::dm_checkpoint
