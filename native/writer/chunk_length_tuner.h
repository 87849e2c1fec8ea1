// The chunk length of an auto-tuned column, from the items that use the column.
//
// Cost model. Let b be the bytes of a step, n the steps of the column that an item refers to, s
// the steps appended between two items, w the throughput weight and c the fixed cost of a chunk
// (its key, index entries, message fields and separate copy), expressed in bytes. With chunks of L
// steps, an item costs about
//
//   writing:   w * (s * b + (s / L) * c)
//   reading:   ((n - 1) / L + 1) * (L * b + c)      chunks travel whole, ends are partly used
//
// which is least at L = sqrt(c * (w * s + n - 1) / b). So heavy steps are chunked singly and light
// ones in long runs; overlapping and non-overlapping items are told apart by s.
//
// n and s are moving averages. The length starts at 1, so that the first items leave at once, and
// is adapted every kItemsPerChange items by at most a factor of two.
#pragma once

#include <cstdint>

namespace gear_reverb::writer {

// Thread-compatible.
class ChunkLengthTuner {
 public:
  static constexpr int64_t kItemsPerChange = 4;
  static constexpr double kChunkCostBytes = 1024;

  // Lengths stay within [1, max_length].
  ChunkLengthTuner(int64_t max_length, double throughput_weight)
      : max_length_(max_length), throughput_weight_(throughput_weight) {}

  // A step was appended.
  void OnStep(int64_t bytes);
  // An item that refers to `steps` > 0 steps of the column was created.
  void OnItem(int64_t steps);

  int64_t length() const { return length_; }

 private:
  void Adapt();

  int64_t max_length_;
  double throughput_weight_;
  int64_t length_ = 1;
  int64_t steps_since_item_ = 0;
  int64_t items_ = 0;
  double step_bytes_ = 0;
  double item_steps_ = 0;     // n
  double steps_between_ = 0;  // s
};

}  // namespace gear_reverb::writer
