// The item of lowest (min-heap) or highest (max-heap) priority. Among equal priorities the oldest
// wins; an update, even to the same priority, makes an item the youngest, as in Reverb.
#pragma once

#include <cstdint>

#include "native/selectors/checked_selector.h"

namespace gear_reverb::selectors {

// A four-ary heap with the place of every slot: 28 bytes an item, changes are O(log n), draws O(1).
class HeapSelector final : public CheckedSelector {
 public:
  explicit HeapSelector(bool min_heap) : sign_(min_heap ? 1.0 : -1.0) {}

  SelectorOptions options() const override { return HeapOptions{.min_heap = sign_ > 0}; }

 protected:
  void DoReserve(size_t count, size_t size) override;
  void DoInsert(absl::Span<const Slot> slots, absl::Span<const double> priorities) override;
  void DoUpdate(absl::Span<const Slot> slots, absl::Span<const double> priorities) override;
  void DoErase(absl::Span<const Slot> slots) override;
  void DoReplace(absl::Span<const Slot> slots, absl::Span<const double> priorities) override {
    DoUpdate(slots, priorities);
  }
  void DoSample(base::Philox& random, absl::Span<Draw> draws) const override;
  void DoClear() override;

 private:
  struct Node {
    double key;      // The priority, negated for a max-heap: the lowest key is on top.
    uint64_t stamp;  // Time of the last insert or update; orders equal keys.
    Slot slot;
    bool Before(const Node& other) const {
      return key != other.key ? key < other.key : stamp < other.stamp;
    }
  };

  // Puts `node` where `place` is free, moving it up or down to where it belongs.
  void Settle(size_t place, const Node& node);
  void Put(size_t place, const Node& node) {
    nodes_[place] = node;
    place_[node.slot] = static_cast<Slot>(place);
  }

  const double sign_;
  base::HugeArray<Node> nodes_;  // nodes_[p] is not after its children nodes_[4 p + 1 … 4 p + 4].
  base::HugeArray<Slot> place_;  // By slot.
  size_t size_ = 0;
  uint64_t next_stamp_ = 0;
};

}  // namespace gear_reverb::selectors
