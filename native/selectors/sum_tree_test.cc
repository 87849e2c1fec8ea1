#include "native/selectors/sum_tree.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "native/base/testing_rounds.h"
#include "native/selectors/sum_tree_node.h"
#include "native/selectors/testing_util.h"

namespace gear_reverb::selectors {
namespace {

// The bound that the class states, for the largest number of levels.
const long double kRelativeError = std::expm1(32 * std::log1p(0x1p-53L));

SumTree TreeOf(const std::vector<double>& weights) {
  SumTree tree;
  std::vector<Slot> slots(weights.size());
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<Slot>(i);
  tree.Reserve(slots.size());
  tree.Assign(slots, weights);
  return tree;
}

std::vector<Draw> Sample(const SumTree& tree, size_t n, uint64_t seed = 1) {
  base::Philox random(seed);
  std::vector<Draw> draws(n);
  tree.Sample(random, absl::MakeSpan(draws));
  return draws;
}

// Exactly rounded up to 2^-64 relative: long double with compensation.
long double ExactSum(const std::vector<double>& values) {
  long double sum = 0, lost = 0;
  for (const double value : values) {
    const long double next = sum + value;
    lost += std::abs(sum) >= std::abs(static_cast<long double>(value)) ? (sum - next) + value
                                                                       : (value - next) + sum;
    sum = next;
  }
  return sum + lost;
}

// Children over many magnitudes and with zeros; targets at and around every cumulative sum.
TEST(SumTreeNodeTest, EveryTargetFindsAPositiveChildAndStaysInside) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 20000; ++round) {
    double child[16];
    const int spread = round % 3 == 0 ? 1 : round % 3 == 1 ? 60 : 1800;
    for (double& value : child) {
      value = random() % 3 == 0 ? 0.0
                                : std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52,
                                             static_cast<int>(random() % spread) - spread / 2);
    }
    const double sum = NodeSum(child);
    if (sum == 0) continue;
    std::vector<double> targets = {0, Below(sum), sum / 3, sum * 0.999};
    double cumulative = 0;
    for (size_t q = 0; q < 4; ++q) {
      for (size_t row = 0; row < 4; ++row) {
        cumulative += child[q + 4 * row];
        targets.insert(targets.end(), {cumulative, std::nextafter(cumulative, 0),
                                       std::nextafter(cumulative, 2 * sum)});
      }
    }
    for (const double target : targets) {
      if (!(target < sum)) continue;
      const Step step = FindChild(child, target);
      ASSERT_LT(step.index, 16u);
      ASSERT_GT(child[step.index], 0);
      ASSERT_GE(step.target, 0);
      ASSERT_LT(step.target, child[step.index]);
    }
  }
}

TEST(SumTreeNodeTest, ChildrenTakeTheirShareInColumnOrder) {
  double child[16];
  for (size_t i = 0; i < 16; ++i) child[i] = 1;
  for (size_t i = 0; i < 16; ++i) {
    const Step step = FindChild(child, static_cast<double>(i) + 0.25);
    EXPECT_EQ(step.index, i / 4 + 4 * (i % 4));
    EXPECT_EQ(step.target, 0.25);
  }
}

TEST(SumTreeTest, TotalIsExactForWholeNumbersAtEverySize) {
  for (const size_t n : {1u, 2u, 15u, 16u, 17u, 255u, 256u, 257u, 4096u, 4097u, 70000u}) {
    std::vector<double> weights(n);
    for (size_t i = 0; i < n; ++i) weights[i] = static_cast<double>(i % 97);
    const SumTree tree = TreeOf(weights);
    double sum = 0;
    for (const double weight : weights) sum += weight;
    EXPECT_EQ(tree.total(), sum) << n;
  }
}

TEST(SumTreeTest, IsTheSameHoweverItGrew) {
  std::mt19937_64 random(2);
  std::vector<double> weights(5000);
  for (double& weight : weights) weight = std::ldexp(static_cast<double>(random()), -40);
  const SumTree whole = TreeOf(weights);
  SumTree grown;
  for (size_t i = 0; i < weights.size(); ++i) {
    grown.Reserve(i + 1);
    const Slot slot = static_cast<Slot>(i);
    grown.Assign({&slot, 1}, {&weights[i], 1});
  }
  SumTree jumped;
  jumped.Reserve(3);
  jumped.Assign({0, 1, 2}, absl::MakeConstSpan(weights).first(3));
  jumped.Reserve(3000000);  // Several levels at once.
  EXPECT_EQ(jumped.total(), TreeOf({weights[0], weights[1], weights[2]}).total());
  for (size_t i = 3; i < weights.size(); ++i) {
    const Slot slot = static_cast<Slot>(i);
    jumped.Assign({&slot, 1}, {&weights[i], 1});
  }
  EXPECT_EQ(grown.total(), whole.total());
  EXPECT_EQ(jumped.total(), whole.total());
}

TEST(SumTreeTest, LastAssignmentOfARepeatedSlotCounts) {
  SumTree tree = TreeOf(std::vector<double>(300, 1.0));
  tree.Assign({7, 7, 280, 7}, {5.0, 9.0, 0.0, 2.0});
  EXPECT_EQ(tree.weight(7), 2);
  EXPECT_EQ(tree.total(), 300);
}

// Ten million random updates over weights of many magnitudes: the tree is bit for bit the tree of
// the final weights, and its total within the stated bound of the exact sum.
TEST(SumTreeTest, ErrorDoesNotGrowWithUpdates) {
  constexpr size_t kSlots = 100000, kUpdates = base::testing::Rounds(10000000), kBatch = 250;
  std::mt19937_64 random(3);
  std::vector<double> weights(kSlots, 0.0);
  SumTree tree = TreeOf(weights);
  std::vector<Slot> slots(kBatch);
  std::vector<double> batch(kBatch);
  for (size_t done = 0; done < kUpdates; done += kBatch) {
    for (size_t i = 0; i < kBatch; ++i) {
      const uint64_t bits = random();
      slots[i] = static_cast<Slot>((bits >> 32) * kSlots >> 32);
      // Between 2^-20 and 2^40, or zero: sums lose the small ones if they are ever adjusted.
      const double fraction = 0x1p-24 * static_cast<double>(bits & 0xffffff);
      batch[i] = bits % 8 == 0 ? 0.0 : std::ldexp(1 + fraction, static_cast<int>(bits % 61) - 20);
      weights[slots[i]] = batch[i];
    }
    tree.Assign(slots, batch);
    if (done % (kUpdates / 10) != 0) continue;
    const long double exact = ExactSum(weights);
    ASSERT_LE(std::abs(tree.total() - exact), kRelativeError * exact);
  }
  EXPECT_EQ(tree.total(), TreeOf(weights).total());
  EXPECT_LE(std::abs(tree.total() - ExactSum(weights)), kRelativeError * ExactSum(weights));
  std::fill(batch.begin(), batch.end(), 0.0);
  for (size_t i = 0; i < kSlots; i += kBatch) {
    for (size_t j = 0; j < kBatch; ++j) slots[j] = static_cast<Slot>(i + j);
    tree.Assign(slots, batch);
  }
  EXPECT_EQ(tree.total(), 0);  // Nothing is left over, not even a rounding error.
}

TEST(SumTreeTest, NeverReturnsAZeroWeight) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> weights(1 + random() % 5000, 0.0);
    // From a single positive weight to about half of them, over up to 1200 binary magnitudes.
    for (size_t left = 1 + random() % (1 + weights.size() / 2); left > 0; --left) {
      weights[random() % weights.size()] = std::ldexp(1.0, static_cast<int>(random() % 1200) - 600);
    }
    const SumTree tree = TreeOf(weights);
    for (const Draw& draw : Sample(tree, 2000, round)) {
      ASSERT_LT(draw.slot, weights.size());
      ASSERT_GT(weights[draw.slot], 0);
      ASSERT_EQ(draw.probability, weights[draw.slot] / tree.total());
    }
  }
}

TEST(SumTreeTest, DrawsAtTheLimitsOfTheRange) {
  for (const double weight : {SumTree::kMinWeight, SumTree::kMaxWeight}) {
    const SumTree tree = TreeOf(std::vector<double>(1000, weight));
    EXPECT_TRUE(std::isfinite(tree.total()));
    std::set<Slot> seen;
    for (const Draw& draw : Sample(tree, 20000)) {
      seen.insert(draw.slot);
      EXPECT_DOUBLE_EQ(draw.probability, 1e-3);
    }
    EXPECT_EQ(seen.size(), 1000u);
  }
  // As many of the largest weight as there are slots still sum to something finite.
  EXPECT_TRUE(std::isfinite(SumTree::kMaxWeight * 0x1p32));
}

TEST(SumTreeTest, FrequenciesMatchTheWeights) {
  std::vector<double> weights(3000);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<double>(1 + i % 13);
  const SumTree tree = TreeOf(weights);
  constexpr size_t kDraws = 2000000;
  std::vector<double> counts(weights.size(), 0.0);
  for (const Draw& draw : Sample(tree, kDraws)) ++counts[draw.slot];
  double chi_squared = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double expected = weights[i] / tree.total() * kDraws;
    chi_squared += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chi_squared, testing::ChiSquaredBound(weights.size() - 1));
}

TEST(SumTreeTest, HoldsAHundredMillionItems) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "Too slow under a sanitizer; runs in plain builds.";
#else
  const double free_bytes =
      static_cast<double>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (free_bytes < 2e9) GTEST_SKIP() << "Needs 2 GB of free memory.";
  constexpr size_t kSlots = 100000000, kBatch = 1000;
  SumTree tree;
  std::vector<Slot> slots(kBatch);
  std::vector<double> weights(kBatch);
  for (size_t i = 0; i < kSlots; i += kBatch) {
    for (size_t j = 0; j < kBatch; ++j) {
      slots[j] = static_cast<Slot>(i + j);
      weights[j] = static_cast<double>((i + j) % 4);
    }
    tree.Reserve(i + kBatch);
    tree.Assign(slots, weights);
  }
  EXPECT_EQ(tree.total(), 1.5 * kSlots);
  double mean = 0;
  for (const Draw& draw : Sample(tree, 100000)) {
    ASSERT_NE(draw.slot % 4, 0u);
    ASSERT_EQ(draw.probability, (draw.slot % 4) / (1.5 * kSlots));
    mean += draw.slot / 100000.0;
  }
  EXPECT_NEAR(mean / kSlots, 0.5, 0.005);
#endif
}

}  // namespace
}  // namespace gear_reverb::selectors
