#include "native/client/batch_gatherer.h"

#include <utility>

#include "native/base/status.h"
#include "native/service/replay_service.h"

namespace gear_reverb::client {

absl::StatusOr<BatchPtr> BatchGatherer::Gather(batch::DrawnBatch& drawn,
                                               const BatchRequest& request,
                                               const std::shared_ptr<Connection>& connection) {
  auto batch = std::make_unique<Batch>();
  GR_ASSIGN_OR_RETURN(batch->layout,
                      batch::Plan(drawn, request.ragged, request.max_bytes, request.pad_to));
  if (options_.device != nullptr) {
    GR_ASSIGN_OR_RETURN(batch->on_device,
                        GatherOnDevice(drawn, batch->layout, request.max_bytes, connection));
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

absl::StatusOr<OnDevice> BatchGatherer::GatherOnDevice(
    const batch::DrawnBatch& drawn, const batch::BatchLayout& layout, size_t max_bytes,
    const std::shared_ptr<Connection>& connection) {
  if (gathers_ == nullptr) {
    GR_ASSIGN_OR_RETURN(gathers_, options_.device->NewStream(options_.kept_buffers));
  }
  if (connection != nullptr && connection != sources_of_) {
    std::shared_ptr<device::DeviceTier> tier;
    if (const auto service = connection->local_service()) {
      const auto table = service->FindTable(options_.table);
      if (table.ok()) tier = options_.device->TierOf(*table);
    }
    gathers_->SetSources(connection->memory(), std::move(tier));
    sources_of_ = connection;
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
