// Stacked rows as chunks, copied by several threads ahead of their insertion.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "native/memory/arena.h"
#include "native/storage/stacked_rows.h"

namespace gear_reverb::client {

// One thread takes the chunks, in order. The chunks have random keys and are of one episode.
class RowCopier {
 public:
  RowCopier(const storage::StackedRows& rows, memory::Arena& arena);

  // Runs `take_all`, which may call Next, while other threads copy what it will want. Until it has
  // returned, they are at nobody else's disposal.
  void WithHelp(absl::FunctionRef<void()> take_all);

  bool done() const { return next_ == parts_.size(); }
  struct Part {
    int64_t begin, end;  // Rows.
    storage::ChunkPtr chunk;
  };
  // The next chunk; not if done. Those before count as gone, and others may be copied in their
  // place.
  absl::StatusOr<Part> Next();

 private:
  struct Copy {
    int64_t begin = 0, end = 0;
    int64_t bytes_before = 0;
    uint64_t key = 0;
    absl::StatusOr<storage::ChunkPtr> chunk;  // Once `ready`.
    std::atomic<bool> ready{false};
  };

  // Copies one more chunk, if one is left and not too far ahead.
  bool CopyOne();
  void Help();

  const storage::StackedRows& rows_;
  memory::Arena& arena_;
  uint64_t episode_id_;
  std::vector<Copy> parts_;
  size_t next_ = 0;
  std::atomic<size_t> claimed_{0};
  // Bytes up to which copying may go; what is beyond waits until earlier chunks are taken.
  std::atomic<int64_t> limit_;
  std::atomic<bool> stopped_{false};
};

}  // namespace gear_reverb::client
