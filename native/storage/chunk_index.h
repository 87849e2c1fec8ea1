// The live chunks of a store by key: what a store and its chunks share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "native/base/mutex.h"
#include "native/base/ref_ptr.h"
#include "native/storage/chunk.h"

namespace gear_reverb::storage {

// Thread-safe. Holds no reference: a chunk whose last one goes takes its entry out before its
// memory goes, so what is found under the lock can be looked at, and still be past its end.
class ChunkIndex {
 public:
  // The live chunk with `chunk`'s key, which becomes `chunk` if there was none.
  ChunkPtr Insert(const ChunkPtr& chunk);
  // The live chunk, or null.
  ChunkPtr Find(uint64_t key);
  // Of a chunk without references.
  void Remove(const Chunk& chunk);
  int64_t size();

  void AddRef() { references_.Add(); }
  void Release() {
    if (references_.Drop()) delete this;
  }

 private:
  struct Key {
    uint64_t value;
  };
  static uint64_t KeyOf(const Chunk* chunk) { return chunk->key(); }
  static uint64_t KeyOf(Key key) { return key.value; }
  struct Hash {
    using is_transparent = void;
    template <typename T>
    size_t operator()(T of) const {
      return absl::Hash<uint64_t>()(KeyOf(of));
    }
  };
  struct Equal {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(A a, B b) const {
      return KeyOf(a) == KeyOf(b);
    }
  };
  struct alignas(64) Shard {
    base::Mutex mutex;
    absl::flat_hash_set<const Chunk*, Hash, Equal> chunks ABSL_GUARDED_BY(mutex);
  };
  static constexpr size_t kNumShards = 64;

  // Keys are random, but nobody makes clients see to it.
  Shard& For(uint64_t key) { return shards_[key * 0x9e3779b97f4a7c15 >> 58]; }

  base::RefCount references_;
  std::array<Shard, kNumShards> shards_;
};

}  // namespace gear_reverb::storage
