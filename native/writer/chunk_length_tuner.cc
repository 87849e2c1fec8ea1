#include "native/writer/chunk_length_tuner.h"

#include <algorithm>
#include <cmath>

namespace gear_reverb::writer {
namespace {

void MoveTowards(double value, bool first, double* average) {
  constexpr double kRate = 0.2;
  *average = first ? value : *average + kRate * (value - *average);
}

}  // namespace

void ChunkLengthTuner::OnStep(int64_t bytes) {
  MoveTowards(static_cast<double>(bytes), step_bytes_ == 0, &step_bytes_);
  ++steps_since_item_;
}

void ChunkLengthTuner::OnItem(int64_t steps) {
  const bool first = items_ == 0;
  MoveTowards(static_cast<double>(steps), first, &item_steps_);
  MoveTowards(static_cast<double>(steps_since_item_), first, &steps_between_);
  steps_since_item_ = 0;
  if (++items_ % kItemsPerChange == 0) Adapt();
}

void ChunkLengthTuner::Adapt() {
  const double weight = throughput_weight_ * steps_between_ + item_steps_ - 1;
  const double best = std::sqrt(kChunkCostBytes * weight / std::max(step_bytes_, 1.0));
  // Bounded before the conversion: `best` may exceed int64_t.
  const double bounded = std::min(std::round(best), 2.0 * static_cast<double>(length_));
  length_ =
      std::clamp(std::max(static_cast<int64_t>(bounded), length_ / 2), int64_t{1}, max_length_);
}

}  // namespace gear_reverb::writer
