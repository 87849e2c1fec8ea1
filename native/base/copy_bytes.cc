#include "native/base/copy_bytes.h"

#include <initializer_list>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace gear_reverb::base {
namespace {

// Smaller pieces cost less by memcpy: starting to stream takes a while.
constexpr size_t kSmallestString = size_t{32} << 10, kSmallestNonTemporal = size_t{2} << 10;

#if defined(__x86_64__)

// What fetches memory ahead stops at the end of a page, so several pages are read side by side.
constexpr size_t kLine = 64, kPage = 4096, kPagesAtOnce = 4;

bool HasFastStrings() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & (1u << 9)) != 0;
}

void CopyString(std::byte* to, const std::byte* from, size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

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

void CopyNonTemporal(std::byte* to, const std::byte* from, size_t bytes) {
  static const auto stream = __builtin_cpu_supports("avx512f") ? StreamAvx512 : StreamAvx2;
  const auto copy = [&](size_t part, auto by) {
    by(part);
    to += part;
    from += part;
    bytes -= part;
  };
  const auto plainly = [&](size_t part) { std::memcpy(to, from, part); };
  copy(-reinterpret_cast<uintptr_t>(to) % kLine, plainly);
  while (bytes >= kPagesAtOnce * kPage) {
    copy(kPagesAtOnce * kPage, [&](size_t) { stream(to, from, kPage / kLine, kPagesAtOnce); });
  }
  copy(bytes / kLine * kLine, [&](size_t part) { stream(to, from, part / kLine, 1); });
  copy(bytes, plainly);
}

#endif

}  // namespace

bool IsSupported(Streaming way) {
#if defined(__x86_64__)
  if (way == Streaming::kString) return HasFastStrings();
  if (way == Streaming::kNonTemporal) return __builtin_cpu_supports("avx2");
#endif
  return way == Streaming::kPlain;
}

Streaming BestStreaming() {
  static const Streaming best = [] {
    for (const Streaming way : {Streaming::kString, Streaming::kNonTemporal}) {
      if (IsSupported(way)) return way;
    }
    return Streaming::kPlain;
  }();
  return best;
}

size_t StreamingPaysFromBytes(Streaming way) {
  switch (way) {
    case Streaming::kString: return size_t{2} << 20;
    // What goes past the caches is slower until it would not have fitted them.
    case Streaming::kNonTemporal: return size_t{32} << 20;
    case Streaming::kPlain: break;
  }
  return SIZE_MAX;
}

void CopyStreaming(Streaming way, std::byte* to, const std::byte* from, size_t bytes) {
#if defined(__x86_64__)
  if (way == Streaming::kString && bytes >= kSmallestString) return CopyString(to, from, bytes);
  if (way == Streaming::kNonTemporal && bytes >= kSmallestNonTemporal) {
    return CopyNonTemporal(to, from, bytes);
  }
#endif
  CopySmall(to, from, bytes);
}

void FinishStreaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace gear_reverb::base
