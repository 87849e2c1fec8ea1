// The contract of Selector, checked on every strategy.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "native/selectors/selector.h"
#include "native/selectors/testing_util.h"

namespace gear_reverb::selectors {
namespace {

using absl::StatusCode;
using testing::Model;
using Slots = std::vector<Slot>;
using Priorities = std::vector<double>;

class SelectorTest : public ::testing::TestWithParam<SelectorOptions> {
 protected:
  std::unique_ptr<Selector> Make() const { return MakeSelector(GetParam()).value(); }

  static std::vector<Draw> Sample(const Selector& selector, size_t n, uint64_t seed = 7) {
    base::Philox random(seed);
    std::vector<Draw> draws(n);
    EXPECT_TRUE(selector.Sample(random, absl::MakeSpan(draws)).ok());
    return draws;
  }

  // Draws one at a time from the same stream.
  static std::vector<Draw> SampleSingly(const Selector& selector, size_t n, uint64_t seed = 7) {
    base::Philox random(seed);
    std::vector<Draw> draws(n);
    for (Draw& draw : draws) EXPECT_TRUE(selector.Sample(random, {&draw, 1}).ok());
    return draws;
  }
};

INSTANTIATE_TEST_SUITE_P(
    All, SelectorTest,
    ::testing::Values(SelectorOptions(FifoOptions{}), SelectorOptions(LifoOptions{}),
                      SelectorOptions(UniformOptions{}), SelectorOptions(PrioritizedOptions{0.7}),
                      SelectorOptions(HeapOptions{true}), SelectorOptions(HeapOptions{false})),
    [](const ::testing::TestParamInfo<SelectorOptions>& info) {
      const std::string name = ToString(info.param);
      return name.substr(0, name.find('('));
    });

TEST_P(SelectorTest, HasTheOptionsItWasMadeOf) {
  EXPECT_EQ(ToString(Make()->options()), ToString(GetParam()));
  EXPECT_EQ(Make()->size(), 0u);
}

// Random operations on a selector in batches, on a second one singly, and on the model.
TEST_P(SelectorTest, FollowsTheModelAndBatchEqualsSequence) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
    // Few distinct values, so that priorities tie; zero among them.
    const auto priority = [&] { return static_cast<double>(below(6)) / 2; };
    const size_t slot_count = seed % 2 == 0 ? 40 : 700;
    auto batch = Make(), single = Make();
    Model model(GetParam());
    for (int step = 0; step < 1500; ++step) {
      Slots slots;
      Priorities priorities;
      const size_t kind = below(100);
      if (kind < 40) {
        for (size_t i = below(12); i > 0; --i) {
          const Slot slot = static_cast<Slot>(below(slot_count));
          if (!model.Contains(slot) && std::count(slots.begin(), slots.end(), slot) == 0) {
            slots.push_back(slot);
            priorities.push_back(priority());
          }
        }
        ASSERT_TRUE(batch->Insert(slots, priorities).ok());
        for (size_t i = 0; i < slots.size(); ++i) {
          ASSERT_TRUE(single->Insert({&slots[i], 1}, {&priorities[i], 1}).ok());
          model.Insert(slots[i], priorities[i]);
        }
      } else if (kind < 65) {
        const Slots present = model.Slots();
        for (size_t i = present.empty() ? 0 : below(12); i > 0; --i) {
          slots.push_back(present[below(present.size())]);  // Repeats: the last one counts.
          priorities.push_back(priority());
        }
        ASSERT_TRUE(batch->Update(slots, priorities).ok());
        for (size_t i = 0; i < slots.size(); ++i) {
          ASSERT_TRUE(single->Update({&slots[i], 1}, {&priorities[i], 1}).ok());
          model.Update(slots[i], priorities[i]);
        }
      } else if (kind < 75) {
        slots = model.Slots();
        std::shuffle(slots.begin(), slots.end(), random);
        slots.resize(std::min(slots.size(), below(12)));
        if (below(2) == 0) batch->NextOut(absl::MakeSpan(slots));  // As a full table does.
        for (size_t i = 0; i < slots.size(); ++i) priorities.push_back(priority());
        ASSERT_TRUE(batch->Replace(slots, priorities).ok());
        for (size_t i = 0; i < slots.size(); ++i) {
          ASSERT_TRUE(single->Replace({&slots[i], 1}, {&priorities[i], 1}).ok());
          model.Erase(slots[i]);
          model.Insert(slots[i], priorities[i]);
        }
      } else if (kind < 99) {
        slots = model.Slots();
        std::shuffle(slots.begin(), slots.end(), random);
        slots.resize(std::min(slots.size(), below(12)));
        ASSERT_TRUE(batch->Erase(slots).ok());
        for (const Slot& slot : slots) {
          ASSERT_TRUE(single->Erase({&slot, 1}).ok());
          model.Erase(slot);
        }
      } else {
        batch->Clear();
        single->Clear();
        model.Clear();
      }

      ASSERT_EQ(batch->size(), model.size());
      ASSERT_EQ(single->size(), model.size());
      if (model.size() == 0) continue;
      const size_t n = step % 50 == 0 ? 150 : 5;
      const std::vector<Draw> draws = Sample(*batch, n, step);
      ASSERT_TRUE(draws == SampleSingly(*single, n, step));
      const std::map<Slot, double> expected = model.Probabilities();
      for (const Draw& draw : draws) {
        ASSERT_TRUE(expected.contains(draw.slot));
        ASSERT_GT(expected.at(draw.slot), 0);
        ASSERT_NEAR(draw.probability, expected.at(draw.slot), 1e-14);
      }
    }
  }
}

TEST_P(SelectorTest, TellsWhatGoesOutNextWhereThatIsCertain) {
  auto selector = Make();
  ASSERT_TRUE(selector->Insert({5, 2, 9}, {1.0, 3.0, 2.0}).ok());
  ASSERT_TRUE(selector->Replace({5}, {1.0}).ok());
  EXPECT_TRUE(selector->NextOut({}));
  Slots slots(2);
  const bool fifo = std::holds_alternative<FifoOptions>(GetParam());
  ASSERT_EQ(selector->NextOut(absl::MakeSpan(slots)), fifo);
  EXPECT_EQ(slots, fifo ? (Slots{2, 9}) : Slots(2));
}

TEST_P(SelectorTest, DrawsDependOnlyOnStateAndSeed) {
  auto selector = Make();
  Slots slots(500);
  Priorities priorities(500);
  for (size_t i = 0; i < 500; ++i) slots[i] = static_cast<Slot>(i), priorities[i] = 1 + i % 7;
  ASSERT_TRUE(selector->Insert(slots, priorities).ok());
  const std::vector<Draw> draws = Sample(*selector, 300);
  EXPECT_TRUE(draws == Sample(*selector, 300));  // Drawing changes nothing.
  EXPECT_EQ(draws == Sample(*selector, 300, 8), IsDeterministic(GetParam()));
}

TEST_P(SelectorTest, SamplesNothingFromNothing) {
  auto selector = Make();
  base::Philox random(1);
  Draw draw;
  EXPECT_EQ(selector->Sample(random, {&draw, 1}).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(random.position(), 0u);
  ASSERT_TRUE(selector->Insert({3}, {1.0}).ok());
  EXPECT_TRUE(selector->Sample(random, {}).ok());
  EXPECT_EQ(random.position(), 0u);
  ASSERT_TRUE(selector->Erase({3}).ok());
  EXPECT_EQ(selector->Sample(random, {&draw, 1}).code(), StatusCode::kFailedPrecondition);
}

TEST_P(SelectorTest, TakesEmptyBatches) {
  auto selector = Make();
  EXPECT_TRUE(selector->Insert({}, {}).ok());
  EXPECT_TRUE(selector->Update({}, {}).ok());
  EXPECT_TRUE(selector->Erase({}).ok());
  EXPECT_EQ(selector->size(), 0u);
}

TEST_P(SelectorTest, ErrorsLeaveTheStateUntouched) {
  auto selector = Make();
  ASSERT_TRUE(selector->Insert({5, 2, 9, 70}, {1.0, 3.0, 2.0, 0.0}).ok());
  const std::vector<Draw> before = Sample(*selector, 50);
  const auto expect_refused = [&](const absl::Status& status, StatusCode code) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_FALSE(status.message().empty());
    EXPECT_EQ(selector->size(), 4u);
    EXPECT_TRUE(before == Sample(*selector, 50));
  };
  // The faulty element comes last, after good ones.
  expect_refused(selector->Insert({1, 3, 9}, {9.0, 9.0, 9.0}), StatusCode::kAlreadyExists);
  expect_refused(selector->Insert({1, 3, 1}, {9.0, 9.0, 9.0}), StatusCode::kAlreadyExists);
  expect_refused(selector->Insert({1, 3}, {9.0}), StatusCode::kInvalidArgument);
  expect_refused(selector->Insert({}, {9.0}), StatusCode::kInvalidArgument);
  expect_refused(selector->Insert({1, UINT32_MAX}, {9.0, 9.0}), StatusCode::kInvalidArgument);
  expect_refused(selector->Update({5, 2, 1}, {9.0, 0.0, 9.0}), StatusCode::kNotFound);
  expect_refused(selector->Update({5, 4000000000}, {9.0, 0.0}), StatusCode::kNotFound);
  expect_refused(selector->Update({5, 2}, {9.0}), StatusCode::kInvalidArgument);
  expect_refused(selector->Erase({5, 2, 1}), StatusCode::kNotFound);
  expect_refused(selector->Erase({5, 2, 5}), StatusCode::kNotFound);
  expect_refused(selector->Erase({5, 4000000000}), StatusCode::kNotFound);
  const double bad[] = {
      -1.0, -std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::infinity(),
      -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
  for (const double priority : bad) {
    if (std::isfinite(priority) && TakesNegative(GetParam())) continue;
    expect_refused(selector->Insert({1, 3}, {9.0, priority}), StatusCode::kInvalidArgument);
    expect_refused(selector->Update({5, 2}, {9.0, priority}), StatusCode::kInvalidArgument);
  }
  // What was refused can still be done.
  EXPECT_TRUE(selector->Insert({1, 3}, {9.0, -0.0}).ok());
  EXPECT_TRUE(selector->Erase({5, 2, 9, 70, 1, 3}).ok());
  EXPECT_EQ(selector->size(), 0u);
}

TEST_P(SelectorTest, ClearForgetsEverything) {
  auto selector = Make(), fresh = Make();
  Slots slots(3000);
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<Slot>(2 * i);
  ASSERT_TRUE(selector->Insert(slots, Priorities(slots.size(), 2.5)).ok());
  selector->Clear();
  EXPECT_EQ(selector->size(), 0u);
  EXPECT_EQ(selector->Erase({4}).code(), StatusCode::kNotFound);
  for (Selector* each : {selector.get(), fresh.get()}) {
    ASSERT_TRUE(each->Insert({8, 4, 6}, {1.0, 2.0, 2.0}).ok());
  }
  EXPECT_TRUE(Sample(*selector, 100) == Sample(*fresh, 100));
}

TEST_P(SelectorTest, ReusedSlotHasNothingOfItsPast) {
  auto selector = Make();
  ASSERT_TRUE(selector->Insert({0, 1, 2}, {5.0, 1.0, 3.0}).ok());
  ASSERT_TRUE(selector->Erase({1}).ok());
  ASSERT_TRUE(selector->Insert({1}, {4.0}).ok());
  Model model(GetParam());
  model.Insert(0, 5.0);
  model.Insert(2, 3.0);
  model.Insert(1, 4.0);
  const std::map<Slot, double> expected = model.Probabilities();
  for (const Draw& draw : Sample(*selector, 100)) {
    EXPECT_NEAR(draw.probability, expected.at(draw.slot), 1e-14);
  }
}

TEST_P(SelectorTest, GrowsFromAnySlotAndDrainsInTheModelsOrder) {
  auto selector = Make();
  Model model(GetParam());
  // Far apart, so that every insert grows the arrays.
  for (const Slot slot : {7u, 70u, 700u, 7000u, 70000u, 700000u, 7000000u, 6u, 60u}) {
    const double priority = 1 + slot % 3;
    ASSERT_TRUE(selector->Insert({slot}, {priority}).ok());
    model.Insert(slot, priority);
  }
  while (model.size() > 0) {
    const Draw draw = Sample(*selector, 1)[0];
    ASSERT_NEAR(draw.probability, model.Probabilities()[draw.slot], 1e-14);
    ASSERT_TRUE(selector->Erase({draw.slot}).ok());
    model.Erase(draw.slot);
  }
  EXPECT_EQ(selector->size(), 0u);
}

// 100,000 draws among 200 items against the model's probabilities.
TEST_P(SelectorTest, FrequenciesMatchTheProbabilities) {
  auto selector = Make();
  Model model(GetParam());
  for (Slot slot = 0; slot < 200; ++slot) {
    const double priority = slot % 10;
    ASSERT_TRUE(selector->Insert({slot}, {priority}).ok());
    model.Insert(slot, priority);
  }
  constexpr size_t kDraws = 100000;
  std::map<Slot, size_t> counts;
  for (const Draw& draw : Sample(*selector, kDraws)) ++counts[draw.slot];
  testing::ExpectDrawnAs(model.Probabilities(), counts, kDraws);
}

}  // namespace
}  // namespace gear_reverb::selectors
