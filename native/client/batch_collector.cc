#include "native/client/batch_collector.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "native/base/interrupt.h"
#include "native/base/philox.h"
#include "native/base/status.h"
#include "native/batch/join.h"
#include "native/client/fork_guard.h"
#include "native/client/resident_batches.h"
#include "native/service/replay_service.h"

namespace gear_reverb::client {
namespace {

// Drawn at once, so that a batch which is too large, or not wanted any more, is noticed before it
// is drawn whole; and at first, when it is not known how large items are.
constexpr int64_t kMostAtOnce = 1 << 14, kAtFirst = 8;
// What every item of a batch has in `info`.
constexpr size_t kInfoBytes = 4 * 8 + 4;

size_t BytesOf(const batch::DrawnBatch& batch) {
  size_t bytes = 0;
  for (const batch::DrawnColumn& column : batch.columns) {
    for (const auto& piece : column.pieces) bytes += piece.bytes;
  }
  return bytes;
}

absl::Status TooLarge(const BatchRequest& request) {
  return base::InvalidArgument("A batch of ", request.size, " items needs more than max_bytes (",
                               request.max_bytes, ").");
}

// How many of the first `n` items have no more than `*bytes`, which they are taken off; but
// `at_least` so many.
size_t FirstOfBytes(const batch::DrawnBatch& batch, size_t n, size_t at_least, size_t* bytes) {
  for (size_t item = 0; item < n; ++item) {
    size_t needed = 0;
    for (const batch::DrawnColumn& column : batch.columns) {
      const size_t begin = item == 0 ? 0 : column.piece_ends[item - 1];
      for (size_t i = begin; i < column.piece_ends[item]; ++i) needed += column.pieces[i].bytes;
    }
    if (needed > *bytes && item >= at_least) return item;
    *bytes -= std::min(needed, *bytes);
  }
  return n;
}

}  // namespace

BatchCollector::BatchCollector(ConnectionSource source, CollectorOptions options)
    : source_(std::move(source)),
      options_(std::move(options)),
      buffers_(batch::BufferPool::Create(options_.kept_buffers)) {}

BatchCollector::~BatchCollector() {
  if (!CheckNotForked().ok()) {
    // Their threads are the parent's: ending them would wait for them.
    (void)stream_.release();
    (void)gathers_.release();
    (void)resident_.release();
    return;
  }
  if (stream_ != nullptr) unused_ += stream_->End();
  unused_ += num_pending_;
  ReportUnused();
}

void BatchCollector::ReportUnused() {
  const int64_t unused = std::exchange(unused_, 0);
  if (unused == 0 || connection_ == nullptr) return;
  // A server that is gone counts no more.
  connection_->ReportUnused(options_.table, unused).IgnoreError();
}

absl::StatusOr<BatchPtr> BatchCollector::Next(const BatchRequest& request, absl::Time deadline,
                                              bool another) {
  GR_RETURN_IF_ERROR(CheckNotForked());
  const int64_t drawn_before = drawn_ - num_pending_;
  absl::Status thrown;
  try {
    if (options_.draws_on_device && why_host_draws_.empty()) {
      absl::StatusOr<BatchPtr> batch = DrawOnDevice(request, deadline);
      if (why_host_draws_.empty()) return batch;
    }
    return DrawAndGather(request, deadline, another);
  } catch (const std::bad_alloc&) {
    thrown = absl::ResourceExhaustedError(
        absl::StrCat("There is no memory for a batch of ", request.size, " items."));
  } catch (const std::exception& error) {
    thrown = base::Internal(error.what());
  }
  unused_ += drawn_ - drawn_before;  // All that is pending, or was taken of it.
  num_pending_ = 0;
  pending_.clear();
  if (stream_ != nullptr) DropStream();  // It may have stopped half-way.
  return thrown;
}

absl::StatusOr<BatchPtr> BatchCollector::DrawAndGather(const BatchRequest& request,
                                                       absl::Time deadline, bool another) {
  if (const absl::Status filled = Fill(request, deadline); !filled.ok()) {
    if (absl::IsInvalidArgument(filled)) ReportUnused();
    return filled;
  }
  if (num_pending_ == 0) return absl::OutOfRangeError("The sequence of batches is over.");
  const bool again = std::exchange(again_, false);
  if (!again) EndBatch();
  const int64_t pending = num_pending_;
  absl::StatusOr<batch::DrawnBatch> drawn = Take(request);
  if (!again) DrawAhead(std::max(options_.ahead, another ? request.size : 0));
  if (!drawn.ok()) {
    unused_ += pending - num_pending_;
    ReportUnused();
    return drawn.status();
  }
  absl::StatusOr<BatchPtr> batch = Gather(*drawn, request);
  if (absl::IsResourceExhausted(batch.status())) {
    again_ = true;
    num_pending_ = pending;
    pending_.push_front(*std::move(drawn));
  } else if (!batch.ok()) {
    unused_ += pending - num_pending_;
    ReportUnused();
  }
  return batch;
}

int64_t BatchCollector::Room() const {
  const SequenceLimits& limits = options_.limits;
  int64_t room = std::numeric_limits<int64_t>::max();
  if (limits.max_items >= 0) room = limits.max_items - drawn_;
  if (limits.max_items_per_stream >= 0) {
    room = std::min(room, limits.max_items_per_stream - drawn_by_stream_);
  }
  return room;
}

void BatchCollector::DrawAhead(int64_t n) {
  n = std::min(n - num_pending_, Room());
  // An error is one of the next call.
  if (n > 0 && stream_ != nullptr && SeedStream().ok()) stream_->DrawAhead(n);
}

absl::Status BatchCollector::Fill(const BatchRequest& request, absl::Time deadline) {
  // How long to wait for more of a block once there is an item: about what a round trip takes, and
  // little against what a call from Python costs.
  constexpr absl::Duration kLinger = absl::Microseconds(300);

  if (!request.block_bytes.has_value() &&
      static_cast<size_t>(request.size) > request.max_bytes / kInfoBytes) {
    return TooLarge(request);
  }
  bool lingers = false;
  size_t bytes = 0, counted = 0;  // Of the first groups of `pending_`.
  int64_t looked_at = 0;          // For an interrupt.
  while (num_pending_ < request.size && !ended_ && failed_.ok()) {
    if (!request.block_bytes.has_value() && num_pending_ > 0) {
      for (; counted < pending_.size(); ++counted) bytes += BytesOf(pending_[counted]);
      item_bytes_ = std::max<size_t>(bytes / num_pending_, 1);
      if (bytes > request.max_bytes) {
        RefusePending();
        return TooLarge(request);
      }
      if (num_pending_ >= looked_at + kMostAtOnce) {
        looked_at = num_pending_;
        const base::InterruptHook hook = base::interrupt_hook.load();
        if (hook != nullptr && hook()) return absl::CancelledError("Interrupted.");
      }
    }
    if (request.block_bytes.has_value() && num_pending_ > 0 && !std::exchange(lingers, true)) {
      deadline = std::min(deadline, absl::Now() + kLinger);
    }
    int64_t missing = std::min(request.size - num_pending_, kMostAtOnce);
    if (!request.block_bytes.has_value()) {
      const size_t fit =
          item_bytes_ == 0 ? kAtFirst : (request.max_bytes - bytes) / item_bytes_ + 1;
      missing = static_cast<int64_t>(std::min(static_cast<size_t>(missing), fit));
    }
    const absl::Status status = lingers ? TryDraw(missing, deadline) : Draw(missing, deadline);
    if (status.ok()) continue;
    if (!lingers) return status;
    // These two are worth another try once there is time.
    if (!absl::IsDeadlineExceeded(status) && !absl::IsUnavailable(status)) failed_ = status;
    break;
  }
  return num_pending_ > 0 ? absl::OkStatus() : std::exchange(failed_, absl::OkStatus());
}

absl::StatusOr<batch::DrawnBatch> BatchCollector::Take(const BatchRequest& request) {
  std::vector<batch::DrawnBatch> parts;
  auto room = static_cast<size_t>(std::min(request.size, num_pending_));
  size_t bytes = request.block_bytes.value_or(0);
  while (room > 0) {
    const batch::DrawnBatch& next = pending_.front();
    size_t n = std::min(room, next.size());
    if (request.block_bytes.has_value()) {
      if (!parts.empty() && !batch::CheckAlike(parts[0], next).ok()) break;
      n = FirstOfBytes(next, n, /*at_least=*/parts.empty() ? 1 : 0, &bytes);
      if (n == 0) break;
    }
    room = n < next.size() ? 0 : room - n;
    parts.push_back(TakeFront(n));
  }
  return batch::Join(std::move(parts));
}

batch::DrawnBatch BatchCollector::TakeFront(size_t n) {
  num_pending_ -= static_cast<int64_t>(n);
  batch::DrawnBatch taken = std::move(pending_.front());
  if (n < taken.size()) {
    pending_.front() = batch::SplitOff(&taken, n);
  } else {
    pending_.pop_front();
  }
  return taken;
}

void BatchCollector::RefusePending() {
  unused_ += std::exchange(num_pending_, 0);
  pending_.clear();
  if (stream_ != nullptr) DropStream();  // More may be on its way.
  EndBatch();
}

void BatchCollector::EndBatch() {
  retry_.Succeeded();
  seeded_ = false;
  ++batch_number_;
}

absl::StatusOr<BatchPtr> BatchCollector::DrawOnDevice(const BatchRequest& request,
                                                      absl::Time deadline) {
  if (resident_ == nullptr) {
    GR_ASSIGN_OR_RETURN(connection_, source_(deadline));
    GR_ASSIGN_OR_RETURN(auto service, LocalServiceFor(connection_, "draw='device'"));
    GR_ASSIGN_OR_RETURN(auto resident, ResidentBatches::Create(std::move(service),
                                                               {options_.table, options_.seed,
                                                                options_.device, options_.casts},
                                                               options_.kept_buffers));
    base::MutexLock lock(&mutex_);
    if (cancelled_) return absl::CancelledError("The sampler has been closed.");
    resident_ = std::move(resident);
  }
  absl::StatusOr<BatchPtr> batch = resident_->Next(request, deadline);
  const bool given_up = !resident_->why_not().empty();
  if (given_up || absl::IsUnavailable(batch.status())) {
    std::unique_ptr<ResidentBatches> dropped;
    base::MutexLock lock(&mutex_);
    if (given_up) why_host_draws_ = resident_->why_not();
    dropped = std::move(resident_);
  }
  return batch;
}

std::string BatchCollector::why_host_draws() {
  base::MutexLock lock(&mutex_);
  return why_host_draws_;
}

void BatchCollector::Cancel() {
  base::MutexLock lock(&mutex_);
  cancelled_ = true;
  if (resident_ != nullptr) resident_->Cancel();
  if (stream_ != nullptr) stream_->Cancel();
}

absl::Status BatchCollector::Draw(int64_t n, absl::Time deadline) {
  while (true) {
    {
      base::MutexLock lock(&mutex_);
      if (cancelled_) return absl::CancelledError("The sampler has been closed.");
    }
    const absl::Status status = TryDraw(n, deadline);
    if (status.ok()) return status;
    if (absl::IsDeadlineExceeded(status) && absl::Now() < deadline) {
      if (options_.limits.rate_limiter_timeout == absl::InfiniteDuration()) continue;
      ended_ = true;
      return absl::OkStatus();
    }
    GR_RETURN_IF_ERROR(retry_.Recover(status, deadline));
  }
}

absl::Status BatchCollector::TryDraw(int64_t n, absl::Time deadline) {
  if (stream_ == nullptr) GR_RETURN_IF_ERROR(OpenStream(deadline));
  GR_RETURN_IF_ERROR(SeedStream());
  n = std::min(n, Room());
  auto groups = stream_->Draw(n, deadline);
  if (!groups.ok()) {
    const absl::Status& status = groups.status();
    if (absl::IsInvalidArgument(status)) {  // An item is of no use.
      EndBatch();
      unused_ += n;
    } else if (!absl::IsDeadlineExceeded(status) && !absl::IsCancelled(status)) {
      DropStream();
    } else {
      return status;
    }
    if (options_.seed.has_value()) {  // What is left would not be the start of the next batch.
      unused_ += std::exchange(num_pending_, 0);
      pending_.clear();
    }
    return status;
  }
  retry_.Succeeded();
  for (batch::DrawnBatch& group : *groups) {
    const auto size = static_cast<int64_t>(group.size());
    num_pending_ += size;
    drawn_ += size;
    drawn_by_stream_ += size;
    pending_.push_back(std::move(group));
  }
  ended_ = drawn_ == options_.limits.max_items;
  if (Room() == 0) DropStream();
  return absl::OkStatus();
}

absl::Status BatchCollector::OpenStream(absl::Time deadline) {
  GR_ASSIGN_OR_RETURN(connection_, source_(deadline));
  GR_ASSIGN_OR_RETURN(auto stream, connection_->OpenBatchStream(
                                       options_.table, options_.limits.rate_limiter_timeout));
  base::MutexLock lock(&mutex_);
  stream_ = std::move(stream);
  retry_.Opened();
  if (cancelled_) stream_->Cancel();
  return absl::OkStatus();
}

absl::Status BatchCollector::SeedStream() {
  if (!options_.seed.has_value() || seeded_) return absl::OkStatus();
  const absl::Status status = stream_->Seed(base::Philox(*options_.seed).At(batch_number_));
  if (absl::IsUnimplemented(status)) {
    return base::InvalidArgument("seed cannot be used over the ", connection_->data_plane(),
                                 " data plane: its draws are by the table's own generator. "
                                 "Give the table a seed instead.");
  }
  seeded_ = status.ok();
  return status;
}

void BatchCollector::DropStream() {
  std::unique_ptr<BatchStream> dropped;
  {
    base::MutexLock lock(&mutex_);
    dropped = std::move(stream_);
  }
  unused_ += dropped->End();
  drawn_by_stream_ = 0;
  seeded_ = false;
}

absl::StatusOr<BatchPtr> BatchCollector::Gather(batch::DrawnBatch& drawn,
                                                const BatchRequest& request) {
  auto batch = std::make_unique<Batch>();
  GR_ASSIGN_OR_RETURN(batch->layout, batch::Plan(drawn, request.ragged, request.max_bytes));
  if (options_.device != nullptr) {
    GR_ASSIGN_OR_RETURN(batch->on_device, GatherOnDevice(drawn, batch->layout, request.max_bytes));
  } else if (batch->layout.buffer_bytes > 0) {
    GR_ASSIGN_OR_RETURN(batch->buffer, buffers_->Allocate(batch->layout.buffer_bytes));
    batch::Collate(drawn, batch->layout, batch->buffer.get());
  }
  bool has_strings = false;
  for (batch::DrawnColumn& column : drawn.columns) {
    if (column.dtype == tensor::DType::kString) {
      has_strings = true;
    } else {
      column.pieces = {};
      column.piece_ends = {};
    }
  }
  if (!has_strings) drawn.lease = nullptr;
  batch->drawn = std::move(drawn);
  return batch;
}

absl::StatusOr<OnDevice> BatchCollector::GatherOnDevice(const batch::DrawnBatch& drawn,
                                                        const batch::BatchLayout& layout,
                                                        size_t max_bytes) {
  if (gathers_ == nullptr) {
    GR_ASSIGN_OR_RETURN(gathers_, options_.device->NewStream(options_.kept_buffers));
  }
  if (connection_ != nullptr && connection_ != sources_of_) {
    std::shared_ptr<device::DeviceTier> tier;
    if (const auto service = connection_->local_service()) {
      const auto table = service->FindTable(options_.table);
      if (table.ok()) tier = options_.device->TierOf(*table);
    }
    gathers_->SetSources(connection_->memory(), std::move(tier));
    sources_of_ = connection_;
  }
  device::BatchPlan plan = device::PlanBatch(drawn, layout, options_.casts);
  size_t bytes = 0;
  for (const device::OutputArray& column : plan.columns) bytes += column.bytes;
  if (bytes > max_bytes) {  // The layout was not too large, but its elements have grown.
    return base::InvalidArgument("A batch of ", drawn.size(), " items needs ", bytes,
                                 " bytes once cast, which is more than max_bytes (", max_bytes,
                                 ").");
  }
  using Lease = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
  auto lease = std::make_shared<const Lease>(drawn.lease, std::move(plan.numbers));
  OnDevice made;
  GR_ASSIGN_OR_RETURN(
      made.output, gathers_->Gather(std::move(plan.gather), plan.output_bytes, std::move(lease)));
  made.columns = std::move(plan.columns);
  made.sides = std::move(plan.sides);
  made.lengths_agree = plan.lengths_agree;
  made.gpu = options_.device->gpu();
  return made;
}

}  // namespace gear_reverb::client
