#include "native/memory/slab_cache.h"

#include <bit>
#include <memory>

#include "native/base/status.h"

namespace gear_reverb::memory {

SlabCache::~SlabCache() { delete spare_; }

void SlabCache::Init(int size_class, RunHeap* heap) {
  heap_ = heap;
  size_class_ = size_class;
  block_bytes_ = static_cast<uint32_t>(SizeClassBytes(size_class));
  blocks_per_slab_ = static_cast<uint32_t>(BlocksPerSlab(size_class));
}

absl::StatusOr<SmallBlock> SlabCache::Allocate() {
  base::MutexLock lock(&mutex_);
  Slab* slab = partial_;
  if (slab == nullptr) {
    if (spare_ != nullptr) {
      slab = spare_;
      spare_ = nullptr;
    } else {
      GR_ASSIGN_OR_RETURN(slab, NewSlab());
    }
    Link(slab);
  }
  size_t word = 0;
  while (slab->free_bits[word] == 0) ++word;
  const int bit = std::countr_zero(slab->free_bits[word]);
  slab->free_bits[word] &= slab->free_bits[word] - 1;
  if (--slab->free_blocks == 0) Unlink(slab);
  return SmallBlock{slab, (word * 64 + bit) * block_bytes_};
}

void SlabCache::Free(SmallBlock block) {
  Slab* slab = block.slab;
  const uint32_t index = static_cast<uint32_t>(block.offset) / block_bytes_;
  {
    base::MutexLock lock(&mutex_);
    slab->free_bits[index / 64] |= uint64_t{1} << (index % 64);
    if (slab->free_blocks++ == 0) Link(slab);
    if (slab->free_blocks < blocks_per_slab_) return;
    Unlink(slab);
    if (spare_ == nullptr) {
      spare_ = slab;
      return;
    }
  }
  heap_->Free(slab->run);
  delete slab;
}

absl::StatusOr<Slab*> SlabCache::NewSlab() {
  auto slab = std::make_unique<Slab>();
  GR_ASSIGN_OR_RETURN(slab->run, heap_->Allocate(SlabPages(size_class_)));
  slab->size_class = size_class_;
  slab->free_blocks = blocks_per_slab_;
  for (uint32_t i = 0; i < blocks_per_slab_; ++i) {
    slab->free_bits[i / 64] |= uint64_t{1} << (i % 64);
  }
  return slab.release();
}

void SlabCache::Link(Slab* slab) {
  slab->previous = nullptr;
  slab->next = partial_;
  if (partial_ != nullptr) partial_->previous = slab;
  partial_ = slab;
}

void SlabCache::Unlink(Slab* slab) {
  if (slab->next != nullptr) slab->next->previous = slab->previous;
  (slab->previous != nullptr ? slab->previous->next : partial_) = slab->next;
}

}  // namespace gear_reverb::memory
