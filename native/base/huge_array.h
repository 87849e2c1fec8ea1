// A growing array for what a table knows of each slot: up to gigabytes, read at random.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace gear_reverb::base {

// Elements start as zero bytes and are not destroyed: a T that is more than its bytes is made and
// destroyed by the array's owner, and says with kMovesAsBytes that moving pages moves it. Growing
// at least doubles the reserved addresses, moves pages and not bytes, and costs memory only where
// elements are written. Arrays of megabytes ask for huge pages, so that random reads do not pay for
// address translation. Throws std::bad_alloc.
template <typename T>
class HugeArray {
  static_assert(std::is_trivially_copyable_v<T> || requires { requires T::kMovesAsBytes; });

 public:
  HugeArray() = default;
  HugeArray(HugeArray&& other) noexcept { *this = std::move(other); }
  HugeArray& operator=(HugeArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HugeArray() { Clear(); }

  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  // Elements that may be accessed.
  size_t capacity() const { return bytes_ / sizeof(T); }

  // Makes elements [0, count) accessible. Invalidates references to elements.
  void Reserve(size_t count) {
    if (count <= capacity()) return;
    if (count > SIZE_MAX / 4 / sizeof(T)) throw std::bad_alloc();
    const size_t bytes = RoundUp(std::max(count * sizeof(T), 2 * bytes_));
    char* const base = Map(bytes);
    // Moves and extends in one call, so that the array stays one mapping and can be moved again.
    // If that fails, `base` may be unmapped already, so it is left alone.
    if (data_ != nullptr &&
        mremap(data_, bytes_, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, base) == MAP_FAILED) {
      throw std::bad_alloc();
    }
    // A wish; without it only the speed differs.
    if (bytes >= kHugePage) madvise(base, bytes, MADV_HUGEPAGE);
    data_ = reinterpret_cast<T*>(base);
    bytes_ = bytes;
  }

  // Gives the memory back.
  void Clear() {
    if (data_ != nullptr) munmap(data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
  }

 private:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kHugePage = size_t{2} << 20;

  static size_t RoundUp(size_t bytes) {
    // 64 KiB is a multiple of the page size of every Linux machine.
    const size_t unit = bytes < kHugePage ? 16 * kPage : kHugePage;
    return (bytes + unit - 1) / unit * unit;
  }

  // Zeroed pages, aligned for huge pages if large.
  static char* Map(size_t bytes) {
    const size_t slack = bytes < kHugePage ? 0 : kHugePage;
    void* const raw = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) throw std::bad_alloc();
    char* const begin = static_cast<char*>(raw);
    if (slack == 0) return begin;
    const size_t head = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
    if (head != 0) munmap(begin, head);
    if (head != slack) munmap(begin + head + bytes, slack - head);
    return begin + head;
  }

  T* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace gear_reverb::base
