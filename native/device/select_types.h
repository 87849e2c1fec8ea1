// What selection on a device works on, as plain data that host and device code share.
#pragma once

#include <cstdint>

#include "native/device/wide_tree.h"

namespace gear_reverb::device {

enum class Strategy : uint32_t { kUniform, kWeighted, kFifo, kLifo, kMinHeap, kMaxHeap };

GR_HOST_DEVICE bool IsOrdered(Strategy strategy) { return strategy >= Strategy::kFifo; }

// Of an order, no more first items than this are given at once.
inline constexpr uint32_t kMaxTop = 1024;

// All there is to know of one slot: states of a batch are complete, so that of several for one slot
// the last one alone counts.
struct alignas(16) SlotState {
  uint64_t key = 0;
  double priority = 0;
  uint64_t order =
      0;  // Place in time: of insertion for FIFO and LIFO, of the last touch for heaps.
  uint32_t slot = 0;
  uint32_t held = 0;  // 1: there is an item, 0: there is none, and key, priority, order are unused.
};

// The state of a selection, in its backend's memory.
struct SelectionView {
  Strategy strategy = Strategy::kUniform;
  double exponent = 1;        // Of kWeighted.
  uint64_t* keys = nullptr;   // By slot.
  TreeView<uint32_t> counts;  // 1 for every item. Of kUniform and kWeighted.
  TreeView<double> weights;   // Of kWeighted.
  TreeView<Rank> ranks;       // Of the ordered strategies.
};

// What draws advance. Draw i of a call takes number position + i of the seed's stream.
struct DrawState {
  uint64_t seed = 0;
  uint64_t position = 0;
  uint64_t least_probability = 0;  // Bits of the least of the last call's draws.
};

// Where draws go, in the backend's memory; a null pointer: not wanted.
struct DrawOutput {
  uint32_t* slots = nullptr;
  uint64_t* keys = nullptr;
  double* probabilities = nullptr;
  float* weights = nullptr;  // Importance weights; they want probabilities as well.
};

// Where a batch's last state of every slot is found: open addressing over `mask` + 1 places.
struct ClaimTable {
  uint32_t* slots = nullptr;  // kNoSlot: free.
  int32_t* last = nullptr;    // Index in the batch; -1 if none.
  uint32_t mask = 0;
};

GR_HOST_DEVICE double WeightOf(const SlotState& state, double exponent) {
  return state.held == 0 || state.priority == 0 ? 0.0 : Power(state.priority, exponent);
}

GR_HOST_DEVICE Rank RankOf(const SlotState& state, Strategy strategy) {
  if (state.held == 0) return Rank();
  switch (strategy) {
    case Strategy::kLifo: return {0, ~state.order};
    case Strategy::kMinHeap: return {OrderOf(state.priority), state.order};
    case Strategy::kMaxHeap: return {~OrderOf(state.priority), state.order};
    default: return {0, state.order};
  }
}

// (table size × probability)^-beta over the largest such number of the batch: the table's size
// cancels out.
GR_HOST_DEVICE float ImportanceWeight(double probability, double least, double beta) {
  if (beta == 0 || probability <= least) return 1.0f;
  return static_cast<float>(Power(Divide(least, probability), beta));
}

}  // namespace gear_reverb::device
