// Which chunks a server holds for a stream, and which of them it should go on holding.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "native/storage/chunk.h"

namespace gear_reverb::writer {

using KeyCounts = absl::flat_hash_map<uint64_t, int64_t>;

// A chunk of an item that has been handed over for sending.
struct ChunkUse {
  uint64_t key = 0;
  int64_t bytes = 0;
  std::weak_ptr<const void> user;  // Expired: no item to come will use the chunk.
};

// Thread-compatible.
class HeldChunks {
 public:
  // The keys for InsertStream::Send of an item with `uses`: chunks held before and the item's own,
  // less those without a user that no item in `later` (keys of items that are handed over already
  // but sent after this one) refers to. The view holds until the next call.
  absl::Span<const uint64_t> KeepWith(absl::Span<const ChunkUse> uses, const KeyCounts& later);

  // A new stream: the server holds nothing.
  void Clear();

 private:
  std::vector<ChunkUse> chunks_;
  absl::flat_hash_set<uint64_t> keys_;  // Of chunks_.
  std::vector<uint64_t> keep_;
};

}  // namespace gear_reverb::writer
