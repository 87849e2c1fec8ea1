#include "native/storage/chunk_store.h"

#include <array>
#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "native/base/mutex.h"

namespace gear_reverb::storage {
namespace {

constexpr size_t kNumShards = 64;

}  // namespace

// An entry is a weak pointer to what Insert returned. Between a chunk's last release and the
// deleter's removal of its entry, Insert may have put another chunk with the same key there; so the
// deleter removes only an entry that has expired.
struct ChunkStore::Shards {
  struct alignas(64) Shard {
    base::Mutex mutex;
    absl::flat_hash_map<uint64_t, std::weak_ptr<const Chunk>> chunks ABSL_GUARDED_BY(mutex);
  };

  // Keys are random, but nobody makes clients see to it.
  Shard& For(uint64_t key) { return shards[key * 0x9e3779b97f4a7c15 >> 58]; }

  std::array<Shard, kNumShards> shards;
};

ChunkStore::ChunkStore() : shards_(std::make_shared<Shards>()) {}

ChunkPtr ChunkStore::Insert(ChunkPtr chunk) {
  const uint64_t key = chunk->key();
  Shards::Shard& shard = shards_->For(key);
  const auto release = [chunk, key, shards = std::weak_ptr<Shards>(shards_)](const Chunk*) mutable {
    chunk.reset();
    const std::shared_ptr<Shards> live = shards.lock();
    if (live == nullptr) return;
    Shards::Shard& shard = live->For(key);
    base::MutexLock lock(&shard.mutex);
    const auto entry = shard.chunks.find(key);
    if (entry != shard.chunks.end() && entry->second.expired()) shard.chunks.erase(entry);
  };
  // Made before the lock is taken, so that it outlives the lock: its destructor, if another chunk
  // is present, takes the lock as well.
  ChunkPtr stored(chunk.get(), release);
  base::MutexLock lock(&shard.mutex);
  std::weak_ptr<const Chunk>& entry = shard.chunks[key];
  if (ChunkPtr present = entry.lock()) return present;
  entry = stored;
  return stored;
}

ChunkPtr ChunkStore::Find(uint64_t key) const {
  Shards::Shard& shard = shards_->For(key);
  base::MutexLock lock(&shard.mutex);
  const auto entry = shard.chunks.find(key);
  return entry == shard.chunks.end() ? nullptr : entry->second.lock();
}

int64_t ChunkStore::size() const {
  int64_t size = 0;
  for (Shards::Shard& shard : shards_->shards) {
    base::MutexLock lock(&shard.mutex);
    size += static_cast<int64_t>(shard.chunks.size());
  }
  return size;
}

}  // namespace gear_reverb::storage
