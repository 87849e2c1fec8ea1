#include "native/server/shm_record_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "native/base/status.h"

namespace gear_reverb::server {

const std::byte* RecordReader::Source::Take(size_t n) {
  const std::byte* taken = data;
  data += n;
  bytes -= n;
  return taken;
}

absl::StatusOr<RecordReader::Event> RecordReader::Step(const std::byte* data, size_t readable,
                                                       size_t* consumed) {
  Source source{data, readable};
  absl::StatusOr<Event> event = Read(source);
  *consumed = readable - source.bytes;
  return event;
}

absl::StatusOr<RecordReader::Event> RecordReader::Read(Source& source) {
  if (header_bytes_ < sizeof(header_)) {
    const size_t bytes = std::min(source.bytes, sizeof(header_) - header_bytes_);
    std::memcpy(reinterpret_cast<std::byte*>(&header_) + header_bytes_, source.Take(bytes), bytes);
    header_bytes_ += bytes;
    if (header_bytes_ < sizeof(header_)) return Event::kNeedMore;
    if (header_.bytes > shm::kMaxRecordBytes) {
      return base::InvalidArgument("A record of ", header_.bytes, " bytes is too long.");
    }
    body_.clear();
  }
  const size_t bytes = std::min(source.bytes, header_.bytes - body_.size());
  body_.append(reinterpret_cast<const char*>(source.Take(bytes)), bytes);
  if (body_.size() < header_.bytes) return Event::kNeedMore;
  switch (static_cast<shm::RecordKind>(header_.kind)) {
    case shm::RecordKind::kChunk:
    case shm::RecordKind::kRows: return ReadChunk(source);
    case shm::RecordKind::kItem: header_bytes_ = 0; return Event::kItem;
    case shm::RecordKind::kClose: header_bytes_ = 0; return Event::kClose;
  }
  return base::InvalidArgument("Unknown kind of record ", header_.kind, ".");
}

absl::StatusOr<RecordReader::Event> RecordReader::ReadChunk(Source& source) {
  const bool is_rows = header_.kind == static_cast<uint32_t>(shm::RecordKind::kRows);
  if (!in_payload_) {
    if (is_rows) {
      GR_ASSIGN_OR_RETURN(rows_, shm::DecodeRows(body_));
      chunk_ = std::move(rows_.chunk);
    } else {
      GR_ASSIGN_OR_RETURN(chunk_, shm::DecodeChunk(body_));
    }
    columns_.clear();
    in_payload_ = true;
  }
  GR_ASSIGN_OR_RETURN(const bool complete, ReadColumns(source));
  if (!complete) return Event::kNeedMore;
  in_payload_ = false;
  header_bytes_ = 0;
  GR_ASSIGN_OR_RETURN(storage::ChunkPtr chunk, storage::Chunk::Create(chunk_.key, chunk_.range,
                                                                      std::exchange(columns_, {})));
  if (is_rows) {
    rows_chunk_ = std::move(chunk);
    return Event::kRows;
  }
  session_.AddChunk(std::move(chunk));
  return Event::kChunk;
}

// A column gets its memory when its first byte is there: who claims much has to send much.
absl::StatusOr<bool> RecordReader::ReadColumns(Source& source) {
  while (true) {
    if (!columns_.empty()) {
      memory::Block& block = columns_.back().data;
      const size_t bytes = std::min(source.bytes, block.size() - filled_);
      if (bytes > 0) block.Write(filled_, {source.Take(bytes), bytes});
      filled_ += bytes;
      if (filled_ < block.size()) return false;
    }
    if (columns_.size() == chunk_.columns.size()) return true;
    const shm::ChunkRecord::Column& next = chunk_.columns[columns_.size()];
    if (next.bytes > 0 && source.bytes == 0) return false;
    GR_ASSIGN_OR_RETURN(memory::Block block, session_.service().arena().Allocate(next.bytes));
    columns_.push_back({next.dtype, next.shape, std::move(block)});
    filled_ = 0;
  }
}

}  // namespace gear_reverb::server
