// Takes apart what comes through an insert stream's ring.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "native/service/insert_session.h"
#include "native/shm/insert_records.h"

namespace gear_reverb::server {

// Headers and bodies are copied before they are looked at; the bytes of chunks go straight to where
// they stay, which is the one place where payload is copied on its way in. Thread-compatible.
class RecordReader {
 public:
  // `session` receives the chunks.
  explicit RecordReader(service::InsertSession* session) : session_(*session) {}

  enum class Event { kNeedMore, kChunk, kItem, kRows, kClose };

  // Consumes what of `data` belongs to the current record. Errors of the decoders and of the arena;
  // INVALID_ARGUMENT for a record that is too long or of an unknown kind.
  absl::StatusOr<Event> Step(const std::byte* data, size_t readable, size_t* consumed);

  // The body of the item that Step found last.
  absl::string_view body() const { return body_; }
  // The rows that Step found last, and their chunk.
  shm::RowsRecord& rows() { return rows_; }
  storage::ChunkPtr TakeChunk() { return std::move(rows_chunk_); }

 private:
  struct Source {
    const std::byte* data;
    size_t bytes;

    const std::byte* Take(size_t n);
  };

  absl::StatusOr<Event> Read(Source& source);
  absl::StatusOr<Event> ReadChunk(Source& source);
  // False if more bytes have to come.
  absl::StatusOr<bool> ReadColumns(Source& source);

  service::InsertSession& session_;
  shm::RecordHeader header_{};
  size_t header_bytes_ = 0;
  std::string body_;
  shm::RowsRecord rows_;
  storage::ChunkPtr rows_chunk_;
  // Of a chunk whose bytes are coming in.
  bool in_payload_ = false;
  shm::ChunkRecord chunk_;
  std::vector<storage::ChunkColumn> columns_;
  size_t filled_ = 0;  // Of the last column.
};

}  // namespace gear_reverb::server
