#include "native/shm/control_records.h"

#include <algorithm>

#include "native/base/status.h"
#include "native/shm/encoding.h"

namespace gear_reverb::shm {
namespace {

// Many requests can wait.
constexpr size_t kMaxTableNameBytes = size_t{64} << 10;

}  // namespace

std::string EncodeDrawRequest(const DrawRequest& request) {
  std::string body;
  Encoder encoder(&body);
  encoder.PutArray<uint64_t>(request.released);
  encoder.PutString(request.table);
  encoder.Put(request.n);
  encoder.Put<int64_t>(request.timeout == absl::InfiniteDuration()
                           ? -1
                           : std::max<int64_t>(absl::ToInt64Microseconds(request.timeout), 0));
  encoder.Put<uint8_t>(request.once ? 1 : 0);
  encoder.Put<uint8_t>(request.seed.has_value() ? 1 : 0);
  encoder.Put<uint64_t>(request.seed.value_or(0));
  return body;
}

absl::StatusOr<DrawRequest> DecodeDrawRequest(absl::string_view body) {
  Decoder decoder(body);
  DrawRequest request;
  request.released = decoder.GetArray<uint64_t>();
  const absl::string_view table = decoder.GetString();
  if (table.size() > kMaxTableNameBytes) {
    return base::InvalidArgument("The name of a table has ", table.size(), " bytes.");
  }
  request.table = std::string(table);
  request.n = decoder.Get<int64_t>();
  const auto microseconds = decoder.Get<int64_t>();
  if (microseconds >= 0) request.timeout = absl::Microseconds(microseconds);
  request.once = decoder.Get<uint8_t>() != 0;
  const bool has_seed = decoder.Get<uint8_t>() != 0;
  const auto seed = decoder.Get<uint64_t>();
  if (has_seed) request.seed = seed;
  if (!decoder.done()) return base::InvalidArgument("The request for samples is malformed.");
  if (request.n < 1) {
    return base::InvalidArgument("`num_samples` must be > 0, but is ", request.n, ".");
  }
  return request;
}

std::string EncodeMutateRequest(const std::string& table,
                                absl::Span<const table::KeyWithPriority> updates,
                                absl::Span<const uint64_t> delete_keys) {
  std::string body;
  Encoder encoder(&body);
  encoder.PutString(table);
  encoder.PutArray(updates);
  encoder.PutArray(delete_keys);
  return body;
}

absl::StatusOr<MutateRequest> DecodeMutateRequest(absl::string_view body) {
  static_assert(sizeof(table::KeyWithPriority) == 16);
  Decoder decoder(body);
  MutateRequest request;
  request.table = std::string(decoder.GetString());
  request.updates = decoder.GetArray<table::KeyWithPriority>();
  request.delete_keys = decoder.GetArray<uint64_t>();
  if (!decoder.done()) return base::InvalidArgument("The request for changes is malformed.");
  return request;
}

}  // namespace gear_reverb::shm
