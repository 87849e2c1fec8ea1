// The contract of a resident table, for every device: instantiate ResidentTableTest over backends.
#pragma once

#include <cmath>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "native/base/testing_rounds.h"
#include "native/device/resident_table_fixture.h"

namespace gear_reverb::device::testing {

// Whatever happens to the table between draws; batches are looked at up to ten draws later.
TEST_P(ResidentTableTest, BatchesHaveWhatTheTableHadWhenItAllowedThem) {
  std::mt19937_64 random(2);
  for (const int32_t most_pieces : {1, 5}) {
    Open(60);
    std::vector<Batch> batches;
    for (int round = 0; round < 150; ++round) {
      for (size_t i = random() % 30; i > 0; --i) {
        const uint64_t key = random() % 100;
        const auto priority = static_cast<double>(random() % 9);
        switch (random() % 10) {
          case 0:
            ASSERT_TRUE(table->MutateItems({}, {key}).ok());
            contents.erase(key);
            break;
          case 1:
          case 2:
            ASSERT_TRUE(table->MutateItems({{key, priority}}, {}).ok());
            if (contents.contains(key)) contents[key].priority = priority;
            break;
          case 3:
            if (random() % 20 == 0) {
              table->Reset();
              contents.clear();
            }
            break;
          default: {
            const auto pieces = 1 + static_cast<int32_t>(random() % most_pieces);
            ASSERT_NO_FATAL_FAILURE(Insert(key, priority, round < 50 ? 1 : pieces));
          }
        }
        Forget();
      }
      const auto batch = Draw(8);
      ASSERT_EQ(batch.ok(), table->size() > 0) << batch.status();
      if (!batch.ok()) continue;
      batches.push_back(*batch);
      if (batches.size() < 10) continue;
      ASSERT_NO_FATAL_FAILURE(ExpectContents(batches.front()));
      batches.erase(batches.begin());
    }
    for (const Batch& batch : batches) ASSERT_NO_FATAL_FAILURE(ExpectContents(batch));
    plan = nullptr;
    resident = nullptr;
    EXPECT_EQ(table->info().num_unused_samples, 0);
  }
}

// To the longest item that was ever there, or as far as asked for.
TEST_P(ResidentTableTest, ItemsOfDifferentLengthsAreFilledUp) {
  std::mt19937_64 random(3);
  for (const int64_t pad_to : {0, 14}) {
    Open(40, selectors::PrioritizedOptions{1.0}, table::MinSize(1), /*in_place=*/false,
         Padding{pad_to});
    longest = 0;
    std::vector<Batch> batches;
    for (int round = 0; round < 60; ++round) {
      if (round == 40) {
        table->Reset();
        contents.clear();
      }
      for (size_t i = random() % 9 + 1; i > 0; --i) {
        ASSERT_NO_FATAL_FAILURE(Insert(random() % 70, static_cast<double>(random() % 9 + 1),
                                       1 + static_cast<int32_t>(random() % 5)));
      }
      batches.push_back(Draw(32).value());
      ASSERT_EQ(batches.back().arrays.columns[0].shape[1], pad_to > 0 ? pad_to : longest);
      if (batches.size() < 5) continue;
      ASSERT_NO_FATAL_FAILURE(ExpectContents(batches.front()));
      batches.erase(batches.begin());
    }
    for (const Batch& batch : batches) ASSERT_NO_FATAL_FAILURE(ExpectContents(batch));
    EXPECT_LT(resident->directory().mean_item_bytes(), 11 * 21u + 5);
    EXPECT_GT(resident->directory().mean_item_bytes(), 2 * 21u + 5);
  }
}

// Columns that differ in length within an item have lengths and masks of their own; a squeezed one
// has none.
TEST_P(ResidentTableTest, ColumnsOfDifferentLengthsHaveTheirOwnMasks) {
  Open(10, selectors::UniformOptions{}, table::MinSize(1), /*in_place=*/false, Padding{});
  const auto chunk = MakeContent(1, 1, 9)->columns[0].slices[0].chunk;
  const std::vector<std::pair<int32_t, int32_t>> lengths{{9, 4}, {2, 7}, {5, 5}};
  for (uint64_t key = 0; key < lengths.size(); ++key) {
    storage::TrajectoryBuilder trajectory;
    trajectory.columns.resize(3);
    trajectory.columns[0].slices.push_back({chunk, 1, lengths[key].first, 0});
    trajectory.columns[1].squeeze = true;
    trajectory.columns[1].slices.push_back({chunk, 1, 1, 1});
    trajectory.columns[2].slices.push_back({chunk, 1, lengths[key].second, 1});
    ASSERT_TRUE(table->InsertOrAssign(table::MakeItem(key, 1, std::move(trajectory).Build())).ok());
    contents[key] = {1, 1};
  }
  const Batch batch = Draw(64).value();
  ASSERT_FALSE(batch.arrays.lengths_agree);
  ASSERT_EQ(batch.arrays.sides.size(), 3u);
  EXPECT_FALSE(batch.arrays.sides[1].lengths.has_value());
  EXPECT_FALSE(batch.arrays.sides[1].mask.has_value());
  const auto keys = Keys(batch);
  for (const auto& [column, steps] : {std::pair{0, 9u}, std::pair{2, 7u}}) {
    ASSERT_EQ(batch.arrays.columns[column].shape[1], steps);
    const auto found = Read<int32_t>(batch, *batch.arrays.sides[column].lengths);
    const auto mask = Read<uint8_t>(batch, *batch.arrays.sides[column].mask);
    for (uint32_t draw = 0; draw < batch.n; ++draw) {
      const auto [first, last] = lengths[keys[draw]];
      ASSERT_EQ(found[draw], column == 0 ? first : last);
      for (uint32_t step = 0; step < steps; ++step) {
        ASSERT_EQ(mask[draw * steps + step], static_cast<int32_t>(step) < found[draw]);
      }
    }
  }
}

TEST_P(ResidentTableTest, DrawsFollowThePriorities) {
  Open(100, selectors::PrioritizedOptions{1.0});
  double sum = 0;
  for (uint64_t key = 0; key < 40; ++key) {
    ASSERT_NO_FATAL_FAILURE(Insert(key, static_cast<double>(key % 8)));
    sum += static_cast<double>(key % 8);
  }
  constexpr uint32_t kDraws = base::testing::Rounds(40000);
  const Batch batch = Draw(kDraws).value();
  ASSERT_NO_FATAL_FAILURE(ExpectContents(batch));
  std::map<uint64_t, double> counts;
  for (const uint64_t key : Keys(batch)) ++counts[key];
  double chi_squared = 0;
  size_t cells = 0;
  for (const auto& [key, content] : contents) {
    const double expected = content.priority / sum * kDraws;
    if (expected == 0) {
      ASSERT_EQ(counts[key], 0);
      continue;
    }
    chi_squared += (counts[key] - expected) * (counts[key] - expected) / expected;
    ++cells;
  }
  EXPECT_LT(chi_squared, selectors::testing::ChiSquaredBound(cells - 1));
  // The weights of the draw, and those that are made of its probabilities later.
  const auto weights = Read<float>(batch, *batch.arrays.weights);
  const auto probabilities = Read<double>(batch, batch.arrays.probabilities);
  SelectBackend& memory = *backend->select();
  auto* const later = static_cast<float*>(memory.Allocate(kDraws * sizeof(float)).value());
  const auto* const drawn =
      reinterpret_cast<const double*>(batch.output + batch.arrays.probabilities.offset);
  ASSERT_TRUE(backend->Weights(drawn, kDraws, 0.5, later, nullptr).ok());
  EXPECT_EQ(ToHost(memory, later, kDraws), weights);
  memory.Free(later);
  const double least = *std::min_element(probabilities.begin(), probabilities.end());
  for (uint32_t i = 0; i < kDraws; ++i) {
    ASSERT_NEAR(weights[i], std::sqrt(least / probabilities[i]), 1e-6);
  }
}

TEST_P(ResidentTableTest, EqualSeedsDrawEqualBatches) {
  std::vector<std::vector<uint64_t>> drawn;
  for (int twice = 0; twice < 2; ++twice) {
    Open(100, selectors::PrioritizedOptions{0.8});
    for (uint64_t key = 0; key < 70; ++key) {
      ASSERT_NO_FATAL_FAILURE(Insert(key, static_cast<double>(1 + key % 5)));
    }
    drawn.push_back(Keys(Draw(64).value()));
    drawn.push_back(Keys(Draw(64).value()));
  }
  EXPECT_EQ(drawn[0], drawn[2]);
  EXPECT_EQ(drawn[1], drawn[3]);
  EXPECT_NE(drawn[0], drawn[1]);
}

TEST_P(ResidentTableTest, TheRateLimiterRulesAndDrawsAreCounted) {
  Open(100, selectors::UniformOptions{}, {/*samples_per_insert=*/2, 1, /*min_diff=*/-4, 8});
  ASSERT_NO_FATAL_FAILURE(Insert(1, 1));
  ASSERT_NO_FATAL_FAILURE(Insert(2, 1));
  // 2 * 2 + 4 draws: the second batch of five waits for an insert, and keeps its three.
  const Batch batch = Draw(5).value();
  EXPECT_TRUE(absl::IsDeadlineExceeded(Draw(5).status()));
  EXPECT_EQ(table->info().counts.samples, 8);
  absl::StatusOr<Batch> second = absl::UnknownError("");
  std::thread waiting([&] { second = Draw(5, absl::InfiniteFuture()); });
  while (table->info().waiting_samples == 0) std::this_thread::yield();
  contents[3] = {77, 1};
  ASSERT_TRUE(table->InsertOrAssign(table::MakeItem(3, 1, MakeContent(77, 1))).ok());
  waiting.join();
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_NO_FATAL_FAILURE(ExpectContents(*second));
  EXPECT_EQ(table->info().counts.samples, 10);
  ASSERT_TRUE(backend->Synchronize().ok());
  ASSERT_TRUE(resident->Report().ok());
  std::vector<uint64_t> keys = Keys(batch);
  for (const uint64_t key : Keys(*second)) keys.push_back(key);
  for (const auto& item : table->Snapshot().items) {
    EXPECT_EQ(item.times_sampled, std::count(keys.begin(), keys.end(), item.key));
  }
  // Allowed and never drawn.
  EXPECT_TRUE(absl::IsDeadlineExceeded(resident->Prepare(5, absl::InfinitePast(), nullptr)));
  ASSERT_NO_FATAL_FAILURE(Insert(4, 1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(resident->Prepare(5, absl::InfinitePast(), nullptr)));
  plan = nullptr;
  resident = nullptr;
  EXPECT_EQ(table->info().num_unused_samples, 2);
}

TEST_P(ResidentTableTest, CancelEndsAWait) {
  Open(10);
  absl::Status status;
  std::thread waiting([&] { status = resident->Prepare(1, absl::InfiniteFuture(), nullptr); });
  while (table->info().waiting_samples == 0) std::this_thread::yield();
  resident->Cancel();
  waiting.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

// One plan, put on the stream again and again: nothing moves, and what is not drawn is not counted.
TEST_P(ResidentTableTest, InPlaceNothingMoves) {
  Open(300, selectors::UniformOptions{}, table::MinSize(1), /*in_place=*/true);
  EXPECT_FALSE(Draw(16).ok());
  ASSERT_NO_FATAL_FAILURE(Insert(0, 1));
  const Batch first = Draw(16).value();
  EXPECT_EQ(resident->directory().view().pieces_per_column, 4u);
  const uint64_t version = resident->directory().version();
  for (uint64_t key = 1; key < 1000; key += 10) {
    for (uint64_t i = 0; i < 10; ++i) {
      ASSERT_NO_FATAL_FAILURE(Insert(key + i, 1, 1 + static_cast<int32_t>(i % 4)));
    }
    Forget();
    ASSERT_TRUE(resident->Prepare(16, absl::InfinitePast(), nullptr).ok());
    ASSERT_TRUE(plan->Enqueue(resident->selection(), 0, first.output, nullptr).ok());
    ASSERT_TRUE(resident->Collect(*plan, first.output, nullptr).ok());
    ASSERT_EQ(resident->directory().version(), version);
    Batch again = first;
    again.contents = contents;
    again.table_size = resident->table_size();
    ASSERT_NO_FATAL_FAILURE(ExpectContents(again));
  }
  ASSERT_TRUE(resident->Prepare(16, absl::InfinitePast(), nullptr).ok());
  ASSERT_TRUE(resident->Collect(*plan, first.output, nullptr).ok());
  ASSERT_TRUE(backend->Synchronize().ok());
  ASSERT_TRUE(resident->Report().ok());
  EXPECT_EQ(table->info().num_unused_samples, 16);
  int64_t sampled = 0;
  for (const auto& item : table->Snapshot().items) sampled += item.times_sampled;
  EXPECT_GT(sampled, 0);
}

TEST_P(ResidentTableTest, SaysWhyItCannotWork) {
  const auto why_not = [&](std::vector<storage::TrajectoryPtr> items) {
    Open(100);
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_TRUE(table->InsertOrAssign(table::MakeItem(i, 1, items[i])).ok());
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(resident->Prepare(1, absl::InfinitePast(), nullptr)));
    EXPECT_EQ(table->info().num_unused_samples, 1);
    return resident->why_not();
  };
  EXPECT_EQ(why_not({MakeContent(1, 1), MakeContent(2, 1, kSteps + 1)}),
            "column 0 of its items does not always have the same dtype, shape and number of steps");
  EXPECT_EQ(why_not({MakeContent(1, 1), table::MakeTrajectory({table::MakeChunk(3)})}),
            "its items have 1 or 3 columns");
  EXPECT_EQ(why_not({nullptr}), "item 0 has no data");
  EXPECT_EQ(why_not({MakeContent(1, 257, 260)}),
            "column 0 of an item lies in 257 pieces, which is more than 256");
  Open(100, selectors::UniformOptions{}, table::MinSize(1), /*in_place=*/false, Padding{5});
  ASSERT_TRUE(table->InsertOrAssign(table::MakeItem(1, 1, MakeContent(1, 1, 6))).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(resident->Prepare(1, absl::InfinitePast(), nullptr)));
  EXPECT_EQ(resident->why_not(), "column 0 of an item has 6 steps, which is more than pad_to (5)");
}

// Items of another form may come once all others are gone.
TEST_P(ResidentTableTest, AnEmptyTableMayChange) {
  Open(100);
  for (const auto& item :
       {MakeContent(1, 1), table::MakeTrajectory({table::MakeChunk(3)}), MakeContent(2, 3)}) {
    table->Reset();
    contents[1] = {2, 1};
    ASSERT_TRUE(table->InsertOrAssign(table::MakeItem(1, 1, item)).ok());
    const auto batch = Draw(4);
    ASSERT_TRUE(batch.ok()) << batch.status();
    ASSERT_EQ(batch->arrays.columns.size(), item->columns.size());
  }
}

// Writers from several threads while batches are drawn.
TEST_P(ResidentTableTest, FollowsConcurrentChanges) {
  Open(50);
  ASSERT_NO_FATAL_FAILURE(Insert(1000, 1));
  std::vector<std::thread> writers;
  for (uint64_t writer = 0; writer < 2; ++writer) {
    writers.emplace_back([this, writer] {
      for (uint64_t i = 0; i < 1500; ++i) {
        const uint64_t key = (i * 7 + writer) % 90;
        EXPECT_TRUE(
            table->InsertOrAssign(table::MakeItem(key, 1, MakeContent(key, 1 + i % 3))).ok());
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(resident->Prepare(8, absl::InfiniteFuture(), nullptr).ok());
    plan = DrawPlan::Create(resident->directory(), 8, {}, false, nullptr).value();
    auto* const output =
        static_cast<std::byte*>(backend->select()->Allocate(plan->arrays().output_bytes).value());
    outputs.push_back(output);
    ASSERT_TRUE(plan->Enqueue(resident->selection(), 0, output, nullptr).ok());
    ASSERT_TRUE(resident->Collect(*plan, output, nullptr).ok());
    const Batch batch{output, plan->arrays(), 8, {}, 0};
    const auto keys = Keys(batch);
    const auto numbers = Read<uint64_t>(batch, batch.arrays.columns[0]);
    for (uint32_t draw = 0; draw < 8; ++draw) {
      const uint64_t content = numbers[draw * kSteps * 2];
      if (keys[draw] != 1000) {
        ASSERT_EQ(content, keys[draw]);
      }
      for (uint32_t step = 0; step < kSteps; ++step) {
        ASSERT_EQ(numbers[(draw * kSteps + step) * 2], content);
        ASSERT_EQ(numbers[(draw * kSteps + step) * 2 + 1], step);
      }
    }
  }
  for (std::thread& writer : writers) writer.join();
}

}  // namespace gear_reverb::device::testing
