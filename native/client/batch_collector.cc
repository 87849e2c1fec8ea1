#include "native/client/batch_collector.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "absl/time/clock.h"
#include "native/base/philox.h"
#include "native/base/status.h"
#include "native/client/fork_guard.h"
#include "native/service/replay_service.h"

namespace gear_reverb::client {

BatchCollector::BatchCollector(ConnectionSource source, CollectorOptions options)
    : source_(std::move(source)),
      options_(std::move(options)),
      buffers_(batch::BufferPool::Create(options_.kept_buffers)) {}

BatchCollector::~BatchCollector() {
  if (!CheckNotForked().ok()) {
    // Their threads are the parent's: ending them would wait for them.
    (void)stream_.release();
    (void)gathers_.release();
    return;
  }
  if (stream_ != nullptr) unused_ += stream_->End();
  if (kept_.has_value()) unused_ += kept_->size();
  if (unused_ > 0 && connection_ != nullptr) {
    // A server that is gone counts no more.
    connection_->ReportUnused(options_.table, unused_).IgnoreError();
  }
}

absl::StatusOr<BatchPtr> BatchCollector::Next(const BatchRequest& request, absl::Time deadline,
                                              bool another) {
  GR_RETURN_IF_ERROR(CheckNotForked());
  absl::Status thrown;
  try {
    return DrawAndGather(request, deadline, another);
  } catch (const std::bad_alloc&) {
    thrown = absl::ResourceExhaustedError(
        absl::StrCat("There is no memory for a batch of ", request.size, " items."));
  } catch (const std::exception& error) {
    thrown = base::Internal(error.what());
  }
  unused_ += request.size;
  if (stream_ != nullptr) DropStream();  // It may have stopped half-way.
  return thrown;
}

absl::StatusOr<BatchPtr> BatchCollector::DrawAndGather(const BatchRequest& request,
                                                       absl::Time deadline, bool another) {
  batch::DrawnBatch drawn;
  if (kept_.has_value() && static_cast<int64_t>(kept_->size()) == request.size) {
    drawn = *std::exchange(kept_, std::nullopt);
  } else {
    GR_ASSIGN_OR_RETURN(drawn, Draw(request.size, deadline));
    EndBatch();
    // An error is one of the next call.
    if (another && SeedStream().ok()) stream_->DrawAhead(request.size);
  }
  absl::StatusOr<BatchPtr> batch = Gather(drawn, request);
  if (absl::IsResourceExhausted(batch.status()) && !kept_.has_value()) {
    kept_ = std::move(drawn);
  } else if (!batch.ok()) {
    unused_ += request.size;
  }
  return batch;
}

void BatchCollector::EndBatch() {
  retry_.Succeeded();
  seeded_ = false;
  ++batch_number_;
}

void BatchCollector::Cancel() {
  base::MutexLock lock(&mutex_);
  cancelled_ = true;
  if (stream_ != nullptr) stream_->Cancel();
}

absl::StatusOr<batch::DrawnBatch> BatchCollector::Draw(int64_t n, absl::Time deadline) {
  while (true) {
    {
      base::MutexLock lock(&mutex_);
      if (cancelled_) return absl::CancelledError("The sampler has been closed.");
    }
    absl::StatusOr<batch::DrawnBatch> drawn = TryDraw(n, deadline);
    if (drawn.ok()) return drawn;
    if (absl::IsDeadlineExceeded(drawn.status()) && absl::Now() < deadline) continue;
    GR_RETURN_IF_ERROR(retry_.Recover(drawn.status(), deadline));
  }
}

absl::StatusOr<batch::DrawnBatch> BatchCollector::TryDraw(int64_t n, absl::Time deadline) {
  constexpr absl::Duration kSlice = absl::Milliseconds(250);

  if (stream_ == nullptr) GR_RETURN_IF_ERROR(OpenStream());
  GR_RETURN_IF_ERROR(SeedStream());
  if (!stream_->cancellable()) deadline = std::min(deadline, absl::Now() + kSlice);
  absl::StatusOr<batch::DrawnBatch> drawn = stream_->Next(n, deadline);
  if (absl::IsInvalidArgument(drawn.status())) {  // The items do not go together.
    EndBatch();
    unused_ += n;
  } else if (!drawn.ok() && !absl::IsDeadlineExceeded(drawn.status()) &&
             !absl::IsCancelled(drawn.status())) {
    DropStream();
  }
  return drawn;
}

absl::Status BatchCollector::OpenStream() {
  GR_ASSIGN_OR_RETURN(connection_, source_());
  GR_ASSIGN_OR_RETURN(auto stream, connection_->OpenBatchStream(options_.table));
  base::MutexLock lock(&mutex_);
  stream_ = std::move(stream);
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
  if (connection_ != nullptr && connection_ != source_added_) {
    if (const auto service = connection_->local_service()) {
      gathers_->AddSource(service->shared_arena());
    }
    source_added_ = connection_;
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
