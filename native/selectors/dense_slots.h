// A set of slots numbered 0, 1, 2, … without gaps, for uniform draws.
#pragma once

#include <algorithm>
#include <cstddef>

#include "absl/types/span.h"
#include "native/base/huge_array.h"
#include "native/base/philox.h"
#include "native/selectors/selector.h"

namespace gear_reverb::selectors {

// Eight bytes a slot; every operation is O(1). The numbering depends only on the history of
// inserts and erases: the last slot takes the number of an erased one.
class DenseSlots {
 public:
  // Room for slots below `count`, at most `size` of them at once.
  void Reserve(size_t count, size_t size) {
    number_.Reserve(count);
    slots_.Reserve(size);
  }

  // `slot` is reserved and absent.
  void Insert(Slot slot) {
    number_[slot] = static_cast<Slot>(size_);
    slots_[size_++] = slot;
  }

  // `slot` is present.
  void Erase(Slot slot) {
    const Slot last = slots_[--size_];
    slots_[number_[slot]] = last;
    number_[last] = number_[slot];
  }

  // Fills `draws`, one random number each. Not empty.
  void Sample(base::Philox& random, absl::Span<Draw> draws) const {
    const double probability = 1.0 / static_cast<double>(size_);
    uint64_t bits[64];
    while (!draws.empty()) {
      const absl::Span<uint64_t> numbers(bits, std::min<size_t>(64, draws.size()));
      random.Fill(numbers);
      for (size_t i = 0; i < numbers.size(); ++i) {
        draws[i] = {slots_[base::Philox::ToBelow(bits[i], size_)], probability};
      }
      draws.remove_prefix(numbers.size());
    }
  }

  void Clear() {
    number_.Clear();
    slots_.Clear();
    size_ = 0;
  }
  size_t size() const { return size_; }

 private:
  base::HugeArray<Slot> number_;  // By slot.
  base::HugeArray<Slot> slots_;   // By number.
  size_t size_ = 0;
};

}  // namespace gear_reverb::selectors
