// The chunks of a server by key, so that a chunk sent twice is stored once.
#pragma once

#include <cstdint>
#include <memory>

#include "native/storage/chunk.h"

namespace gear_reverb::storage {

// Thread-safe. Holds no chunk alive: an entry goes when the chunk's last reference does.
// Destroying the store before its chunks is allowed.
class ChunkStore {
 public:
  ChunkStore();

  // The live chunk with `chunk`'s key: `chunk` itself if there was none. The returned pointer is
  // the one to keep; its last release removes the entry.
  ChunkPtr Insert(ChunkPtr chunk);

  // The live chunk, or null.
  ChunkPtr Find(uint64_t key) const;

  // Number of live chunks; one that is being released may still count.
  int64_t size() const;

 private:
  struct Shards;
  std::shared_ptr<Shards> shards_;
};

}  // namespace gear_reverb::storage
