#include "native/base/copy_bytes.h"

#include <atomic>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gear_reverb::base {
namespace {

std::atomic<int> told_pays{-1};  // -1: nothing was told.

#if defined(__x86_64__)

// Smaller pieces cost less by memcpy: starting to stream takes a while.
constexpr size_t kSmallest = size_t{2} << 10;
// What fetches memory ahead stops at the end of a page, so several pages are read side by side.
constexpr size_t kLine = 64, kPage = 4096, kPagesAtOnce = 4;

// Both copy the first `lines` lines of each of `pages` stretches of a page's length, which follow
// each other; a single one may be longer. `to` is aligned, `from` need not be.
__attribute__((target("avx2"))) void StreamAvx2(std::byte* to, const std::byte* from, size_t lines,
                                                size_t pages) {
  for (; lines > 0; --lines, to += kLine, from += kLine) {
    for (size_t page = 0; page < pages * kPage; page += kPage) {
      const auto* source = reinterpret_cast<const __m256i*>(from + page);
      const __m256i low = _mm256_loadu_si256(source), high = _mm256_loadu_si256(source + 1);
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + page), low);
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + page) + 1, high);
    }
  }
}

__attribute__((target("avx512f"))) void StreamAvx512(std::byte* to, const std::byte* from,
                                                     size_t lines, size_t pages) {
  for (; lines > 0; --lines, to += kLine, from += kLine) {
    for (size_t page = 0; page < pages * kPage; page += kPage) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to + page), _mm512_loadu_si512(from + page));
    }
  }
}

void Stream(std::byte* to, const std::byte* from, size_t bytes) {
  static const auto stream_lines = __builtin_cpu_supports("avx512f") ? StreamAvx512 : StreamAvx2;
  const auto copy = [&](size_t part, auto by) {
    by(part);
    to += part;
    from += part;
    bytes -= part;
  };
  const auto plainly = [&](size_t part) { std::memcpy(to, from, part); };
  copy(-reinterpret_cast<uintptr_t>(to) % kLine, plainly);
  while (bytes >= kPagesAtOnce * kPage) {
    copy(kPagesAtOnce * kPage,
         [&](size_t) { stream_lines(to, from, kPage / kLine, kPagesAtOnce); });
  }
  copy(bytes / kLine * kLine, [&](size_t part) { stream_lines(to, from, part / kLine, 1); });
  copy(bytes, plainly);
}

#endif

}  // namespace

bool HasStreaming() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

bool StreamingPays() {
#if defined(__x86_64__)
  static const bool pays = __builtin_cpu_is("intel");
#else
  constexpr bool pays = false;
#endif
  const int told = told_pays.load(std::memory_order_relaxed);
  return HasStreaming() && (told < 0 ? pays : told > 0);
}
void SetStreamingPays(std::optional<bool> pays) {
  told_pays.store(pays.has_value() ? int{*pays} : -1, std::memory_order_relaxed);
}

void CopyStreaming(std::byte* to, const std::byte* from, size_t bytes) {
#if defined(__x86_64__)
  if (bytes >= kSmallest) return Stream(to, from, bytes);
#endif
  CopySmall(to, from, bytes);
}

void FinishStreaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace gear_reverb::base
