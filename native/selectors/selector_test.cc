// What is particular to one strategy; the common contract is in conformance_test.cc.
#include "native/selectors/selector.h"

#include <limits>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gear_reverb::selectors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Selector> MakeWith(const SelectorOptions& options,
                                   const std::vector<double>& priorities) {
  auto selector = MakeSelector(options).value();
  std::vector<Slot> slots(priorities.size());
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<Slot>(i);
  EXPECT_TRUE(selector->Insert(slots, priorities).ok());
  return selector;
}

std::vector<Draw> Sample(const Selector& selector, size_t n) {
  base::Philox random(11);
  std::vector<Draw> draws(n);
  EXPECT_TRUE(selector.Sample(random, absl::MakeSpan(draws)).ok());
  return draws;
}

std::vector<Slot> Drain(Selector& selector) {
  std::vector<Slot> order;
  while (selector.size() > 0) {
    order.push_back(Sample(selector, 1)[0].slot);
    EXPECT_TRUE(selector.Erase({order.back()}).ok());
  }
  return order;
}

// The slots drawn in 400 draws, all of which must report `probability`.
std::set<Slot> Support(const Selector& selector, double probability) {
  std::set<Slot> support;
  for (const Draw& draw : Sample(selector, 400)) {
    support.insert(draw.slot);
    EXPECT_DOUBLE_EQ(draw.probability, probability);
  }
  return support;
}

TEST(SelectorOptionsTest, SaysWhatItIs) {
  EXPECT_EQ(ToString(FifoOptions{}), "Fifo");
  EXPECT_EQ(ToString(LifoOptions{}), "Lifo");
  EXPECT_EQ(ToString(UniformOptions{}), "Uniform");
  EXPECT_EQ(ToString(PrioritizedOptions{0.8}), "Prioritized(priority_exponent=0.8)");
  EXPECT_EQ(ToString(HeapOptions{true}), "MinHeap");
  EXPECT_EQ(ToString(HeapOptions{false}), "MaxHeap");
  EXPECT_TRUE(IsDeterministic(FifoOptions{}));
  EXPECT_TRUE(IsDeterministic(LifoOptions{}));
  EXPECT_TRUE(IsDeterministic(HeapOptions{true}));
  EXPECT_FALSE(IsDeterministic(UniformOptions{}));
  EXPECT_FALSE(IsDeterministic(PrioritizedOptions{0}));
}

TEST(PrioritizedSelectorTest, RejectsBadExponents) {
  for (const double exponent :
       {-0.1, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    const auto selector = MakeSelector(PrioritizedOptions{exponent});
    EXPECT_EQ(selector.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(selector.status().message()), HasSubstr("priority_exponent"));
  }
}

// Reverb's rules for zero, as observed: all zero is uniform, zero beside positive is never drawn,
// and zero to the power zero is zero.
TEST(PrioritizedSelectorTest, TreatsZeroPrioritiesAsReverbDoes) {
  for (const double exponent : {0.0, 0.6, 1.0}) {
    EXPECT_THAT(Support(*MakeWith(PrioritizedOptions{exponent}, {0, 0, 0, 0}), 0.25),
                ElementsAre(0, 1, 2, 3));
  }
  EXPECT_THAT(Support(*MakeWith(PrioritizedOptions{0.0}, {0, 4, 9, 16}), 1.0 / 3),
              ElementsAre(1, 2, 3));
  auto selector = MakeWith(PrioritizedOptions{1.0}, {0, 1, 0, 3});
  ASSERT_TRUE(selector->Update({1, 3}, {0.0, 0.0}).ok());
  EXPECT_THAT(Support(*selector, 0.25), ElementsAre(0, 1, 2, 3));
  ASSERT_TRUE(selector->Update({2}, {1e-300}).ok());
  EXPECT_THAT(Support(*selector, 1.0), ElementsAre(2));
  ASSERT_TRUE(selector->Erase({2}).ok());
  EXPECT_THAT(Support(*selector, 1.0 / 3), ElementsAre(0, 1, 3));
}

TEST(PrioritizedSelectorTest, ExtremePrioritiesNeitherVanishNorOverflow) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double huge = std::numeric_limits<double>::max();
  EXPECT_THAT(Support(*MakeWith(PrioritizedOptions{2.0}, {1e-300, 1e-300, 0}), 0.5),
              ElementsAre(0, 1));
  EXPECT_THAT(Support(*MakeWith(PrioritizedOptions{2.0}, {1e300, 1, 1e300}), 0.5),
              ElementsAre(0, 2));
  EXPECT_THAT(Support(*MakeWith(PrioritizedOptions{1.0}, {huge, huge, huge}), 1.0 / 3),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(Support(*MakeWith(PrioritizedOptions{1.0}, {tiny, 0, tiny}), 0.5), ElementsAre(0, 2));
  EXPECT_THAT(Support(*MakeWith(PrioritizedOptions{1000.0}, {0, 0.5}), 1.0), ElementsAre(1));
  EXPECT_THAT(Support(*MakeWith(PrioritizedOptions{0.0}, {tiny, huge}), 0.5), ElementsAre(0, 1));
}

// The orders that Reverb drains these priorities in, as observed.
TEST(HeapSelectorTest, TiesGoToTheOldest) {
  const std::vector<double> priorities = {2, 5, 5, 1, 1, 5, 2, 2, 1};
  EXPECT_THAT(Drain(*MakeWith(HeapOptions{true}, priorities)),
              ElementsAre(3, 4, 8, 0, 6, 7, 1, 2, 5));
  EXPECT_THAT(Drain(*MakeWith(HeapOptions{false}, priorities)),
              ElementsAre(1, 2, 5, 0, 6, 7, 3, 4, 8));
}

TEST(HeapSelectorTest, UpdateMakesAnItemTheYoungestOfItsPriority) {
  for (const bool min_heap : {true, false}) {
    auto selector = MakeWith(HeapOptions{min_heap}, {1, 1, 1, 1});
    ASSERT_TRUE(selector->Update({0, 2}, {1.0, 1.0}).ok());
    EXPECT_THAT(Drain(*selector), ElementsAre(1, 3, 0, 2));
  }
}

TEST(OrderSelectorTest, UpdatesDoNotChangeTheOrder) {
  auto fifo = MakeWith(FifoOptions{}, {1, 2, 3, 4});
  auto lifo = MakeWith(LifoOptions{}, {1, 2, 3, 4});
  for (Selector* selector : {fifo.get(), lifo.get()}) {
    ASSERT_TRUE(selector->Update({0, 3, 1}, {9.0, 0.0, 9.0}).ok());
    ASSERT_TRUE(selector->Erase({2}).ok());
  }
  EXPECT_THAT(Drain(*fifo), ElementsAre(0, 1, 3));
  EXPECT_THAT(Drain(*lifo), ElementsAre(3, 1, 0));
}

}  // namespace
}  // namespace gear_reverb::selectors
