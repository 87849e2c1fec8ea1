// The contract of a mirror, for every backend and strategy: instantiate TableMirrorTest over
// Cases(backend).
#pragma once

#include <map>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "native/device/selection_test_util.h"
#include "native/device/table_mirror.h"
#include "native/table/table_test_util.h"

namespace gear_reverb::device::testing {

// The items of a mirror, read from its backend's memory: key by slot.
inline std::map<uint32_t, uint64_t> ItemsOf(const Selection& selection) {
  const SelectionView& view = selection.view();
  std::map<uint32_t, uint64_t> items;
  if (selection.capacity() == 0) return items;
  SelectBackend& backend = *selection.backend();
  const auto keys = ToHost(backend, view.keys, selection.capacity());
  const auto visit = [&](const auto& tree, auto holds) {
    const auto leaves = ToHost(backend, tree.level[0], selection.capacity());
    for (uint32_t slot = 0; slot < leaves.size(); ++slot) {
      if (holds(leaves[slot])) items[slot] = keys[slot];
    }
  };
  if (view.ranks.top > 0) {
    visit(view.ranks, [](const Rank& rank) { return rank.IsItem(); });
  } else {
    visit(view.counts, [](uint32_t count) { return count == 1; });
  }
  return items;
}

class TableMirrorTest : public SelectionTest {
 protected:
  void Open(int64_t max_size, rate_limiter::RateLimiterOptions limiter = table::MinSize(1)) {
    table::TableOptions options = table::Options(max_size);
    options.sampler = GetParam().options;
    options.rate_limiter = limiter;
    table = table::Table::Create(std::move(options)).value();
  }
  std::unique_ptr<TableMirror> Mirror(std::shared_ptr<SelectBackend> where) const {
    return TableMirror::Create(table, std::move(where), 5).value();
  }
  // As many draws as the table allows, at most `n`; none if it allows none now.
  static absl::StatusOr<Draws> DrawFrom(TableMirror& mirror, uint32_t n,
                                        absl::Time deadline = absl::InfinitePast()) {
    Draws draws;
    uint32_t granted = 0;
    const absl::Status status = Collect(
        *mirror.selection().backend(), n,
        [&](const DrawOutput& output) {
          const auto drawn = mirror.Draw(n, 0.5, deadline, output, nullptr);
          if (drawn.ok()) granted = *drawn;
          return drawn.status();
        },
        &draws);
    if (!status.ok()) return status;
    draws.slots.resize(granted);
    draws.keys.resize(granted);
    draws.probabilities.resize(granted);
    draws.weights.resize(granted);
    return draws;
  }
  bool Insert(uint64_t key, double priority) {
    const absl::Status status =
        table->InsertOrAssign(table::MakeItem(key, priority), absl::InfinitePast());
    EXPECT_TRUE(status.ok() || absl::IsDeadlineExceeded(status)) << status;
    return status.ok();
  }
  // The probability of every key, as the strategy has it.
  std::map<uint64_t, double> Expected() const {
    selectors::testing::Model model(GetParam().options);
    std::vector<uint64_t> keys;
    for (const table::Item& item : table->Snapshot().items) {
      model.Insert(static_cast<uint32_t>(keys.size()), item.priority);
      keys.push_back(item.key);
    }
    std::map<uint64_t, double> expected;
    for (const auto& [slot, p] : model.Probabilities()) expected[keys[slot]] = p;
    return expected;
  }

  std::shared_ptr<table::Table> table;
};

// Random inserts, assignments, updates, deletions, evictions and resets, seen by a mirror on the
// backend under test, by one on the CPU, and by one that comes later.
TEST_P(TableMirrorTest, HoldsWhatTheTableHolds) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    std::mt19937_64 random(seed);
    Open(seed == 0 ? 20 : 700);
    const auto mirror = Mirror(backend), twin = Mirror(MakeSelectTwin());
    for (int round = 0; round < base::testing::Rounds(1200) / 10; ++round) {
      for (size_t i = random() % 40; i > 0; --i) {
        const uint64_t key = random() % 1000;
        const double priority = static_cast<double>(random() % 8) / 2;
        switch (random() % 12) {
          case 0: ASSERT_TRUE(table->MutateItems({}, {key, key + 1}).ok()); break;
          case 1:
          case 2:
            ASSERT_TRUE(
                table->MutateItems({{key, priority}, {key + 1, 1}, {key, priority + 1}}, {}).ok());
            break;
          case 3:
            if (random() % 30 == 0) table->Reset();
            break;
          default: Insert(key, priority);
        }
      }
      if (round % 40 == 13) {  // Behind, over a reset.
        table->Reset();
        Insert(round, 1);
      }
      if (random() % 3 == 0) continue;  // Changes pile up.
      const auto draws = DrawFrom(*mirror, 20);
      ASSERT_EQ(draws.ok(), table->size() > 0) << draws.status();
      ASSERT_TRUE(mirror->Follow(nullptr).ok());
      std::map<uint64_t, double> keys;
      for (const auto& item : table->Snapshot().items) keys[item.key] = item.priority;
      const auto items = ItemsOf(mirror->selection());
      ASSERT_EQ(items.size(), keys.size());
      for (const auto& [slot, key] : items) ASSERT_TRUE(keys.contains(key));
      if (!draws.ok()) continue;
      const auto same = DrawFrom(*twin, 20);
      ASSERT_TRUE(same.ok() && *draws == *same);
      if (!IsHeap()) {
        const std::map<uint64_t, double> expected = Expected();
        for (size_t i = 0; i < 20; ++i) {
          ASSERT_NEAR(draws->probabilities[i] / expected.at(draws->keys[i]), 1, 2e-12);
        }
      }
      if (IsOrdered()) {  // The table's own sampler picks the same.
        ASSERT_EQ(draws->keys[0], table->Sample(1).value()[0].item.key);
      }
    }
    if (table->size() == 0 || IsHeap()) continue;  // (Heaps remember touches before the mirror.)
    ASSERT_TRUE(mirror->Follow(nullptr).ok());
    const auto late = Mirror(backend), late_twin = Mirror(MakeSelectTwin());
    const auto draws = DrawFrom(*late, 500);
    ASSERT_TRUE(draws.ok() && *draws == DrawFrom(*late_twin, 500).value());
    const auto items = ItemsOf(late->selection());
    EXPECT_EQ(items.size(), static_cast<size_t>(table->size()));
    EXPECT_EQ(items, ItemsOf(mirror->selection()));
  }
}

TEST_P(TableMirrorTest, DrawsFollowTheTablesProbabilities) {
  Open(300);
  const auto mirror = Mirror(backend);
  std::mt19937_64 random(8);
  for (uint64_t key = 0; key < 900; ++key) Insert(key, static_cast<double>(random() % 10));
  for (uint64_t key = 600; key < 900; key += 3) {
    ASSERT_TRUE(table->MutateItems({{key, static_cast<double>(key % 7)}}, {key + 1}).ok());
  }
  std::map<uint64_t, double> expected = Expected();
  if (IsHeap()) {  // Ties go by the last touch, which a snapshot does not tell.
    for (auto& [key, probability] : expected) probability = 0;
    expected[table->Sample(1).value()[0].item.key] = 1;
  }
  constexpr uint32_t kDraws = base::testing::Rounds(100000) / 2;
  std::map<uint64_t, double> counts;
  const Draws draws = DrawFrom(*mirror, kDraws).value();
  for (const uint64_t key : draws.keys) ++counts[key];
  double chi_squared = 0, cells = 0;
  for (const auto& [key, probability] : expected) {
    if (probability == 0) {
      ASSERT_EQ(counts[key], 0);
      continue;
    }
    const double excess = counts[key] - probability * kDraws;
    chi_squared += excess * excess / (probability * kDraws);
    ++cells;
  }
  if (cells == 1) {
    EXPECT_EQ(chi_squared, 0);
  } else {
    EXPECT_LT(chi_squared, selectors::testing::ChiSquaredBound(static_cast<size_t>(cells) - 1));
  }
}

TEST_P(TableMirrorTest, TheRateLimiterRules) {
  Open(100, {/*samples_per_insert=*/2, /*min_size_to_sample=*/3, /*min_diff=*/-4, /*max_diff=*/8});
  const auto mirror = Mirror(backend);
  Insert(1, 1);
  Insert(2, 1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(DrawFrom(*mirror, 5).status()));
  Insert(3, 1);
  EXPECT_EQ(DrawFrom(*mirror, 100).value().keys.size(), 10u);  // 3 * 2 + 4.
  EXPECT_TRUE(absl::IsDeadlineExceeded(DrawFrom(*mirror, 1).status()));
  EXPECT_EQ(table->info().counts.samples, 10);
  // A waiting draw goes on with the insert that allows it, and sees its items.
  std::optional<absl::StatusOr<Draws>> drawn;
  std::thread waiting([&] { drawn = DrawFrom(*mirror, 7, absl::InfiniteFuture()); });
  while (table->info().waiting_samples == 0) std::this_thread::yield();
  ASSERT_TRUE(table->MutateItems({}, {1, 2, 3}).ok());
  Insert(4, 1);
  Insert(5, 1);
  Insert(6, 1);
  waiting.join();
  ASSERT_TRUE(drawn->ok()) << drawn->status();
  EXPECT_EQ((*drawn)->keys.size(), 6u);  // 6 * 2 + 4 - 10.
  for (const uint64_t key : (*drawn)->keys) EXPECT_GE(key, 4u);
  table->Close();
  EXPECT_TRUE(absl::IsCancelled(DrawFrom(*mirror, 1).status()));
}

TEST_P(TableMirrorTest, BadArgumentsCostNoGrant) {
  Open(10);
  Insert(1, 1);
  const auto mirror = Mirror(backend);
  for (const auto& status : {mirror->Draw(0, 0, absl::InfinitePast(), {}, nullptr).status(),
                             mirror->Draw(1, -1, absl::InfinitePast(), {}, nullptr).status(),
                             mirror->Top(0, absl::InfinitePast(), {}, nullptr),
                             mirror->Top(kMaxTop + 1, absl::InfinitePast(), {}, nullptr)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
  EXPECT_EQ(table->info().counts.samples, 0);
}

TEST_P(TableMirrorTest, DrawsAreReportedToTheTable) {
  Open(10);
  for (uint64_t key = 0; key < 3; ++key) Insert(key, 1);
  const auto mirror = Mirror(backend);
  const auto keys = DrawFrom(*mirror, 30).value().keys;
  EXPECT_EQ(table->info().num_unique_samples, 0);
  table->CountDrawn(keys);
  table->CountDrawn({77});  // Gone, or never there.
  int64_t total = 0, unique = 0;
  for (const auto& item : table->Snapshot().items) {
    EXPECT_EQ(item.times_sampled, std::count(keys.begin(), keys.end(), item.key));
    total += item.times_sampled;
    unique += item.times_sampled > 0;
  }
  EXPECT_EQ(total, 30);
  EXPECT_EQ(table->info().num_unique_samples, unique);
  EXPECT_EQ(table->info().counts.samples, 30);
}

TEST_P(TableMirrorTest, RefusesATableThatCountsItsSamples) {
  table::TableOptions options = table::Options();
  options.sampler = GetParam().options;
  options.max_times_sampled = 2;
  table = table::Table::Create(std::move(options)).value();
  EXPECT_TRUE(absl::IsFailedPrecondition(TableMirror::Create(table, backend, 1).status()));
}

TEST_P(TableMirrorTest, TopGivesTheFirstOfTheTable) {
  Open(100);
  const auto mirror = Mirror(backend);
  for (uint64_t key = 0; key < 150; ++key) Insert(key, static_cast<double>(key % 50));
  if (!IsOrdered()) {
    EXPECT_TRUE(absl::IsInvalidArgument(mirror->Top(1, absl::InfinitePast(), {}, nullptr)));
    return;
  }
  Draws top;
  const absl::Status status = Collect(
      *backend, 40,
      [&](const DrawOutput& output) {
        return mirror->Top(40, absl::InfinitePast(), output, nullptr);
      },
      &top);
  ASSERT_TRUE(status.ok()) << status;
  for (const uint64_t key : top.keys) {
    EXPECT_EQ(table->Sample(1).value()[0].item.key, key);
    ASSERT_TRUE(table->MutateItems({}, {key}).ok());
  }
}

// Changes from several threads while another draws; at rest the mirror holds what the table holds.
TEST_P(TableMirrorTest, FollowsConcurrentChanges) {
  Open(200);
  Insert(0, 1);
  const auto mirror = Mirror(backend);
  std::vector<std::thread> writers;
  for (uint64_t writer = 0; writer < 3; ++writer) {
    writers.emplace_back([this, writer] {
      std::mt19937_64 random(writer);
      for (int i = 0; i < 3000; ++i) {
        const uint64_t key = random() % 400;
        if (random() % 4 == 0) {
          EXPECT_TRUE(table->MutateItems({{key, 2}}, {key + 1}).ok());
        } else {
          Insert(key, static_cast<double>(random() % 5));
        }
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    const auto draws = DrawFrom(*mirror, 10);
    if (draws.ok()) {
      for (const uint64_t key : draws->keys) EXPECT_LT(key, 400u);
    }
  }
  for (std::thread& writer : writers) writer.join();
  ASSERT_TRUE(mirror->Follow(nullptr).ok());
  std::map<uint64_t, int> keys;
  for (const auto& item : table->Snapshot().items) ++keys[item.key];
  for (const auto& [slot, key] : ItemsOf(mirror->selection())) --keys[key];
  for (const auto& [key, count] : keys) EXPECT_EQ(count, 0) << key;
}

}  // namespace gear_reverb::device::testing
