// Small memory that a thread has freed and will want again.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <utility>

namespace gear_reverb::storage {

// Memory of a thread's last trajectories. Where items come in batches and drive others out, what
// malloc keeps at hand is too little, and its slower ways cost as much as all the rest.
class FreeBlocks {
 public:
  static FreeBlocks& Of() {
    static thread_local FreeBlocks blocks;
    return blocks;
  }
  ~FreeBlocks() {
    for (List& list : lists_) {
      while (list.first != nullptr) ::operator delete(std::exchange(list.first, list.first->next));
      list.count = kMaxBlocks;  // What comes after the end of the thread's life goes at once.
    }
  }

  void* Take(size_t bytes) {
    if (bytes <= kMaxBytes) {
      List& list = lists_[bytes / kStep];
      if (list.first != nullptr) {
        --list.count;
        return std::exchange(list.first, list.first->next);
      }
    }
    return ::operator new(bytes);
  }
  void Put(void* memory, size_t bytes) {
    if (bytes <= kMaxBytes) {
      List& list = lists_[bytes / kStep];
      if (list.count < kMaxBlocks) {
        ++list.count;
        list.first = new (memory) Block{list.first};
        return;
      }
    }
    ::operator delete(memory);
  }

 private:
  struct Block {
    Block* next;
  };
  struct List {
    Block* first = nullptr;
    size_t count = 0;
  };
  static constexpr size_t kStep = 8;  // All trajectories are multiples of it.
  static constexpr size_t kMaxBytes = 256;
  static constexpr size_t kMaxBlocks = 1024;

  std::array<List, kMaxBytes / kStep + 1> lists_;
};

}  // namespace gear_reverb::storage
