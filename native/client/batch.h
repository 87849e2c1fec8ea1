// What is asked for of a batch, and what comes of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "native/batch/collate.h"
#include "native/device/batch_plan.h"
#include "native/device/device.h"

namespace gear_reverb::client {

struct BatchRequest {
  int64_t size = 0;  // > 0.
  batch::Ragged ragged = batch::Ragged::kError;
  // Of the arrays; a batch that is larger is refused before it takes much more memory.
  size_t max_bytes = 0;
  // If given, fewer items will do: those that are there soon after the first, are alike, and have
  // about so many bytes. Otherwise fewer come at the end of a sequence alone.
  std::optional<size_t> block_bytes;
  int64_t pad_to = 0;  // As of batch::Plan.
};

// What a device made of a batch.
struct OnDevice {
  std::shared_ptr<device::Output> output;
  std::vector<device::OutputArray> columns;
  std::vector<device::OutputSides> sides;  // See BatchPlan.
  bool lengths_agree = true;
  int gpu = -1;  // -1: the CPU.

  // Of a batch that the device has drawn, too.
  struct Draws {
    device::OutputArray keys, probabilities, priorities;
    int64_t size = 0;
    int64_t table_size = 0;
    std::shared_ptr<device::DrawBackend> backend;
  };
  std::optional<Draws> draws;
};

// A gathered batch. Of `drawn`, pieces and lease are there only for columns of strings, whose text
// they hold; of what a device has drawn there is nothing.
struct Batch {
  batch::DrawnBatch drawn;
  batch::BatchLayout layout;
  std::shared_ptr<std::byte> buffer;  // layout.buffer_bytes bytes; null if that is 0.
  std::optional<OnDevice> on_device;  // In place of the buffer.

  int64_t size() const {
    return on_device.has_value() && on_device->draws.has_value()
               ? on_device->draws->size
               : static_cast<int64_t>(drawn.size());
  }
};
using BatchPtr = std::unique_ptr<Batch>;

}  // namespace gear_reverb::client
