// Batches of one table, one after another, drawn when asked for or some ahead.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "native/base/mutex.h"
#include "native/client/batch_collector.h"

namespace gear_reverb::client {

struct BatchSamplerOptions {
  std::string table;
  BatchRequest request;
  int64_t prefetch = 0;  // Most batches drawn and not yet taken.
  std::optional<uint64_t> seed;
  std::shared_ptr<device::Device> device;  // As of CollectorOptions.
  device::Casts casts;
  std::optional<device::Choice> device_draws;
  SequenceLimits limits;
  int64_t ahead = 0;  // Items that may be on their way besides.
  // Next is called again and again with deadlines soon: a draw goes on from one to the next.
  bool polled = false;
};

// Thread-safe. Without prefetching, and unless polled, a batch is drawn in the thread that asks for
// it. Otherwise a thread of the sampler's draws ahead, or when it is asked to, from the first call
// of Next on; drawing stops at an error until that has been taken.
class BatchSampler {
 public:
  // Leaks it in the child of a fork, where its thread is not, and its locks are as they happened to
  // be.
  struct Deleter {
    void operator()(BatchSampler* sampler) const;
  };
  using Pointer = std::unique_ptr<BatchSampler, Deleter>;

  // INVALID_ARGUMENT naming the option.
  static absl::StatusOr<Pointer> Create(ConnectionSource source,
                                        const BatchSamplerOptions& options);
  ~BatchSampler();

  // As BatchCollector::Next; FAILED_PRECONDITION once closed.
  absl::StatusOr<BatchPtr> Next(absl::Time deadline);

  // As of BatchCollector.
  std::string why_host_draws();

  // Ends waiting calls with CANCELLED, and reports what was drawn and never taken. Does nothing in
  // a forked child.
  void Close();

 private:
  BatchSampler(ConnectionSource source, const BatchSamplerOptions& options);

  absl::StatusOr<BatchPtr> DrawHere(absl::Time deadline);
  absl::StatusOr<BatchPtr> TakePrefetched(absl::Time deadline);
  void Prefetch();
  bool ReadyForMore() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BatchSamplerOptions options_;
  // Used by the thread that draws: the one that set `drawing_`, or the sampler's own.
  std::unique_ptr<BatchCollector> collector_;  // Ends under the lock.
  std::unique_ptr<std::thread> thread_;

  base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<absl::StatusOr<BatchPtr>> finished_ ABSL_GUARDED_BY(mutex_);
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // Calls of Next, for the sampler's own thread.
  bool drawing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gear_reverb::client
