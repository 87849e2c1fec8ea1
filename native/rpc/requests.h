// The requests and responses of Reverb's methods, other than chunks and items.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "native/rpc/message_writer.h"
#include "native/table/item.h"

namespace gear_reverb::rpc {

// InsertStream. Views point into the message that was decoded.
struct InsertRequest {
  std::vector<absl::string_view> chunks;
  std::vector<absl::string_view> items;
  std::vector<uint64_t> keep_chunk_keys;
};
absl::StatusOr<InsertRequest> DecodeInsertRequest(absl::string_view message);

MessageWriter EncodeInsertResponse(absl::Span<const uint64_t> keys);
absl::StatusOr<std::vector<uint64_t>> DecodeInsertResponse(absl::string_view message);

// MutatePriorities.
struct MutateRequest {
  std::string table;
  std::vector<table::KeyWithPriority> updates;
  std::vector<uint64_t> delete_keys;
};
MessageWriter EncodeMutateRequest(const std::string& table,
                                  absl::Span<const table::KeyWithPriority> updates,
                                  absl::Span<const uint64_t> delete_keys);
absl::StatusOr<MutateRequest> DecodeMutateRequest(absl::string_view message);

// Reset.
MessageWriter EncodeResetRequest(const std::string& table);
absl::StatusOr<std::string> DecodeResetRequest(absl::string_view message);

// SampleStream.
struct SampleRequest {
  std::string table;
  int64_t num_samples = 0;
  absl::Duration timeout = absl::InfiniteDuration();  // Infinite where absent or <= 0.
};
MessageWriter EncodeSampleRequest(const SampleRequest& request);
absl::StatusOr<SampleRequest> DecodeSampleRequest(absl::string_view message);

// Views point into the message that was decoded.
struct SampleEntry {
  absl::string_view info;  // Empty but in the first entry of a sample.
  std::vector<absl::string_view> chunks;
  bool end_of_sequence = false;
};
absl::StatusOr<std::vector<SampleEntry>> DecodeSampleResponse(absl::string_view message);

// ServerInfo: serialised TableInfos.
MessageWriter EncodeServerInfo(std::pair<uint64_t, uint64_t> tables_state_id,
                               std::vector<MessageWriter> tables);
absl::StatusOr<std::vector<std::string>> DecodeServerInfo(absl::string_view message);

// ReportUnused, of our own service.
struct ReportUnusedRequest {
  std::string table;
  int64_t count = 0;
};
MessageWriter EncodeReportUnusedRequest(const ReportUnusedRequest& request);
// INVALID_ARGUMENT also where `count` is not positive.
absl::StatusOr<ReportUnusedRequest> DecodeReportUnusedRequest(absl::string_view message);

// Hello.
struct HelloResponse {
  std::string token;
  std::string socket_name;  // Empty where shared memory is not to be had.
};
MessageWriter EncodeHelloResponse(const HelloResponse& response);
absl::StatusOr<HelloResponse> DecodeHelloResponse(absl::string_view message);

// Messages of one bytes field.
absl::StatusOr<std::string> DecodeBytesField(absl::string_view message, uint32_t field);

}  // namespace gear_reverb::rpc
