// How fast the ways of gathering are on one GPU, measured where it is asked.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "native/cuda/gather.h"
#include "native/cuda/gpu.h"
#include "native/device/device.h"

namespace gear_reverb::cuda {

enum class Place { kPinnedHost, kDevice };

// Of the current GPU, in bytes per second: payload, counted once; nothing of it is cached, where
// there are 128 MiB of memory to see to that. Rows lie at random places, each at some 16 bytes, of
// 128 MiB and twice the batch, 1 GiB at most; of less where there is not so much memory, but of 128
// MiB. A kernel's list is there before the time begins. `warm_up`: how long the GPU, whose clocks
// are slow when it has idled, is to work before.
inline constexpr absl::Duration kWarmUp = absl::Milliseconds(30);
absl::StatusOr<double> MeasureWay(GatherWay way, Place place, const GatherShape& shape, int repeats,
                                  const GatherBlocks& all, absl::Duration warm_up = kWarmUp);
absl::StatusOr<double> MeasureLargeCopy(Place place, uint64_t bytes, int repeats);

// The fastest way from one place per class of the mean piece, of those that the GPU has.
struct Choices {
  std::vector<device::ClassChoice> classes;
  std::vector<GatherWay> ways;       // By class.
  double copy_bytes_per_second = 0;  // Of one large copy from there.

  GatherWay For(uint64_t mean_piece_bytes) const;
};
// By gathers of so many bytes.
inline constexpr uint64_t kMeasuredBytes = uint64_t{64} << 20;
absl::StatusOr<Choices> ChooseWays(Place place, int major, const GatherBlocks& held,
                                   uint64_t bytes = kMeasuredBytes);
// Without measuring: where that is not wanted, or a GPU has no memory left for it.
Choices UnmeasuredChoices();

}  // namespace gear_reverb::cuda
