// Batches that a device draws and gathers by itself, of a table in this process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "native/base/mutex.h"
#include "native/client/batch_collector.h"
#include "native/device/resident_table.h"
#include "native/service/replay_service.h"

namespace gear_reverb::client {

struct ResidentOptions {
  std::string table;
  std::optional<uint64_t> seed;  // Random if not given.
  std::shared_ptr<device::Device> device;
  device::Casts casts;
  device::Choice choice = device::Choice::kDraws;
  std::optional<device::Padding> padding = std::nullopt;
};

// INVALID_ARGUMENT where the server is not in this process, saying so of `option`.
absl::StatusOr<std::shared_ptr<service::ReplayService>> LocalServiceFor(
    const std::shared_ptr<Connection>& connection, const std::string& option);

// One after another, each into memory of its own. Thread-compatible but for Cancel.
class ResidentBatches {
 public:
  // The errors of ResidentTable::Create; NOT_FOUND for an unknown table.
  static absl::StatusOr<std::unique_ptr<ResidentBatches>> Create(
      std::shared_ptr<service::ReplayService> service, const ResidentOptions& options,
      size_t kept_buffers);

  // As BatchCollector::Next. FAILED_PRECONDITION with why_not(), for good, once the device cannot
  // gather the table's items by itself; RESOURCE_EXHAUSTED, with it too, if it has no memory for
  // what it needs of the table. Of first items INVALID_ARGUMENT if the table has no order or the
  // request is for too many, and FAILED_PRECONDITION while it has fewer.
  absl::StatusOr<BatchPtr> Next(const BatchRequest& request, absl::Time deadline);
  // Ends a waiting call, and all later ones that would wait, with CANCELLED. Thread-safe.
  void Cancel() { table_->Cancel(); }
  const std::string& why_not() const { return no_memory_.empty() ? table_->why_not() : no_memory_; }

 private:
  ResidentBatches() = default;
  absl::StatusOr<BatchPtr> Draw(const BatchRequest& request, absl::Time deadline);

  std::shared_ptr<service::ReplayService> service_;
  std::shared_ptr<device::Device> device_;
  device::Casts casts_;
  device::Choice choice_ = device::Choice::kDraws;
  std::shared_ptr<device::DrawBackend> backend_;
  std::unique_ptr<device::GatherStream> gathers_;  // Its stream outlives what uses it.
  std::unique_ptr<device::ResidentTable> table_;
  std::unique_ptr<device::DrawPlan> plan_;
  std::string no_memory_;
};

// Batches of one size into always the same memory, on a stream of the caller's. Thread-safe.
class FixedBatches {
 public:
  struct Options {
    ResidentOptions table;
    int64_t size = 0;
    size_t max_bytes = 0;
    std::optional<double> beta;  // Weights, if given.
  };
  // INVALID_ARGUMENT naming the option; the errors of ResidentBatches.
  static absl::StatusOr<std::unique_ptr<FixedBatches>> Create(
      std::shared_ptr<service::ReplayService> service, const Options& options);
  ~FixedBatches();

  // Waits until the table allows a batch, and puts on the stream what brings the device up to date.
  // The first time it also decides where the arrays are. FAILED_PRECONDITION if the device cannot
  // gather the table's items by itself, or if they are no longer as they were the first time.
  absl::Status Prepare(absl::Time deadline, device::Stream stream);
  // Puts a batch on the stream: kernels with the same arguments each time, which may be captured.
  // FAILED_PRECONDITION before the first Prepare.
  absl::Status Enqueue(device::Stream stream);

  // Where batches are, once there was a Prepare; null before.
  std::shared_ptr<device::Output> output();
  // After that.
  const device::DrawnArrays& arrays() const { return arrays_; }
  int64_t table_size();
  int gpu() const { return device_->gpu(); }

  // Ends a waiting Prepare with CANCELLED, waits for the device, and lets go of the table. Later
  // calls fail with FAILED_PRECONDITION.
  void Close();

 private:
  explicit FixedBatches(const Options& options) : options_(options) {}
  absl::Status MakePlan(device::Stream stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether batches may be put on a stream as they were the first time.
  absl::Status CheckDrawable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Options options_;
  std::shared_ptr<service::ReplayService> service_;
  std::shared_ptr<device::Device> device_;
  std::shared_ptr<device::DrawBackend> backend_;
  std::unique_ptr<device::GatherStream> gathers_;

  std::atomic<bool> closed_{false};
  base::Mutex mutex_;
  // Until it is closed; read by who closes it.
  std::unique_ptr<device::ResidentTable> table_;
  std::unique_ptr<device::DrawPlan> plan_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<device::Output> output_ ABSL_GUARDED_BY(mutex_);
  device::DrawnArrays arrays_;                     // Once there is an output, constant.
  bool prepared_ ABSL_GUARDED_BY(mutex_) = false;  // And not collected yet.
};

}  // namespace gear_reverb::client
