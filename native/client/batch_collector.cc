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
#include "native/client/fork_guard.h"
#include "native/client/resident_batches.h"

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

}  // namespace

BatchCollector::BatchCollector(ConnectionSource source, CollectorOptions options)
    : source_(std::move(source)),
      options_(std::move(options)),
      gatherer_({options_.table, options_.kept_buffers, options_.device, options_.casts}) {}

BatchCollector::~BatchCollector() {
  if (!CheckNotForked().ok()) {
    // Their threads are the parent's: ending them would wait for them.
    (void)stream_.release();
    gatherer_.Abandon();
    (void)resident_.release();
    return;
  }
  if (stream_ != nullptr) unused_ += stream_->End();
  unused_ += pending_.size();
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
  const int64_t drawn_before = drawn_ - pending_.size();
  absl::Status thrown;
  try {
    if (options_.device_draws.has_value() && why_host_draws_.empty()) {
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
  pending_.Clear();
  again_ = false;
  if (stream_ != nullptr) DropStream();  // It may have stopped half-way.
  return thrown;
}

absl::StatusOr<BatchPtr> BatchCollector::DrawAndGather(const BatchRequest& request,
                                                       absl::Time deadline, bool another) {
  if (const absl::Status filled = Fill(request, deadline); !filled.ok()) {
    if (absl::IsInvalidArgument(filled)) ReportUnused();
    return filled;
  }
  if (pending_.size() == 0) return absl::OutOfRangeError("The sequence of batches is over.");
  const bool again = std::exchange(again_, false);
  if (!again) EndBatch();
  const int64_t pending = pending_.size();
  absl::StatusOr<batch::DrawnBatch> drawn = pending_.Take(request.size, request.block_bytes);
  if (!again) DrawAhead(std::max(options_.ahead, another ? request.size : 0));
  if (!drawn.ok()) {
    unused_ += pending - pending_.size();
    ReportUnused();
    return drawn.status();
  }
  absl::StatusOr<BatchPtr> batch = gatherer_.Gather(*drawn, request, connection_);
  if (absl::IsResourceExhausted(batch.status())) {
    again_ = true;
    pending_.PutBack(*std::move(drawn));
  } else if (!batch.ok()) {
    unused_ += pending - pending_.size();
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
  n = std::min(n - pending_.size(), Room());
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
  while (pending_.size() < request.size && !ended_ && failed_.ok()) {
    if (!request.block_bytes.has_value() && pending_.size() > 0) {
      for (; counted < pending_.groups().size(); ++counted) {
        bytes += BytesOf(pending_.groups()[counted]);
      }
      item_bytes_ = std::max<size_t>(bytes / pending_.size(), 1);
      if (bytes > request.max_bytes) {
        RefusePending();
        return TooLarge(request);
      }
      if (pending_.size() >= looked_at + kMostAtOnce) {
        looked_at = pending_.size();
        const base::InterruptHook hook = base::interrupt_hook.load();
        if (hook != nullptr && hook()) return absl::CancelledError("Interrupted.");
      }
    }
    if (request.block_bytes.has_value() && pending_.size() > 0 && !std::exchange(lingers, true)) {
      deadline = std::min(deadline, absl::Now() + kLinger);
    }
    int64_t missing = std::min(request.size - pending_.size(), kMostAtOnce);
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
  return pending_.size() > 0 ? absl::OkStatus() : std::exchange(failed_, absl::OkStatus());
}

void BatchCollector::RefusePending() {
  unused_ += pending_.Clear();
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
  const bool top_k = options_.device_draws == device::Choice::kTopK;
  if (resident_ == nullptr) {
    GR_ASSIGN_OR_RETURN(connection_, source_(deadline));
    const char* const option = top_k ? "draw='top_k'" : "draw='device'";
    GR_ASSIGN_OR_RETURN(auto service, LocalServiceFor(connection_, option));
    ResidentOptions options{options_.table, options_.seed, options_.device, options_.casts,
                            *options_.device_draws};
    if (request.ragged == batch::Ragged::kPad) options.padding = device::Padding{request.pad_to};
    auto resident = ResidentBatches::Create(std::move(service), options, options_.kept_buffers);
    base::MutexLock lock(&mutex_);
    if (cancelled_) return absl::CancelledError("The sampler has been closed.");
    if (absl::IsResourceExhausted(resident.status()) && !top_k) {
      why_host_draws_ = std::string(resident.status().message());
    }
    GR_RETURN_IF_ERROR(resident.status());
    resident_ = *std::move(resident);
  }
  absl::StatusOr<BatchPtr> batch = resident_->Next(request, deadline);
  const std::string why_not = resident_->why_not();
  if (!why_not.empty() || absl::IsUnavailable(batch.status())) {
    std::unique_ptr<ResidentBatches> dropped;
    base::MutexLock lock(&mutex_);
    if (!top_k) why_host_draws_ = why_not;
    dropped = std::move(resident_);
  }
  if (!why_not.empty() && top_k && !absl::IsResourceExhausted(batch.status())) {
    return base::FailedPrecondition("Only a device draws 'top_k', and cannot here: ", why_not, ".");
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
      unused_ += pending_.Clear();
    }
    return status;
  }
  retry_.Succeeded();
  for (batch::DrawnBatch& group : *groups) {
    const auto size = static_cast<int64_t>(group.size());
    drawn_ += size;
    drawn_by_stream_ += size;
    pending_.Push(std::move(group));
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

}  // namespace gear_reverb::client
