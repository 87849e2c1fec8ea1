#include "native/selectors/sum_tree.h"

#include <algorithm>

#include "native/base/prefetch.h"
#include "native/selectors/sum_tree_node.h"

namespace gear_reverb::selectors {
namespace {

// A group of sixteen doubles is two cache lines.
inline void PrefetchGroup(const double* group) {
  base::Prefetch(group);
  base::Prefetch(group + 8);
}

constexpr size_t kAhead = 8;  // Distance of prefetches in a list of known nodes.

}  // namespace

void SumTree::Reserve(size_t count) {
  if (count <= count_) return;
  size_t needed = count;
  for (size_t level = 0; level < kMaxLevels; ++level) {
    levels_[level].Reserve((needed + kFanout - 1) / kFanout * kFanout);
    marks_[level].Reserve((needed + 63) / 64);
    if (needed <= kFanout) break;
    needed = (needed + kFanout - 1) / kFanout;
  }
  // Nothing below throws. A new top level starts with what the old one summed to.
  for (size_t n = count, level = 0; n > kFanout; n = (n + kFanout - 1) / kFanout) {
    if (++level > top_) {
      levels_[level][0] = total_;
      top_ = level;
    }
  }
  count_ = count;
}

bool SumTree::Mark(base::HugeArray<uint64_t>& bits, uint32_t node) {
  uint64_t& word = bits[node / 64];
  const uint64_t bit = uint64_t{1} << (node % 64);
  const bool fresh = (word & bit) == 0;
  word |= bit;
  return fresh;
}

void SumTree::Assign(absl::Span<const Slot> slots, absl::Span<const double> weights) {
  for (size_t i = 0; i < slots.size(); i += kBlock) {
    AssignBlock(slots.subspan(i, kBlock), weights.subspan(i, kBlock));
  }
}

void SumTree::AssignBlock(absl::Span<const Slot> slots, absl::Span<const double> weights) {
  uint32_t nodes[kBlock];  // The distinct parents, in one level, of what has changed.
  size_t size = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (i + kAhead < slots.size()) base::Prefetch(&levels_[0][slots[i + kAhead]]);
    const uint32_t parent = slots[i] / kFanout;
    levels_[0][slots[i]] = weights[i];
    if (top_ > 0 && Mark(marks_[1], parent)) nodes[size++] = parent;
  }
  for (size_t level = 1; level <= top_; ++level) {
    const size_t changed = size;
    size = 0;
    for (size_t i = 0; i < changed; ++i) {
      if (i + kAhead < changed) PrefetchGroup(&levels_[level - 1][nodes[i + kAhead] * kFanout]);
      const uint32_t node = nodes[i];
      levels_[level][node] = NodeSum(&levels_[level - 1][node * kFanout]);
      marks_[level][node / 64] &= ~(uint64_t{1} << (node % 64));
      const uint32_t parent = node / kFanout;
      if (level < top_ && Mark(marks_[level + 1], parent)) nodes[size++] = parent;
    }
  }
  total_ = NodeSum(&levels_[top_][0]);
}

void SumTree::Sample(base::Philox& random, absl::Span<Draw> draws) const {
  constexpr size_t kGroup = 64;  // Draws in flight; their lines fit in the first-level cache.
  uint64_t bits[kGroup];
  double target[kGroup];
  uint32_t node[kGroup];
  while (!draws.empty()) {
    const size_t size = std::min(kGroup, draws.size());
    random.Fill(absl::MakeSpan(bits, size));
    const double most = Below(total_);
    for (size_t i = 0; i < size; ++i) {
      target[i] = std::min(base::Philox::ToDouble(bits[i]) * total_, most);
      node[i] = 0;
    }
    for (size_t level = top_; level > 0; --level) {
      const double* const values = &levels_[level][0];
      const double* const below = &levels_[level - 1][0];
      for (size_t i = 0; i < size; ++i) {
        const Step step = FindChild(values + size_t{node[i]} * kFanout, target[i]);
        node[i] = static_cast<uint32_t>(node[i] * kFanout + step.index);
        target[i] = step.target;
        PrefetchGroup(below + size_t{node[i]} * kFanout);
      }
    }
    for (size_t i = 0; i < size; ++i) {
      const size_t group = size_t{node[i]} * kFanout;
      const size_t slot = group + FindChild(&levels_[0][group], target[i]).index;
      draws[i] = {static_cast<Slot>(slot), levels_[0][slot] / total_};
    }
    draws.remove_prefix(size);
  }
}

void SumTree::Clear() {
  for (base::HugeArray<double>& level : levels_) level.Clear();
  for (base::HugeArray<uint64_t>& marks : marks_) marks.Clear();
  top_ = 0;
  count_ = 0;
  total_ = 0;
}

}  // namespace gear_reverb::selectors
