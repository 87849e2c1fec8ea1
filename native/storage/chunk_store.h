// The chunks of a server by key, so that a chunk sent twice is stored once.
#pragma once

#include <cstdint>

#include "native/storage/chunk.h"

namespace gear_reverb::storage {

// Thread-safe. Holds no chunk alive: an entry goes when the chunk's last reference does.
// Destroying the store before its chunks is allowed.
class ChunkStore {
 public:
  ChunkStore();
  ~ChunkStore();

  // The live chunk with `chunk`'s key, which is the one to keep: `chunk` itself if there was none.
  // A chunk that is in another store already is given back, and not entered.
  ChunkPtr Insert(ChunkPtr chunk);

  // The live chunk, or null.
  ChunkPtr Find(uint64_t key) const;

  // Number of live chunks; one that is being released may still count.
  int64_t size() const;

 private:
  const base::RefPtr<ChunkIndex> index_;  // Shared with the chunks.
};

}  // namespace gear_reverb::storage
