// Makes batches of what was drawn, in memory of the host or of a device.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "native/batch/buffer_pool.h"
#include "native/client/batch.h"
#include "native/client/connection.h"

namespace gear_reverb::client {

// Thread-compatible.
class BatchGatherer {
 public:
  struct Options {
    std::string table;
    size_t kept_buffers = 2;  // For batches to come.
    // Gathers batches; null: batch::Collate does. Casts are for a device only.
    std::shared_ptr<device::Device> device;
    device::Casts casts;
  };
  explicit BatchGatherer(Options options)
      : options_(std::move(options)), buffers_(batch::BufferPool::Create(options_.kept_buffers)) {}

  // Of what was drawn over `connection`. INVALID_ARGUMENT if it makes no batch, or too large a one,
  // RESOURCE_EXHAUSTED without memory; `drawn` is as it was then.
  absl::StatusOr<BatchPtr> Gather(batch::DrawnBatch& drawn, const BatchRequest& request,
                                  const std::shared_ptr<Connection>& connection);

  // In a forked process: its threads are the parent's, and ending them would wait for them.
  void Abandon() { (void)gathers_.release(); }

 private:
  absl::StatusOr<OnDevice> GatherOnDevice(const batch::DrawnBatch& drawn,
                                          const batch::BatchLayout& layout, size_t max_bytes,
                                          const std::shared_ptr<Connection>& connection);

  const Options options_;
  const std::shared_ptr<batch::BufferPool> buffers_;
  std::shared_ptr<Connection> sources_of_;         // Whose memory the device knows of.
  std::unique_ptr<device::GatherStream> gathers_;  // With a device, from the first batch on.
};

}  // namespace gear_reverb::client
