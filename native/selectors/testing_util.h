// What the tests of this layer share: a naive model of every strategy, and a chi-squared bound.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "native/selectors/selector.h"

namespace gear_reverb::selectors::testing {

// An upper bound that a chi-squared variable exceeds about once in 1000 (Wilson and Hilferty).
inline double ChiSquaredBound(size_t degrees) {
  const double k = static_cast<double>(degrees), v = 2 / (9 * k);
  return k * std::pow(1 - v + 3.09 * std::sqrt(v), 3);
}

// That `draws` draws, of which `counts` fell on each slot, are as the probabilities say: by a
// chi-squared test, which fails by chance once in 1000 seeds, and exactly where one slot has them
// all.
inline void ExpectDrawnAs(const std::map<Slot, double>& probabilities,
                          std::map<Slot, size_t> counts, size_t draws) {
  double chi_squared = 0;
  size_t cells = 0;
  for (const auto& [slot, probability] : probabilities) {
    if (probability == 0) {
      EXPECT_EQ(counts[slot], 0u);
      continue;
    }
    const double expected = probability * static_cast<double>(draws);
    const double excess = static_cast<double>(counts[slot]) - expected;
    chi_squared += excess * excess / expected;
    ++cells;
  }
  if (cells == 1) {
    EXPECT_EQ(chi_squared, 0);
  } else {
    EXPECT_LT(chi_squared, ChiSquaredBound(cells - 1));
  }
}

// The rules of all strategies, written for clarity: every question scans all items.
class Model {
 public:
  explicit Model(const SelectorOptions& options) : options_(options) {}

  void Insert(Slot slot, double priority) { items_[slot] = {priority, clock_, clock_}, ++clock_; }
  void Update(Slot slot, double priority) {
    items_[slot].priority = priority;
    items_[slot].touched = clock_++;
  }
  void Erase(Slot slot) { items_.erase(slot); }
  void Clear() { items_.clear(); }
  bool Contains(Slot slot) const { return items_.contains(slot); }
  size_t size() const { return items_.size(); }
  std::vector<Slot> Slots() const {
    std::vector<Slot> slots;
    for (const auto& [slot, item] : items_) slots.push_back(slot);
    return slots;
  }

  // The probability of every slot in a draw.
  std::map<Slot, double> Probabilities() const {
    std::map<Slot, double> result;
    if (const auto* prioritized = std::get_if<PrioritizedOptions>(&options_)) {
      long double total = 0;
      for (const auto& [slot, item] : items_) {
        const double power = std::pow(item.priority, prioritized->exponent);
        const double weight = item.priority == 0 ? 0 : power;
        result[slot] = weight;
        total += weight;
      }
      for (auto& [slot, weight] : result) {
        weight =
            total == 0 ? 1.0 / static_cast<double>(size()) : static_cast<double>(weight / total);
      }
    } else if (std::holds_alternative<UniformOptions>(options_)) {
      for (const auto& [slot, item] : items_) result[slot] = 1.0 / static_cast<double>(size());
    } else {
      for (const auto& [slot, item] : items_) result[slot] = 0;
      if (!items_.empty()) result[Deterministic()] = 1;
    }
    return result;
  }

 private:
  struct Item {
    double priority;
    uint64_t inserted;
    uint64_t touched;
  };

  Slot Deterministic() const {
    auto best = items_.begin();
    for (auto it = items_.begin(); it != items_.end(); ++it) {
      if (Before(it->second, best->second)) best = it;
    }
    return best->first;
  }

  bool Before(const Item& a, const Item& b) const {
    if (std::holds_alternative<FifoOptions>(options_)) return a.inserted < b.inserted;
    if (std::holds_alternative<LifoOptions>(options_)) return a.inserted > b.inserted;
    if (a.priority == b.priority) return a.touched < b.touched;
    return std::get<HeapOptions>(options_).min_heap == (a.priority < b.priority);
  }

  SelectorOptions options_;
  std::map<Slot, Item> items_;
  uint64_t clock_ = 0;
};

}  // namespace gear_reverb::selectors::testing
