// Draws samples of one table and gives them out many at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "native/base/mutex.h"
#include "native/client/client.h"
#include "native/client/sampler.h"

namespace gear_reverb::bindings {

struct BlockSourceOptions {
  client::SamplerOptions sampler;       // `max_samples` in total, over all streams.
  int64_t max_samples_per_stream = -1;  // < 0: no limit; otherwise a new stream after so many.
};

// How much to wait for.
struct BlockRequest {
  int64_t items = 0;  // At most; > 0.
  // If set, fewer come only at the end; otherwise, whatever is there soon after the first.
  bool whole = false;
  absl::Duration wait;   // Until there is any item (all of them, if `whole`).
  size_t max_bytes = 0;  // About; of several items.
};

// Thread-safe: calls take turns, and Close ends a waiting one within its `wait`.
class BlockSource {
 public:
  static absl::StatusOr<std::unique_ptr<BlockSource>> Create(std::shared_ptr<client::Client> client,
                                                             BlockSourceOptions options);

  // Empty if there are not enough in time: ask again, nothing is lost. Nullopt after `max_samples`,
  // after the rate limiter's timeout, or once closed. Unless `whole`, the items are alike (as
  // `Alike` says); those that are not come with the next call.
  absl::StatusOr<std::optional<std::vector<table::SampledItem>>> Next(const BlockRequest& request,
                                                                      bool timesteps);

  void Close();

 private:
  BlockSource(std::shared_ptr<client::Client> client, BlockSourceOptions options)
      : client_(std::move(client)), options_(std::move(options)) {}

  absl::Status Collect(const BlockRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether one came; sets `finished_` at the end.
  absl::StatusOr<bool> CollectOne(absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OpenSampler() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<client::Client> client_;
  const BlockSourceOptions options_;
  std::atomic<bool> closed_ = false;

  base::Mutex mutex_;
  std::unique_ptr<client::Sampler> sampler_ ABSL_GUARDED_BY(mutex_);
  std::deque<table::SampledItem> pending_ ABSL_GUARDED_BY(mutex_);
  int64_t drawn_ ABSL_GUARDED_BY(mutex_) = 0;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);  // Told once `pending_` is given out.
};

// The first difference of two items that keeps them from one block.
struct Difference {
  enum class Kind { kNone, kColumns, kDtype, kShape };
  Kind kind = Kind::kNone;
  size_t column = 0;
};
Difference Compare(const storage::Trajectory& a, const storage::Trajectory& b, bool timesteps);

}  // namespace gear_reverb::bindings
