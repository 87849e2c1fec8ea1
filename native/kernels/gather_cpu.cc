// Gather on the CPU: small gathers are a loop of copies; large ones are cut into blocks of equal
// bytes, which threads take one after another.
#include <algorithm>
#include <atomic>
#include <vector>

#include "native/base/copy_bytes.h"
#include "native/kernels/copy_pool.h"
#include "native/kernels/gather.h"

namespace gear_reverb::kernels {
namespace {

// Below this, waking a thread costs more than it saves.
constexpr size_t kThreadsFromBytes = size_t{1} << 20;
constexpr size_t kBlockBytes = size_t{256} << 10;
// From here on copies go past the caches where that pays, even if the batch is read right after.
constexpr size_t kStreamFromBytes = size_t{8} << 20;
// Pieces of random places are cache misses: have several under way.
constexpr size_t kAhead = 8;

void CopyAll(absl::Span<const Copy> copies) {
  const size_t n = copies.size();
  for (size_t i = 0; i < n; ++i) {
    if (i + kAhead < n) __builtin_prefetch(copies[i + kAhead].source);
    base::CopySmall(copies[i].destination, copies[i].source, copies[i].bytes);
  }
}

// Where a block starts: byte `offset` of a copy.
struct BlockStart {
  size_t copy;
  size_t offset;
};

std::vector<BlockStart> CutIntoBlocks(absl::Span<const Copy> copies, size_t total_bytes) {
  std::vector<BlockStart> starts;
  starts.reserve(total_bytes / kBlockBytes + 1);
  size_t to_skip = 0;  // Until the next start.
  for (size_t i = 0; i < copies.size(); ++i) {
    size_t offset = to_skip;
    for (; offset < copies[i].bytes; offset += kBlockBytes) starts.push_back({i, offset});
    to_skip = offset - copies[i].bytes;
  }
  return starts;
}

void CopyBlock(absl::Span<const Copy> copies, BlockStart start, bool stream) {
  size_t left = kBlockBytes;
  for (size_t i = start.copy, offset = start.offset; left > 0 && i < copies.size();
       ++i, offset = 0) {
    const size_t bytes = std::min(left, copies[i].bytes - offset);
    const auto copy = stream ? base::CopyStreaming : base::CopySmall;
    copy(copies[i].destination + offset, copies[i].source + offset, bytes);
    left -= bytes;
  }
}

}  // namespace

void Gather(absl::Span<const Copy> copies, const GatherOptions& options) {
  size_t total_bytes = 0;
  for (const Copy& copy : copies) total_bytes += copy.bytes;
  if (total_bytes < kThreadsFromBytes) return CopyAll(copies);

  const bool stream = total_bytes >= kStreamFromBytes && base::StreamingPays();
  const std::vector<BlockStart> blocks = CutIntoBlocks(copies, total_bytes);
  std::atomic<size_t> next{0};
  const auto work = [&] {
    size_t block;
    while ((block = next.fetch_add(1, std::memory_order_relaxed)) < blocks.size()) {
      CopyBlock(copies, blocks[block], stream);
    }
    if (stream) base::FinishStreaming();
  };
  const int threads = options.threads > 0 ? options.threads : CopyThreads();
  const int helpers = static_cast<int>(std::min<size_t>(threads, blocks.size())) - 1;
  if (helpers < 1) return work();
  CopyPool::Get().Run(helpers, work);
}

}  // namespace gear_reverb::kernels
