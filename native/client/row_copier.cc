#include "native/client/row_copier.h"

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "native/base/pause.h"
#include "native/base/philox.h"
#include "native/kernels/copy_pool.h"

namespace gear_reverb::client {
namespace {

// Chunks are copied so far ahead of those that are taken: enough for no thread to wait for another,
// little beside what a table holds.
constexpr int64_t kAheadBytes = int64_t{2} << 20;
// For less, waking other threads costs more than they save.
constexpr int64_t kHelpFromBytes = int64_t{1} << 20;
// Others are hardly of use to one that inserts at the speed of two or three.
constexpr int kMostHelpers = 2;

}  // namespace

RowCopier::RowCopier(const storage::StackedRows& rows, memory::Arena& arena)
    : rows_(rows), arena_(arena), limit_(kAheadBytes) {
  base::Philox random(base::RandomUint64());
  random.Fill(absl::MakeSpan(&episode_id_, 1));
  std::vector<int64_t> ends;
  for (int64_t begin = 0; begin < rows.size();) ends.push_back(begin = rows.ChunkEnd(begin));
  std::vector<uint64_t> keys(ends.size());
  random.Fill(absl::MakeSpan(keys));
  parts_ = std::vector<Copy>(ends.size());
  for (size_t i = 0; i < ends.size(); ++i) {
    parts_[i].key = keys[i];
    parts_[i].end = ends[i];
    if (i == 0) continue;
    parts_[i].begin = ends[i - 1];
    parts_[i].bytes_before =
        parts_[i - 1].bytes_before + rows.Bytes(parts_[i - 1].begin, ends[i - 1]);
  }
}

void RowCopier::WithHelp(absl::FunctionRef<void()> take_all) {
  const auto caller = std::this_thread::get_id();
  const auto work = [&] {
    if (std::this_thread::get_id() != caller) return Help();
    const auto stop = absl::MakeCleanup([this] {
      stopped_.store(true);
      limit_.store(INT64_MAX);
      limit_.notify_all();
    });
    take_all();
  };
  const int64_t bytes = parts_.empty() ? 0 : parts_.back().bytes_before;
  const int helpers = std::min(kernels::CopyThreads() - 1, kMostHelpers);
  kernels::CopyPool::Get().Run(bytes < kHelpFromBytes ? 0 : helpers, work);
}

absl::StatusOr<RowCopier::Part> RowCopier::Next() {
  Copy& copy = parts_[next_];
  while (!copy.ready.load(std::memory_order_acquire)) {
    if (!CopyOne()) base::Pause();  // Another thread is about it.
  }
  ++next_;
  // Not for every chunk: waking a thread takes as long as copying one.
  if (next_ < parts_.size() && parts_[next_].bytes_before + kAheadBytes / 2 > limit_.load()) {
    limit_.store(parts_[next_].bytes_before + kAheadBytes);
    limit_.notify_all();
  }
  if (!copy.chunk.ok()) return copy.chunk.status();
  return Part{copy.begin, copy.end, *std::move(copy.chunk)};
}

bool RowCopier::CopyOne() {
  size_t index = claimed_.load(std::memory_order_relaxed);
  do {
    if (index == parts_.size() || parts_[index].bytes_before >= limit_.load()) return false;
  } while (!claimed_.compare_exchange_weak(index, index + 1));
  Copy& copy = parts_[index];
  try {
    copy.chunk = rows_.Copy(arena_, copy.key, episode_id_, copy.begin, copy.end);
  } catch (const std::bad_alloc&) {
    copy.chunk = absl::ResourceExhaustedError("There is no memory left for another chunk.");
  }
  copy.ready.store(true, std::memory_order_release);
  return true;
}

void RowCopier::Help() {
  while (true) {
    const int64_t limit = limit_.load();
    if (stopped_.load() || claimed_.load() == parts_.size()) return;
    if (!CopyOne()) limit_.wait(limit);
  }
}

}  // namespace gear_reverb::client
