#include "native/rpc/requests.h"

#include "native/rpc/fields.h"
#include "native/rpc/parse.h"

namespace gear_reverb::rpc {
namespace {

// Calls `read(reader)` for every field of `bytes`; it returns a status and consumes the field.
template <typename ReadField>
absl::Status ReadFields(const char* what, absl::string_view bytes, ReadField read) {
  return Guarded(what, [&]() -> absl::Status {
    protozero::pbf_reader reader(ToDataView(bytes));
    while (reader.next()) GR_RETURN_IF_ERROR(read(reader));
    return absl::OkStatus();
  });
}

table::KeyWithPriority ReadKeyWithPriority(protozero::pbf_reader reader) {
  table::KeyWithPriority pair{0, 0};
  while (reader.next()) {
    switch (reader.tag()) {
      case field::key_with_priority::kKey: pair.key = reader.get_uint64(); break;
      case field::key_with_priority::kPriority: pair.priority = reader.get_double(); break;
      default: reader.skip();
    }
  }
  return pair;
}

}  // namespace

absl::StatusOr<InsertRequest> DecodeInsertRequest(absl::string_view message) {
  InsertRequest request;
  GR_RETURN_IF_ERROR(ReadFields("InsertStreamRequest", message, [&](protozero::pbf_reader& reader) {
    switch (reader.tag()) {
      case field::insert_request::kChunks:
        request.chunks.push_back(ToStringView(reader.get_view()));
        break;
      case field::insert_request::kItems:
        request.items.push_back(ToStringView(reader.get_view()));
        break;
      case field::insert_request::kKeepChunkKeys:
        ReadRepeatedUint64(reader, &request.keep_chunk_keys);
        break;
      default: reader.skip();
    }
    return absl::OkStatus();
  }));
  return request;
}

MessageWriter EncodeInsertResponse(absl::Span<const uint64_t> keys) {
  MessageWriter message;
  message.AddPackedUint64(field::insert_response::kKeys, keys);
  return message;
}

absl::StatusOr<std::vector<uint64_t>> DecodeInsertResponse(absl::string_view message) {
  std::vector<uint64_t> keys;
  GR_RETURN_IF_ERROR(
      ReadFields("InsertStreamResponse", message, [&](protozero::pbf_reader& reader) {
        if (reader.tag() == field::insert_response::kKeys) {
          ReadRepeatedUint64(reader, &keys);
        } else {
          reader.skip();
        }
        return absl::OkStatus();
      }));
  return keys;
}

MessageWriter EncodeMutateRequest(const std::string& table,
                                  absl::Span<const table::KeyWithPriority> updates,
                                  absl::Span<const uint64_t> delete_keys) {
  MessageWriter message;
  message.AddBytes(field::mutate_request::kTable, table);
  for (const table::KeyWithPriority& update : updates) {
    MessageWriter pair;
    pair.AddUint64(field::key_with_priority::kKey, update.key);
    pair.AddDouble(field::key_with_priority::kPriority, update.priority);
    message.AddMessage(field::mutate_request::kUpdates, std::move(pair));
  }
  message.AddPackedUint64(field::mutate_request::kDeleteKeys, delete_keys);
  return message;
}

absl::StatusOr<MutateRequest> DecodeMutateRequest(absl::string_view message) {
  MutateRequest request;
  GR_RETURN_IF_ERROR(
      ReadFields("MutatePrioritiesRequest", message, [&](protozero::pbf_reader& reader) {
        switch (reader.tag()) {
          case field::mutate_request::kTable: request.table = reader.get_string(); break;
          case field::mutate_request::kUpdates:
            request.updates.push_back(ReadKeyWithPriority(reader.get_message()));
            break;
          case field::mutate_request::kDeleteKeys:
            ReadRepeatedUint64(reader, &request.delete_keys);
            break;
          default: reader.skip();
        }
        return absl::OkStatus();
      }));
  return request;
}

MessageWriter EncodeResetRequest(const std::string& table) {
  MessageWriter message;
  message.AddBytes(field::reset_request::kTable, table);
  return message;
}

absl::StatusOr<std::string> DecodeResetRequest(absl::string_view message) {
  return DecodeBytesField(message, field::reset_request::kTable);
}

MessageWriter EncodeReportUnusedRequest(const ReportUnusedRequest& request) {
  MessageWriter message;
  message.AddBytes(field::report_unused_request::kTable, request.table);
  message.AddInt64(field::report_unused_request::kCount, request.count);
  return message;
}

absl::StatusOr<ReportUnusedRequest> DecodeReportUnusedRequest(absl::string_view message) {
  ReportUnusedRequest request;
  GR_RETURN_IF_ERROR(ReadFields("ReportUnusedRequest", message, [&](protozero::pbf_reader& reader) {
    switch (reader.tag()) {
      case field::report_unused_request::kTable: request.table = reader.get_string(); break;
      case field::report_unused_request::kCount: request.count = reader.get_int64(); break;
      default: reader.skip();
    }
    return absl::OkStatus();
  }));
  if (request.count < 1) {
    return base::InvalidArgument("ReportUnusedRequest: count (", request.count, ") must be >= 1.");
  }
  return request;
}

MessageWriter EncodeSampleRequest(const SampleRequest& request) {
  MessageWriter message;
  message.AddBytes(field::sample_request::kTable, request.table);
  message.AddInt64(field::sample_request::kNumSamples, request.num_samples);
  if (request.timeout != absl::InfiniteDuration()) {
    MessageWriter timeout;
    timeout.AddInt64(field::timeout::kMilliseconds, absl::ToInt64Milliseconds(request.timeout));
    message.AddMessage(field::sample_request::kTimeout, std::move(timeout));
  }
  return message;
}

absl::StatusOr<SampleRequest> DecodeSampleRequest(absl::string_view message) {
  SampleRequest request;
  GR_RETURN_IF_ERROR(ReadFields("SampleStreamRequest", message, [&](protozero::pbf_reader& reader) {
    switch (reader.tag()) {
      case field::sample_request::kTable: request.table = reader.get_string(); break;
      case field::sample_request::kNumSamples: request.num_samples = reader.get_int64(); break;
      case field::sample_request::kTimeout: {
        protozero::pbf_reader timeout = reader.get_message();
        int64_t milliseconds = 0;
        while (timeout.next()) {
          if (timeout.tag() == field::timeout::kMilliseconds) {
            milliseconds = timeout.get_int64();
          } else {
            timeout.skip();
          }
        }
        if (milliseconds > 0) request.timeout = absl::Milliseconds(milliseconds);
        break;
      }
      default: reader.skip();
    }
    return absl::OkStatus();
  }));
  return request;
}

absl::StatusOr<std::vector<SampleEntry>> DecodeSampleResponse(absl::string_view message) {
  std::vector<SampleEntry> entries;
  GR_RETURN_IF_ERROR(
      ReadFields("SampleStreamResponse", message, [&](protozero::pbf_reader& reader) {
        if (reader.tag() != field::sample_response::kEntries) {
          reader.skip();
          return absl::OkStatus();
        }
        SampleEntry& entry = entries.emplace_back();
        protozero::pbf_reader inner = reader.get_message();
        while (inner.next()) {
          switch (inner.tag()) {
            case field::sample_entry::kInfo: entry.info = ToStringView(inner.get_view()); break;
            case field::sample_entry::kData:
              entry.chunks.push_back(ToStringView(inner.get_view()));
              break;
            case field::sample_entry::kEndOfSequence:
              entry.end_of_sequence = ReadBool(inner);
              break;
            default: inner.skip();
          }
        }
        return absl::OkStatus();
      }));
  return entries;
}

MessageWriter EncodeServerInfo(std::pair<uint64_t, uint64_t> tables_state_id,
                               std::vector<MessageWriter> tables) {
  MessageWriter id;
  id.AddUint64(field::uint128::kHigh, tables_state_id.first);
  id.AddUint64(field::uint128::kLow, tables_state_id.second);
  MessageWriter message;
  message.AddMessage(field::server_info_response::kTablesStateId, std::move(id));
  for (MessageWriter& table : tables) {
    message.AddMessage(field::server_info_response::kTables, std::move(table));
  }
  return message;
}

absl::StatusOr<std::vector<std::string>> DecodeServerInfo(absl::string_view message) {
  std::vector<std::string> tables;
  GR_RETURN_IF_ERROR(ReadFields("ServerInfoResponse", message, [&](protozero::pbf_reader& reader) {
    if (reader.tag() == field::server_info_response::kTables) {
      tables.push_back(reader.get_string());
    } else {
      reader.skip();
    }
    return absl::OkStatus();
  }));
  return tables;
}

MessageWriter EncodeHelloResponse(const HelloResponse& response) {
  MessageWriter message;
  message.AddBytes(field::hello_response::kToken, response.token);
  message.AddUint64(field::hello_response::kVersion, 1);
  if (!response.socket_name.empty()) {
    message.AddBytes(field::hello_response::kSocketName, response.socket_name);
  }
  return message;
}

absl::StatusOr<HelloResponse> DecodeHelloResponse(absl::string_view message) {
  HelloResponse response;
  GR_RETURN_IF_ERROR(ReadFields("HelloResponse", message, [&](protozero::pbf_reader& reader) {
    switch (reader.tag()) {
      case field::hello_response::kToken: response.token = reader.get_string(); break;
      case field::hello_response::kSocketName: response.socket_name = reader.get_string(); break;
      default: reader.skip();
    }
    return absl::OkStatus();
  }));
  return response;
}

absl::StatusOr<std::string> DecodeBytesField(absl::string_view message, uint32_t field) {
  std::string value;
  GR_RETURN_IF_ERROR(ReadFields("message", message, [&](protozero::pbf_reader& reader) {
    if (reader.tag() == field) {
      value = reader.get_string();
    } else {
      reader.skip();
    }
    return absl::OkStatus();
  }));
  return value;
}

}  // namespace gear_reverb::rpc
