#include "native/writer/held_chunks.h"

#include <algorithm>

namespace gear_reverb::writer {

absl::Span<const uint64_t> HeldChunks::KeepWith(absl::Span<const ChunkUse> uses,
                                                const KeyCounts& later) {
  for (const ChunkUse& use : uses) {
    if (keys_.insert(use.key).second) chunks_.push_back(use);
  }
  chunks_.erase(std::remove_if(chunks_.begin(), chunks_.end(),
                               [&](const ChunkUse& chunk) {
                                 const bool drop =
                                     chunk.user.expired() && !later.contains(chunk.key);
                                 if (drop) keys_.erase(chunk.key);
                                 return drop;
                               }),
                chunks_.end());
  keep_.clear();
  for (const ChunkUse& chunk : chunks_) keep_.push_back(chunk.key);
  return keep_;
}

void HeldChunks::Clear() {
  chunks_.clear();
  keys_.clear();
}

}  // namespace gear_reverb::writer
