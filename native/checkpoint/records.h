// Tables, chunks and items as the payloads of blocks: see docs/formats/checkpoint.md.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "native/checkpoint/format.h"
#include "native/memory/arena.h"
#include "native/storage/chunk.h"
#include "native/table/table.h"

namespace gear_reverb::checkpoint {

void EncodeTable(const table::TableSnapshot& snapshot, Encoder& to);
// All but the columns' data, which follows.
void EncodeChunkHead(const storage::Chunk& chunk, Encoder& to);
// `number_of` tells a chunk's number in the file.
void EncodeItem(const table::Item& item,
                const std::function<uint64_t(const storage::ChunkPtr&)>& number_of, Encoder& to);

struct TableRecord {
  table::TableSnapshot snapshot;  // Without items.
  uint64_t num_items = 0;
};

// INVALID_ARGUMENT saying what is wrong. Nothing is believed: memory is taken only for what the
// payload really holds, chunks and trajectories are checked as those of a client are.
absl::StatusOr<TableRecord> DecodeTable(absl::string_view payload);
absl::StatusOr<storage::ChunkPtr> DecodeChunk(absl::string_view payload, memory::Arena& arena);
absl::Status DecodeItems(absl::string_view payload, absl::Span<const storage::ChunkPtr> chunks,
                         std::vector<table::Item>& to);

}  // namespace gear_reverb::checkpoint
