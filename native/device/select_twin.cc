// Selection on the CPU: the reference of the kernels, and what runs where there is no GPU.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "native/base/prefetch.h"
#include "native/device/select_backend.h"

namespace gear_reverb::device {
namespace {

// One lane after another does what eight lanes of a device do together.
template <typename T>
struct Node {
  explicit Node(const T* child) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      for (uint32_t i = 0; i < 4; ++i) four[lane].child[i] = child[ChildOf<T>(lane, i)];
    }
  }
  Four<T> four[kLanes];
};

template <typename T>
T CombineNode(const T* child) {
  const Node<T> node(child);
  T lane[kLanes];
  for (uint32_t i = 0; i < kLanes; ++i) lane[i] = node.four[i].Combined();
  return Combine(Combine(Combine(lane[0], lane[1]), Combine(lane[2], lane[3])),
                 Combine(Combine(lane[4], lane[5]), Combine(lane[6], lane[7])));
}

// The cumulative sums over the lanes, by doubling: a lane whose bit k is set adds the last of the
// 2^k lanes before its own 2^k. The last one is CombineNode.
template <typename T>
void Accumulate(T (&sum)[kLanes]) {
  for (uint32_t width = 1; width < kLanes; width *= 2) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if ((lane & width) != 0)
        sum[lane] = Combine(sum[(lane & ~(2 * width - 1)) | (width - 1)], sum[lane]);
    }
  }
}

// The child in which the cumulative sum passes `target` < CombineNode(child).
template <typename T>
Step<T> FindChild(const T* child, T target) {
  const Node<T> node(child);
  T value[kLanes], end[kLanes];
  for (uint32_t i = 0; i < kLanes; ++i) value[i] = end[i] = node.four[i].Combined();
  Accumulate(end);
  uint32_t lane = 0;
  for (uint32_t i = 0; i < kLanes; ++i) lane += target >= end[i];
  const T before = lane == 0 ? T() : end[lane - 1];
  Step<T> step = StepAmongFour(node.four[lane], Rest(target, before, value[lane]));
  step.index = ChildOf<T>(lane, step.index);
  return step;
}

template <typename T>
void Prefetch(const T* node) {
  for (size_t byte = 0; byte < kFanout * sizeof(T); byte += 64) {
    base::Prefetch(reinterpret_cast<const char*>(node) + byte);
  }
}

constexpr uint32_t kGroup = 64;  // Draws in flight, whose cache misses overlap.

// The leaves and their values for up to kGroup targets.
template <typename T>
void Descend(const TreeView<T>& tree, uint32_t n, T* targets, uint32_t* slots, T* values) {
  std::fill_n(slots, n, 0);
  for (int level = tree.top - 1; level >= 0; --level) {
    for (uint32_t i = 0; i < n; ++i) {
      const Step<T> step = FindChild(tree.level[level] + size_t{slots[i]} * kFanout, targets[i]);
      slots[i] = slots[i] * kFanout + step.index;
      targets[i] = step.target;
      values[i] = step.value;
      if (level > 0) Prefetch(tree.level[level - 1] + size_t{slots[i]} * kFanout);
    }
  }
}

template <typename T>
void DrawFrom(const TreeView<T>& tree, const DrawState& state, uint32_t first, uint32_t n,
              uint32_t* slots, double* probabilities) {
  const T total = tree.level[tree.top][0];
  T targets[kGroup], values[kGroup];
  for (uint32_t i = 0; i < n; ++i) {
    targets[i] = FirstTarget(base::PhiloxNumber(state.seed, state.position + first + i), total);
  }
  Descend(tree, n, targets, slots, values);
  for (uint32_t i = 0; i < n; ++i) {
    probabilities[i] = Divide(static_cast<double>(values[i]), static_cast<double>(total));
  }
}

uint32_t FirstInOrder(const TreeView<Rank>& tree) {
  const Rank first = tree.level[tree.top][0];
  uint32_t node = 0;
  for (int level = tree.top - 1; level >= 0; --level) {
    node *= kFanout;
    while (!tree.level[level][node].Is(first)) ++node;
  }
  return node;
}

class Twin final : public SelectBackend {
 public:
  absl::StatusOr<void*> Allocate(size_t bytes) override {
    void* const memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (memory == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat("No memory for ", bytes, " bytes."));
    }
    return memory;
  }
  void Free(void* memory) override { std::free(memory); }
  absl::Status Fill(void* memory, int byte, size_t bytes, Stream) override {
    std::memset(memory, byte, bytes);
    return absl::OkStatus();
  }
  absl::Status Copy(void* to, const void* from, size_t bytes, Stream) override {
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  absl::Status Synchronize(Stream) override { return absl::OkStatus(); }

  absl::Status Write(const SelectionView& view, const SlotState* states, uint32_t n,
                     const ClaimTable&, Stream) override {
    for (uint32_t i = 0; i < n; ++i) {
      const SlotState& state = states[i];
      view.keys[state.slot] = state.key;
      if (view.counts.top > 0) view.counts.level[0][state.slot] = state.held;
      if (view.weights.top > 0) view.weights.level[0][state.slot] = WeightOf(state, view.exponent);
      if (view.ranks.top > 0) view.ranks.level[0][state.slot] = RankOf(state, view.strategy);
    }
    return absl::OkStatus();
  }

  absl::Status Resum(const SelectionView& view, const SlotState* states, uint32_t n,
                     bool members_changed, Stream) override {
    std::vector<uint32_t> slots(states == nullptr ? 0 : n);
    for (uint32_t i = 0; i < slots.size(); ++i) slots[i] = states[i].slot;
    std::sort(slots.begin(), slots.end());
    const auto resum = [&](const auto& tree) {
      std::vector<uint32_t> nodes = slots;
      for (int level = 1; level <= tree.top; ++level) {
        const auto* const below = tree.level[level - 1];
        const auto combine = [&](uint32_t node) {
          tree.level[level][node] = CombineNode(below + size_t{node} * kFanout);
        };
        if (states == nullptr) {
          for (uint32_t node = 0; node < tree.count[level]; ++node) combine(node);
          continue;
        }
        for (uint32_t& node : nodes) node /= kFanout;
        nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
        for (const uint32_t node : nodes) combine(node);
      }
    };
    if (members_changed) resum(view.counts);
    resum(view.weights);
    resum(view.ranks);
    return absl::OkStatus();
  }

  absl::Status Draw(const SelectionView& view, DrawState* state, uint32_t n, double beta,
                    const DrawOutput& output, Stream) override {
    uint32_t slots[kGroup];
    double probabilities[kGroup], least = 1;
    const bool weighted = view.weights.top > 0 && view.weights.level[view.weights.top][0] > 0;
    for (uint32_t first = 0; first < n; first += kGroup) {
      const uint32_t size = std::min(kGroup, n - first);
      if (weighted) {
        DrawFrom(view.weights, *state, first, size, slots, probabilities);
      } else if (view.counts.top > 0) {
        DrawFrom(view.counts, *state, first, size, slots, probabilities);
      } else {
        std::fill_n(slots, size, FirstInOrder(view.ranks));
        std::fill_n(probabilities, size, 1.0);
      }
      for (uint32_t i = 0; i < size; ++i) {
        least = std::min(least, probabilities[i]);
        if (output.slots != nullptr) output.slots[first + i] = slots[i];
        if (output.keys != nullptr) output.keys[first + i] = view.keys[slots[i]];
        if (output.probabilities != nullptr) output.probabilities[first + i] = probabilities[i];
      }
    }
    for (uint32_t i = 0; output.weights != nullptr && i < n; ++i) {
      output.weights[i] = ImportanceWeight(output.probabilities[i], least, beta);
    }
    state->position += n;
    state->least_probability = BitsOf(least);
    return absl::OkStatus();
  }

  // An item can be among the first k only if every node above it is among the first k of its level.
  absl::Status Top(const SelectionView& view, uint32_t k, const DrawOutput& output,
                   Stream) override {
    const TreeView<Rank>& tree = view.ranks;
    std::vector<uint32_t> nodes = {0}, next;
    for (int level = tree.top - 1; level >= 0; --level) {
      const Rank* const ranks = tree.level[level];
      next.clear();
      for (const uint32_t node : nodes) {
        for (uint32_t i = 0; i < kFanout; ++i) {
          const uint32_t child = node * kFanout + i;
          if (ranks[child].IsItem()) next.push_back(child);
        }
      }
      const size_t kept = std::min<size_t>(k, next.size());
      std::partial_sort(next.begin(), next.begin() + static_cast<ptrdiff_t>(kept), next.end(),
                        [&](uint32_t a, uint32_t b) { return ranks[a].Before(ranks[b]); });
      next.resize(kept);
      nodes.swap(next);
    }
    for (uint32_t i = 0; i < k; ++i) {
      if (output.slots != nullptr) output.slots[i] = nodes[i];
      if (output.keys != nullptr) output.keys[i] = view.keys[nodes[i]];
      if (output.probabilities != nullptr) output.probabilities[i] = 1;
      if (output.weights != nullptr) output.weights[i] = 1;
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::shared_ptr<SelectBackend> MakeSelectTwin() { return std::make_shared<Twin>(); }

}  // namespace gear_reverb::device
