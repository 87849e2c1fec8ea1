// The contract of a selection, for every backend and strategy. A test program instantiates
// SelectionTest over Cases(backend) and WeightedSelectionTest over WeightedCases(backend); where
// the backend cannot be made, the tests are skipped with the reason.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "native/base/testing_rounds.h"
#include "native/device/selection_test_util.h"

namespace gear_reverb::device::testing {

inline std::vector<Case> WeightedCases(const NamedBackend& backend) {
  return {{backend, selectors::PrioritizedOptions{0.7}},
          {backend, selectors::PrioritizedOptions{1.0}}};
}

// For what only weights can show; over WeightedCases.
class WeightedSelectionTest : public SelectionTest {};

// Random batches, in which slots come several times and go and return, against the naive model of
// the strategies, against the twin and against the same changes one by one.
TEST_P(SelectionTest, FollowsTheModelTheTwinAndTheSequence) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](size_t bound) { return static_cast<uint32_t>(random() % bound); };
    const uint32_t slot_count = seed % 2 == 0 ? 40 : 1500;
    auto selection = Make(), single = Make(), twin = MakeTwin();
    selectors::testing::Model model(GetParam().options);
    std::map<uint32_t, SlotState> held;
    uint64_t clock = 0;
    for (int step = 0; step < base::testing::Rounds(1000) / 4; ++step) {
      std::vector<SlotState> batch;
      for (size_t i = below(24); i > 0; --i) {
        const uint32_t slot = below(slot_count);
        const auto found = held.find(slot);
        const double priority = static_cast<double>(below(6)) / 2;
        if (found == held.end()) {
          model.Insert(slot, priority);
          held[slot] = Held(slot, priority, clock++);
          batch.push_back(held[slot]);
        } else if (below(2) == 0) {
          model.Update(slot, priority);
          found->second.priority = priority;
          if (IsHeap()) found->second.order = clock;
          ++clock;
          batch.push_back(found->second);
        } else {
          model.Erase(slot);
          held.erase(found);
          batch.push_back(Free(slot));
        }
      }
      if (step % 100 == 49) {
        for (auto* each : {&selection, &single, &twin}) ASSERT_TRUE((*each)->Clear(nullptr).ok());
        model.Clear();
        held.clear();
        batch.clear();
      }
      ASSERT_TRUE(selection->Apply(batch, nullptr).ok());
      ASSERT_TRUE(twin->Apply(batch, nullptr).ok());
      for (const SlotState& state : batch) ASSERT_TRUE(single->Apply({&state, 1}, nullptr).ok());
      ASSERT_EQ(selection->size(), model.size());
      if (model.size() == 0) continue;

      const uint32_t n = step % 50 == 0 ? 150 : 9;
      const Draws draws = Draw(*selection, n, 0.5, seed, step);
      ASSERT_TRUE(draws == Draw(*twin, n, 0.5, seed, step));
      ASSERT_TRUE(draws == Draw(*single, n, 0.5, seed, step));
      const std::map<uint32_t, double> expected = model.Probabilities();
      for (uint32_t i = 0; i < n; ++i) {
        ASSERT_TRUE(expected.contains(draws.slots[i]));
        ASSERT_GT(expected.at(draws.slots[i]), 0);
        ASSERT_NEAR(draws.probabilities[i] / expected.at(draws.slots[i]), 1, 2e-12);
        ASSERT_EQ(draws.keys[i], held.at(draws.slots[i]).key);
      }
    }
  }
}

TEST_P(SelectionTest, OfDuplicatesInABatchTheLastOneWins) {
  auto selection = Make(), expected = Make();
  std::mt19937_64 random(3);
  std::vector<SlotState> batch;
  std::map<uint32_t, SlotState> last;
  for (uint32_t i = 0; i < 20000; ++i) {
    const uint32_t slot = static_cast<uint32_t>(random() % 90);
    SlotState state = random() % 4 == 0 ? Free(slot) : Held(slot, random() % 50, i);
    state.key = state.held * (random() | 1);
    batch.push_back(state);
    last[slot] = state;
  }
  ASSERT_TRUE(selection->Apply(batch, nullptr).ok());
  std::vector<SlotState> distinct;
  for (const auto& [slot, state] : last) distinct.push_back(state);
  ASSERT_TRUE(expected->Apply(distinct, nullptr).ok());
  EXPECT_EQ(selection->size(), expected->size());
  EXPECT_TRUE(Draw(*selection, 5000, 0.4, 1) == Draw(*expected, 5000, 0.4, 1));
}

TEST_P(SelectionTest, DrawsContinueWhereTheLastOnesEnded) {
  auto selection = Make();
  ASSERT_TRUE(selection->Apply(StatesOf(std::vector<double>(300, 1.5)), nullptr).ok());
  const Draws all = Draw(*selection, 101, 0, 9, 5);
  Draws first = Draw(*selection, 50, 0, 9, 5);
  const Draws second = Draw(*selection, 51);
  first.slots.insert(first.slots.end(), second.slots.begin(), second.slots.end());
  EXPECT_EQ(first.slots, all.slots);
  EXPECT_EQ(Draw(*selection, 101, 0, 10, 5).slots == all.slots, IsOrdered());
}

TEST_P(SelectionTest, OneItemIsAlwaysDrawn) {
  for (const uint32_t slot : {0u, 31u, 32u, 1023u, 5000u, 70000u}) {
    for (const double priority : {1.0, 0.0, 1e-310, 1e300}) {
      auto selection = Make();
      ASSERT_TRUE(selection->Apply({Held(slot, priority)}, nullptr).ok());
      const Draws draws = Draw(*selection, 40, 0.6, 2);
      EXPECT_EQ(draws.slots, std::vector<uint32_t>(40, slot));
      EXPECT_EQ(draws.probabilities, std::vector<double>(40, 1.0));
      EXPECT_EQ(draws.weights, std::vector<float>(40, 1.0f));
    }
  }
}

TEST_P(SelectionTest, RefusesWhatItCannotDoAndStaysAsItWas) {
  auto selection = Make();
  DrawOutput output;
  EXPECT_EQ(selection->Draw(1, 0, output, nullptr).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(selection->Apply({Held(3, 1, 0), Held(4, 2, 1)}, nullptr).ok());
  const Draws before = Draw(*selection, 50, 0, 1);
  const auto refused = [&](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(selection->size(), 2u);
    EXPECT_TRUE(Draw(*selection, 50, 0, 1) == before);
  };
  // The faulty state comes after a good one.
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double priority : {infinity, -infinity, std::nan("")}) {
    refused(selection->Apply({Held(3, 9), Held(5, priority)}, nullptr));
  }
  if (IsWeighted()) refused(selection->Apply({Held(3, 9), Held(4, -1)}, nullptr));
  refused(selection->Apply({Held(3, 9), Held(kNoSlot, 1)}, nullptr));
  SlotState odd = Held(4, 9);
  odd.held = 2;
  refused(selection->Apply({Held(3, 9), odd}, nullptr));
  refused(selection->Draw(0, 0, output, nullptr));
  refused(selection->Draw((1u << 28) + 1, 0, output, nullptr));
  refused(selection->Draw(1, -0.5, output, nullptr));
  refused(selection->Draw(1, infinity, output, nullptr));
  refused(selection->Draw(1, std::nan(""), output, nullptr));
  float weight;
  output.weights = &weight;
  refused(selection->Draw(1, 1, output, nullptr));
  EXPECT_TRUE(selection->Apply({}, nullptr).ok());
  EXPECT_TRUE(selection->Apply({Free(3), Free(4), Free(77)}, nullptr).ok());
  EXPECT_EQ(selection->Draw(1, 0, {}, nullptr).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(SelectionTest, GrowsWithWhatItHolds) {
  auto selection = Make(), at_once = Make();
  std::vector<SlotState> states;
  for (const uint32_t slot : {7u, 70u, 700u, 7000u, 70000u, 700000u, 6u, 60u}) {
    states.push_back(Held(slot, 1 + slot % 3, states.size()));
    ASSERT_TRUE(selection->Apply({&states.back(), 1}, nullptr).ok());
  }
  ASSERT_TRUE(at_once->Apply(states, nullptr).ok());
  EXPECT_GE(selection->capacity(), 700001u);
  EXPECT_TRUE(Draw(*selection, 500, 0.4, 3) == Draw(*at_once, 500, 0.4, 3));
}

// Draws among 200 items, a tenth of them of priority zero.
TEST_P(SelectionTest, FrequenciesMatchTheProbabilities) {
  auto selection = Make();
  selectors::testing::Model model(GetParam().options);
  for (uint32_t slot = 0; slot < 200; ++slot) model.Insert(slot, slot % 10);
  std::vector<double> priorities(200);
  for (uint32_t slot = 0; slot < 200; ++slot) priorities[slot] = slot % 10;
  ASSERT_TRUE(selection->Apply(StatesOf(priorities), nullptr).ok());
  constexpr uint32_t kDraws = base::testing::Rounds(100000);
  std::map<selectors::Slot, size_t> counts;
  for (const uint32_t slot : Draw(*selection, kDraws, 0, 11).slots) ++counts[slot];
  selectors::testing::ExpectDrawnAs(model.Probabilities(), counts, kDraws);
}

TEST_P(WeightedSelectionTest, ZeroIsNeverDrawnWhileAnyIsPositive) {
  std::mt19937_64 random(4);
  for (int round = 0; round < base::testing::Rounds(60); ++round) {
    const size_t count = round % 3 == 0 ? 33 : round % 3 == 1 ? 1200 : 40000;
    const int spread = round % 2 == 0 ? 60 : 1800;
    std::vector<double> priorities(count);
    for (double& priority : priorities) {
      if (random() % 3 != 0) continue;
      const int exponent = static_cast<int>(random() % spread) - spread / 2;
      priority = std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52, exponent);
    }
    priorities[random() % count] = 0x1p-1074;
    auto selection = Make();
    ASSERT_TRUE(selection->Apply(StatesOf(priorities), nullptr).ok());
    for (const uint32_t slot : Draw(*selection, 2000, 0, round).slots) {
      ASSERT_LT(slot, count);
      ASSERT_GT(priorities[slot], 0);
    }
  }
}

// Integers sum exactly, so the draws of a random number can be told by counting from the left. (The
// left of a node is what the first lane holds.)
TEST_P(WeightedSelectionTest, AgreesWithAWalkOverCumulativeSums) {
  std::mt19937_64 random(6);
  std::vector<double> priorities(3000);
  for (double& priority : priorities) priority = static_cast<double>(random() % 5);
  auto selection = Make(selectors::PrioritizedOptions{1.0});
  ASSERT_TRUE(selection->Apply(StatesOf(priorities), nullptr).ok());
  std::vector<uint32_t> order = {0};
  for (size_t width = 1; width < selection->capacity(); width *= kFanout) {
    std::vector<uint32_t> next;
    for (const uint32_t node : order) {
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        for (uint32_t i = 0; i < 4; ++i) next.push_back(node * kFanout + ChildOf<double>(lane, i));
      }
    }
    order.swap(next);
  }
  const double total = std::accumulate(priorities.begin(), priorities.end(), 0.0);
  const Draws draws = Draw(*selection, 1000, 0, 8, 3);
  for (uint32_t i = 0; i < 1000; ++i) {
    double rest = base::Philox(8).At(3 + i) / 2048 * 0x1p-53 * total;
    size_t at = 0;
    while (order[at] >= priorities.size() || rest >= priorities[order[at]]) {
      if (order[at] < priorities.size()) rest -= priorities[order[at]];
      ++at;
    }
    ASSERT_EQ(draws.slots[i], order[at]) << i;
    ASSERT_EQ(draws.probabilities[i], priorities[order[at]] / total);
  }
}

// 10^7 updates in batches, with many duplicates.
TEST_P(WeightedSelectionTest, SumsDoNotDrift) {
  std::mt19937_64 random(12);
  constexpr uint32_t kSlots = 100000, kBatch = 20000;
  auto selection = Make();
  std::vector<double> priorities(kSlots, 1.0);
  ASSERT_TRUE(selection->Apply(StatesOf(priorities), nullptr).ok());
  std::vector<SlotState> batch(kBatch);
  for (int round = 0; round < base::testing::Rounds(500); ++round) {
    for (SlotState& state : batch) {
      const double priority =
          std::ldexp(static_cast<double>(random() >> 40), static_cast<int>(random() % 40) - 40);
      state = Held(static_cast<uint32_t>(random() % kSlots), priority);
      priorities[state.slot] = priority;
    }
    ASSERT_TRUE(selection->Apply(batch, nullptr).ok());
  }
  const TreeView<double>& tree = selection->view().weights;
  const auto total = [&] { return ToHost(*backend, tree.level[tree.top], 1)[0]; };
  const double exponent = selection->view().exponent;
  long double exact = 0;  // To 2^-47: ten times more precise than the bound.
  for (const double priority : priorities) {
    exact += priority == 0 ? 0 : Power(priority, exponent);
  }
  const double before = total();
  EXPECT_LE(std::abs(before - exact) / exact, std::expm1(5 * tree.top * std::log1p(0x1p-53L)));
  ASSERT_TRUE(selection->Resum(nullptr).ok());
  EXPECT_EQ(total(), before);
  auto fresh = Make();
  ASSERT_TRUE(fresh->Apply(StatesOf(priorities), nullptr).ok());
  EXPECT_TRUE(Draw(*fresh, 1000, 0.5, 1) == Draw(*selection, 1000, 0.5, 1));
}

TEST_P(SelectionTest, ResumRepairsOverwrittenSums) {
  auto selection = Make();
  ASSERT_TRUE(selection->Apply(StatesOf(std::vector<double>(5000, 2)), nullptr).ok());
  const Draws before = Draw(*selection, 300, 0, 4);
  const auto spoil = [&](const auto& tree) {
    for (int level = 1; level <= tree.top && tree.top > 0; ++level) {
      ASSERT_TRUE(backend->Fill(tree.level[level], 0x11, sizeof(*tree.level[0]), nullptr).ok());
    }
  };
  spoil(selection->view().counts);
  spoil(selection->view().weights);
  spoil(selection->view().ranks);
  ASSERT_TRUE(selection->Resum(nullptr).ok());
  EXPECT_TRUE(Draw(*selection, 300, 0, 4) == before);
}

TEST_P(SelectionTest, ImportanceWeightsAreThoseOfTheFormula) {
  auto selection = Make();
  std::vector<double> priorities(700);
  for (size_t i = 0; i < priorities.size(); ++i) priorities[i] = 0.1 + static_cast<double>(i % 97);
  ASSERT_TRUE(selection->Apply(StatesOf(priorities), nullptr).ok());
  for (const double beta : {0.0, 0.4, 1.0, 3.5}) {
    const Draws draws = Draw(*selection, 3000, beta, 21);
    double largest = 0;
    for (const double p : draws.probabilities)
      largest = std::max(largest, std::pow(700 * p, -beta));
    for (size_t i = 0; i < draws.weights.size(); ++i) {
      const double expected = std::pow(700 * draws.probabilities[i], -beta) / largest;
      ASSERT_NEAR(draws.weights[i] / expected, 1, 1e-6);
    }
    EXPECT_EQ(*std::max_element(draws.weights.begin(), draws.weights.end()), 1.0f);
  }
}

TEST_P(SelectionTest, TopGivesTheFirstOfTheOrder) {
  auto selection = Make();
  if (!IsOrdered()) {
    ASSERT_TRUE(selection->Apply({Held(1, 1)}, nullptr).ok());
    EXPECT_EQ(selection->Top(1, {}, nullptr).code(), absl::StatusCode::kInvalidArgument);
    return;
  }
  std::mt19937_64 random(13);
  selectors::testing::Model model(GetParam().options);
  std::vector<SlotState> states;
  for (uint32_t slot = 0; slot < 30000; ++slot) {
    if (slot % 7 == 3) continue;
    // Priorities of both signs that tie; orders unlike the slots'.
    const double priority = static_cast<double>(random() % 2001) - 1000;
    states.push_back(Held(slot, priority, (uint64_t{slot} * 7919) % 30011));
  }
  ASSERT_TRUE(selection->Apply(states, nullptr).ok());
  const Strategy strategy = selection->view().strategy;
  std::sort(states.begin(), states.end(), [&](const SlotState& a, const SlotState& b) {
    if (strategy == Strategy::kFifo) return a.order < b.order;
    if (strategy == Strategy::kLifo) return a.order > b.order;
    if (a.priority == b.priority) return a.order < b.order;
    return (strategy == Strategy::kMinHeap) == (a.priority < b.priority);
  });
  for (const uint32_t k : {1u, 2u, 31u, 32u, 33u, 500u, kMaxTop}) {
    const Draws top = Top(*selection, k);
    for (uint32_t i = 0; i < k; ++i) {
      ASSERT_EQ(top.slots[i], states[i].slot) << "k " << k << ", place " << i;
      ASSERT_EQ(top.keys[i], states[i].key);
      ASSERT_EQ(top.probabilities[i], 1);
      ASSERT_EQ(top.weights[i], 1);
    }
  }
  EXPECT_EQ(Draw(*selection, 1).slots[0], states[0].slot);
  EXPECT_EQ(selection->Top(0, {}, nullptr).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(selection->Top(kMaxTop + 1, {}, nullptr).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(selection->Clear(nullptr).ok());
  ASSERT_TRUE(selection->Apply({Held(9, 1, 0), Held(5, 1, 1)}, nullptr).ok());
  EXPECT_EQ(selection->Top(3, {}, nullptr).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Top(*selection, 2).slots.size(), 2u);
}

// A large selection with few and many changes at a time: every level, and levels that are
// recomputed whole.
TEST_P(SelectionTest, EqualsTheTwinOnAMillionSlots) {
  std::mt19937_64 random(14);
  constexpr uint32_t kSlots = base::testing::Rounds(1 << 20);
  auto selection = Make(), twin = MakeTwin();
  std::vector<SlotState> states;
  for (uint32_t slot = 0; slot < kSlots + 70000; ++slot) {
    const uint32_t at = slot % kSlots;  // More than are written at once; the last ones again.
    states.push_back(Held(at, static_cast<double>(random() >> 11) * 0x1p-40, slot));
  }
  for (auto* each : {&selection, &twin}) ASSERT_TRUE((*each)->Apply(states, nullptr).ok());
  for (const size_t batch : {1u, 50u, 4096u, 60000u}) {
    states.clear();
    for (size_t i = 0; i < batch; ++i) {
      const uint32_t slot = static_cast<uint32_t>(random() % kSlots);
      states.push_back(random() % 5 == 0
                           ? Free(slot)
                           : Held(slot, static_cast<double>(random() % 1000), random()));
    }
    for (auto* each : {&selection, &twin}) ASSERT_TRUE((*each)->Apply(states, nullptr).ok());
    ASSERT_TRUE(Draw(*selection, 30000, 0.6, batch) == Draw(*twin, 30000, 0.6, batch));
  }
}

}  // namespace gear_reverb::device::testing
