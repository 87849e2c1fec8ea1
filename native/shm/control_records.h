// Bodies of requests for samples and for new priorities.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "native/table/item.h"

namespace gear_reverb::shm {

struct DrawRequest {
  std::vector<uint64_t> released;  // Leases that are no longer needed.
  std::string table;
  int64_t n = 0;
  absl::Duration timeout = absl::InfiniteDuration();  // Of every draw.
  // Draws from now on take their random numbers from a generator of this seed.
  std::optional<uint64_t> seed;
  bool once = false;  // One draw, of `n` items at most; else draws until there are `n`.
};
std::string EncodeDrawRequest(const DrawRequest& request);
// INVALID_ARGUMENT for malformed bytes and for `n` < 1.
absl::StatusOr<DrawRequest> DecodeDrawRequest(absl::string_view body);

struct MutateRequest {
  std::string table;
  std::vector<table::KeyWithPriority> updates;
  std::vector<uint64_t> delete_keys;
};
std::string EncodeMutateRequest(const std::string& table,
                                absl::Span<const table::KeyWithPriority> updates,
                                absl::Span<const uint64_t> delete_keys);
absl::StatusOr<MutateRequest> DecodeMutateRequest(absl::string_view body);

}  // namespace gear_reverb::shm
