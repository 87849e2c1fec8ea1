#include "native/rpc/table_info_codec.h"

#include <optional>
#include <utility>

#include "native/rpc/fields.h"
#include "native/rpc/parse.h"

namespace gear_reverb::rpc {
namespace {

// Makes std::visit of a set of lambdas.
template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

MessageWriter EncodeCallStats(int64_t completed) {
  MessageWriter message;
  if (completed != 0) message.AddInt64(field::call_stats::kCompleted, completed);
  return message;
}

MessageWriter EncodeRateLimiter(const table::TableInfo& info) {
  namespace f = field::rate_limiter_info;
  MessageWriter message;
  message.AddDouble(f::kSamplesPerInsert, info.rate_limiter.samples_per_insert);
  message.AddDouble(f::kMinDiff, info.rate_limiter.min_diff);
  message.AddDouble(f::kMaxDiff, info.rate_limiter.max_diff);
  message.AddInt64(f::kMinSizeToSample, info.rate_limiter.min_size_to_sample);
  message.AddMessage(f::kInsertStats, EncodeCallStats(info.counts.inserts));
  message.AddMessage(f::kSampleStats, EncodeCallStats(info.counts.samples));
  return message;
}

MessageWriter EncodeWorkerTime(const table::TableInfo& info) {
  namespace f = field::worker_time;
  MessageWriter message;
  const int64_t sampling = absl::ToInt64Milliseconds(info.time_sampling);
  const int64_t inserting = absl::ToInt64Milliseconds(info.time_inserting);
  message.AddInt64(f::kRunning, sampling + inserting);
  message.AddInt64(f::kSampling, sampling);
  message.AddInt64(f::kInserting, inserting);
  return message;
}

}  // namespace

MessageWriter EncodeSelectorOptions(const selectors::SelectorOptions& options) {
  namespace f = field::key_distribution;
  MessageWriter message;
  std::visit(Overloaded{
                 [&](const selectors::FifoOptions&) { message.AddBool(f::kFifo, true); },
                 [&](const selectors::LifoOptions&) { message.AddBool(f::kLifo, true); },
                 [&](const selectors::UniformOptions&) { message.AddBool(f::kUniform, true); },
                 [&](const selectors::PrioritizedOptions& prioritized) {
                   MessageWriter inner;
                   inner.AddDouble(field::prioritized::kExponent, prioritized.exponent);
                   message.AddMessage(f::kPrioritized, std::move(inner));
                 },
                 [&](const selectors::HeapOptions& heap) {
                   MessageWriter inner;
                   inner.AddBool(field::heap::kMinHeap, heap.min_heap);
                   message.AddMessage(f::kHeap, std::move(inner));
                 },
             },
             options);
  if (selectors::IsDeterministic(options)) message.AddBool(f::kIsDeterministic, true);
  return message;
}

absl::StatusOr<selectors::SelectorOptions> DecodeSelectorOptions(absl::string_view bytes) {
  namespace f = field::key_distribution;
  std::optional<selectors::SelectorOptions> options;
  GR_RETURN_IF_ERROR(Guarded("KeyDistributionOptions", [&] {
    protozero::pbf_reader reader(ToDataView(bytes));
    while (reader.next()) {
      switch (reader.tag()) {
        case f::kFifo:
          if (ReadBool(reader)) options = selectors::FifoOptions{};
          break;
        case f::kLifo:
          if (ReadBool(reader)) options = selectors::LifoOptions{};
          break;
        case f::kUniform:
          if (ReadBool(reader)) options = selectors::UniformOptions{};
          break;
        case f::kPrioritized: {
          protozero::pbf_reader inner = reader.get_message();
          double exponent = 0;
          while (inner.next()) {
            if (inner.tag() == field::prioritized::kExponent) {
              exponent = inner.get_double();
            } else {
              inner.skip();
            }
          }
          options = selectors::PrioritizedOptions{exponent};
          break;
        }
        case f::kHeap: {
          protozero::pbf_reader inner = reader.get_message();
          bool min_heap = false;
          while (inner.next()) {
            if (inner.tag() == field::heap::kMinHeap) {
              min_heap = ReadBool(inner);
            } else {
              inner.skip();
            }
          }
          options = selectors::HeapOptions{min_heap};
          break;
        }
        default: reader.skip();
      }
    }
    return absl::OkStatus();
  }));
  if (!options.has_value()) {
    return base::InvalidArgument("KeyDistributionOptions: no distribution is set.");
  }
  return *options;
}

MessageWriter EncodeTableInfo(const table::TableInfo& info) {
  namespace f = field::table_info;
  MessageWriter message;
  message.AddMessage(f::kSampler, EncodeSelectorOptions(info.sampler));
  message.AddMessage(f::kRemover, EncodeSelectorOptions(info.remover));
  message.AddInt64(f::kMaxSize, info.max_size);
  message.AddInt64(f::kMaxTimesSampled, info.max_times_sampled);
  message.AddMessage(f::kRateLimiter, EncodeRateLimiter(info));
  if (!info.signature.empty()) message.AddBytes(f::kSignature, info.signature);
  message.AddInt64(f::kCurrentSize, info.current_size);
  message.AddBytes(f::kName, info.name);
  message.AddInt64(f::kNumEpisodes, info.num_episodes);
  message.AddInt64(f::kNumDeletedEpisodes, info.num_deleted_episodes);
  message.AddInt64(f::kNumUniqueSamples, info.num_unique_samples);
  message.AddMessage(f::kWorkerTime, EncodeWorkerTime(info));
  message.AddInt64(f::kBytes, info.bytes);
  message.AddInt64(f::kWaitingInserts, info.waiting_inserts);
  message.AddInt64(f::kWaitingSamples, info.waiting_samples);
  if (!info.blocked_insert.empty()) message.AddBytes(f::kBlockedInsert, info.blocked_insert);
  if (!info.blocked_sample.empty()) message.AddBytes(f::kBlockedSample, info.blocked_sample);
  message.AddInt64(f::kNumUnusedSamples, info.num_unused_samples);
  return message;
}

absl::StatusOr<TableSignature> DecodeTableSignature(absl::string_view bytes) {
  TableSignature table;
  GR_RETURN_IF_ERROR(Guarded("TableInfo", [&]() -> absl::Status {
    protozero::pbf_reader reader(ToDataView(bytes));
    while (reader.next()) {
      switch (reader.tag()) {
        case field::table_info::kName: table.name = reader.get_string(); break;
        case field::table_info::kSignature: table.signature = reader.get_string(); break;
        case field::table_info::kSampler:
        case field::table_info::kRemover: {
          GR_ASSIGN_OR_RETURN(const auto selector,
                              DecodeSelectorOptions(ToStringView(reader.get_view())));
          table.takes_negative = table.takes_negative && selectors::TakesNegative(selector);
          break;
        }
        default: reader.skip();
      }
    }
    return absl::OkStatus();
  }));
  return table;
}

}  // namespace gear_reverb::rpc
