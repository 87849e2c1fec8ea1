#include "native/storage/chunk_store.h"

#include <utility>

#include "native/storage/chunk_index.h"

namespace gear_reverb::storage {

ChunkPtr ChunkIndex::Insert(const ChunkPtr& chunk) {
  Shard& shard = For(chunk->key());
  base::MutexLock lock(&shard.mutex);
  const auto [entry, inserted] = shard.chunks.insert(chunk.get());
  if (inserted) return chunk;
  if ((*entry)->references_.TryAdd()) return ChunkPtr::Adopt(*entry);
  // That chunk is on its way to Remove, which will find another in its place.
  shard.chunks.erase(entry);
  shard.chunks.insert(chunk.get());
  return chunk;
}

ChunkPtr ChunkIndex::Find(uint64_t key) {
  Shard& shard = For(key);
  base::MutexLock lock(&shard.mutex);
  const auto entry = shard.chunks.find(Key{key});
  if (entry == shard.chunks.end() || !(*entry)->references_.TryAdd()) return nullptr;
  return ChunkPtr::Adopt(*entry);
}

void ChunkIndex::Remove(const Chunk& chunk) {
  Shard& shard = For(chunk.key());
  base::MutexLock lock(&shard.mutex);
  const auto entry = shard.chunks.find(Key{chunk.key()});
  if (entry != shard.chunks.end() && *entry == &chunk) shard.chunks.erase(entry);
}

int64_t ChunkIndex::size() {
  int64_t size = 0;
  for (Shard& shard : shards_) {
    base::MutexLock lock(&shard.mutex);
    size += static_cast<int64_t>(shard.chunks.size());
  }
  return size;
}

ChunkStore::ChunkStore() : index_(base::RefPtr<ChunkIndex>::Adopt(new ChunkIndex)) {}
ChunkStore::~ChunkStore() = default;

ChunkPtr ChunkStore::Insert(ChunkPtr chunk) {
  if (chunk->index_ == nullptr) {
    // Before others can find it. If another chunk is present, this one finds that other at its end,
    // and leaves it alone.
    chunk->index_ = index_;
  } else if (chunk->index_ != index_) {
    return chunk;
  }
  return index_->Insert(chunk);
}

ChunkPtr ChunkStore::Find(uint64_t key) const { return index_->Find(key); }

int64_t ChunkStore::size() const { return index_->size(); }

}  // namespace gear_reverb::storage
