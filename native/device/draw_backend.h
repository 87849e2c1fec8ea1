// What a device does for draws that it makes itself, besides the draws: their gather, the memory
// that goes to and fro, and when that is over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "native/device/select_backend.h"
#include "native/device/slot_entries.h"
#include "native/memory/arena.h"

namespace gear_reverb::device {

class DeviceTier;

// All that a stream had been given when the mark was made.
class Mark {
 public:
  virtual ~Mark() = default;
  // Whether it is done. Does not wait.
  virtual absl::StatusOr<bool> done() const = 0;
  virtual absl::Status Wait() const = 0;
  // What the stream gets from now on comes after it.
  virtual absl::Status PutBefore(Stream stream) const = 0;
};

// Thread-compatible, but for Weights, which any thread may call. Everything with a stream may
// return before it is done; pointers are to memory of the device but where it says otherwise.
// WriteEntries, Pick, Weights and Gather only launch kernels, and read no memory of the host then
// or later: they may be captured and replayed.
class DrawBackend {
 public:
  virtual ~DrawBackend() = default;

  // Draws, and the device's memory.
  virtual const std::shared_ptr<SelectBackend>& select() const = 0;

  // Memory of the host, that copies to and from the device do not make it wait for. It may be let
  // go of once the copies are done.
  virtual absl::StatusOr<std::shared_ptr<std::byte>> AllocateHost(size_t bytes) = 0;
  // Memory that items lie in, and that the tier, if there is one, copies from.
  virtual void AddSource(std::shared_ptr<memory::Arena> arena, DeviceTier* tier) = 0;
  // Where the device finds `bytes` bytes that this process has at `data`; null if it cannot. Waits
  // for memory that is to be registered first.
  virtual const std::byte* AddressOf(const std::byte* data, uint64_t bytes) = 0;

  virtual absl::StatusOr<std::unique_ptr<Mark>> NewMark(Stream stream) = 0;
  // Waits for all that the stream it was made for has been given; without one, for all that the
  // device has been given, which must not be while a stream is captured.
  virtual absl::Status Synchronize() = 0;

  virtual absl::Status WriteEntries(const DirectoryView& directory, const EntryChanges& changes,
                                    Stream stream) = 0;
  virtual absl::Status Pick(const DirectoryView& directory, const Picked& picked,
                            Stream stream) = 0;
  // Importance weights of `n` draws, as Selection::Draw has them.
  virtual absl::Status Weights(const double* probabilities, uint32_t n, double beta, float* weights,
                               Stream stream) = 0;
  // Of a gather's pieces, for the choice of a kernel.
  struct Pieces {
    uint64_t mean_bytes = 0;
    bool mostly_there = false;  // In the device's own memory.
  };
  // `output` is a multiple of 128.
  virtual absl::Status Gather(const RowList& list, const Pieces& pieces, std::byte* output,
                              Stream stream) = 0;
};

// The twin, which does everything at once.
std::unique_ptr<DrawBackend> MakeDrawTwin();

}  // namespace gear_reverb::device
