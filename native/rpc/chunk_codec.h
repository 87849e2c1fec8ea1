// Chunks on Reverb's wire (ChunkData).
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "native/memory/arena.h"
#include "native/rpc/message_writer.h"
#include "native/storage/chunk.h"

namespace gear_reverb::rpc {

// How tensor bytes are put into Snappy's form.
enum class Compression {
  kLiteral,  // One literal: legal Snappy at the cost of no work; for a receiver on this host.
  kSnappy,   // For a receiver far away.
};

// The message refers to the chunk's bytes where it can, and keeps the chunk alive.
MessageWriter EncodeChunk(const storage::ChunkPtr& chunk, Compression compression);

// Decompresses the message's tensors into `arena`. INVALID_ARGUMENT naming the chunk and column
// for anything that is not a well-formed chunk; no more is allocated than the message can fill.
absl::StatusOr<storage::ChunkPtr> DecodeChunk(absl::string_view message, memory::Arena& arena);

}  // namespace gear_reverb::rpc
