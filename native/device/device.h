// Where batches are gathered: the CPU, or a GPU. Both behind one interface, so that what works on
// the one works on the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "native/device/device_tier.h"
#include "native/device/draw_backend.h"
#include "native/device/gather_plan.h"
#include "native/device/segment_source.h"
#include "native/table/table.h"

namespace gear_reverb::device {

// Which items a batch has.
enum class Choice {
  kDraws,  // With replacement, by the table's strategy.
  kTopK,   // The first ones of its order, each once.
};

// Memory of a device that a gather has written, or is about to. Thread-safe. When the last owner
// goes, the memory is used again, after all work of streams that it was shared with.
class Output {
 public:
  virtual ~Output() = default;
  // A multiple of 128, on the device.
  virtual std::byte* data() const = 0;
  // Work that the stream gets from now on finds the gather done; `stream` is a cudaStream_t, 0 for
  // any of them, and ignored on the CPU. Waits only for 0 or where the stream is being captured.
  virtual absl::Status ShareWith(uintptr_t stream) = 0;
  // The same for a stream that may end before the output does: the caller keeps the output until
  // that work is done.
  virtual absl::Status LendTo(Stream stream) = 0;
  // Waits until the gather is done. Its error, if it had one.
  virtual absl::Status Wait() = 0;

  // For a framework that gives memory back before its work with it is done, on a stream that it
  // does not name: the memory is used again after a fence besides.
  virtual void WantFence() {}
  // Whether memory of such outputs of the device waits for one.
  virtual bool fence_wanted() const { return false; }
  // `wait` has the stream wait for all that the framework's streams have been given. What it throws
  // is thrown.
  virtual absl::Status PassFence(absl::FunctionRef<void(Stream)>) { return absl::OkStatus(); }
};

// Gathers one after another, in order. Thread-compatible.
class GatherStream {
 public:
  virtual ~GatherStream() = default;

  // Where pieces will lie from now on; either may be null. The memory is registered with the device
  // where that pays, in the background, and for as long as the stream uses it.
  virtual void SetSources(std::shared_ptr<SegmentSource> memory,
                          std::shared_ptr<DeviceTier> tier) = 0;

  // Starts to write the plan's rows into fresh memory of `bytes` bytes. `lease` keeps the pieces
  // until they have been read. RESOURCE_EXHAUSTED without memory.
  virtual absl::StatusOr<std::shared_ptr<Output>> Gather(GatherPlan plan, uint64_t bytes,
                                                         std::shared_ptr<const void> lease) = 0;

  // Where the gathers are put; null on the CPU.
  virtual Stream stream() const { return nullptr; }
  // Fresh memory of `bytes` bytes, and `write` called at once to put on the stream what writes it,
  // from sources of `source_bytes`. `lease` is kept until that is done.
  virtual absl::StatusOr<std::shared_ptr<Output>> Write(
      uint64_t bytes, uint64_t source_bytes, std::shared_ptr<const void> lease,
      absl::FunctionRef<absl::Status(std::byte* output)> write) = 0;
};

// How rows of one size class are gathered, and what was measured when that was chosen.
struct ClassChoice {
  uint64_t piece_bytes_below =
      0;  // The class: the mean piece is smaller; and not in a class before.
  std::string way;
  double bytes_per_second = 0;  // 0: not measured.
  double of_copy = 0;           // As a part of one large copy's rate, from the same place.
};

struct DeviceStats {
  std::string name;                  // "cpu", "cuda:0"
  double link_bytes_per_second = 0;  // Of a large copy from pinned host memory; 0: not measured.
  std::vector<ClassChoice> choices;  // From host memory.
  double copy_bytes_per_second = 0;  // Of a large copy within the device's memory; 0: not measured.
  std::vector<ClassChoice> device_choices;  // From there.
  std::string choices_error;                // Why nothing could be measured; "" if it could.

  uint64_t batches = 0;
  uint64_t gathered_bytes = 0;  // Of sources, padding not counted.
  uint64_t staged_bytes = 0;    // Of these, by way of a copy, for lack of registered memory;
  uint64_t device_bytes = 0;    // and from the device's own memory.
  std::vector<TierStats> tiers;

  uint64_t registered_bytes = 0;
  uint64_t registered_limit_bytes = 0;
  std::string registration_error;  // Of the last registration that failed; "" if none did.
};

// Thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  // `kept`: idle outputs that are kept for later gathers.
  virtual absl::StatusOr<std::unique_ptr<GatherStream>> NewStream(size_t kept) = 0;
  // For draws that the device makes itself, on that stream; null: on any.
  virtual absl::StatusOr<std::unique_ptr<DrawBackend>> NewDrawBackend(Stream stream) = 0;
  virtual DeviceStats stats() const = 0;
  // What it keeps of a table; see Tiers::Of.
  virtual std::shared_ptr<DeviceTier> TierOf(const std::shared_ptr<table::Table>&) {
    return nullptr;
  }
  // Of a GPU its number; -1 for the CPU.
  virtual int gpu() const { return -1; }
};

// The twin.
std::shared_ptr<Device> NewCpuDevice();

}  // namespace gear_reverb::device
