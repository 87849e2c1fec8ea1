// What a table does with items: selection, eviction, counts, observers, snapshots.
#include "native/table/table.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "native/table/table_test_util.h"

namespace gear_reverb::table {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(TableTest, SamplesWhatWasInserted) {
  Open();
  const auto trajectory = MakeTrajectory({MakeChunk(7)});
  EXPECT_TRUE(Insert(5, 2.5, trajectory));
  const auto samples = table->Sample(1);
  ASSERT_TRUE(samples.ok());
  ASSERT_EQ(samples->size(), 1);
  const SampledItem& sample = samples->front();
  EXPECT_EQ(sample.item.key, 5);
  EXPECT_EQ(sample.item.priority, 2.5);
  EXPECT_EQ(sample.item.times_sampled, 1);
  EXPECT_EQ(sample.item.trajectory, trajectory);
  EXPECT_LT(absl::Now() - sample.item.inserted_at, absl::Minutes(1));
  EXPECT_EQ(sample.probability, 1);
  EXPECT_EQ(sample.table_size, 1);
  EXPECT_FALSE(sample.rate_limited);
}

TEST_F(TableTest, DrawsAsManyAsAskedForAndAllowed) {
  Open();
  Insert(1);
  EXPECT_THAT(Sample(3), ElementsAre(1, 1, 1));
  auto options = Options();
  options.rate_limiter = QueueOf(10);
  Open(options);
  for (int key : {1, 2, 3}) Insert(key);
  EXPECT_THAT(Sample(5), ElementsAre(1, 1, 1));
  EXPECT_THAT(Sample(5), IsEmpty());
}

TEST_F(TableTest, UniqueSamplesCountAnItemsFirstDrawOnly) {
  Open();
  Insert(1);
  Sample(1);
  EXPECT_EQ(table->info().num_unique_samples, 1);
  Sample(2);
  EXPECT_EQ(table->info().num_unique_samples, 1);
  EXPECT_EQ(table->info().counts.samples, 3);
  ASSERT_TRUE(table->MutateItems({}, {1}).ok());
  EXPECT_EQ(table->info().num_unique_samples, 1) << "of all time, not of live items";
}

TEST_F(TableTest, AFullTableEvictsAndCountsADelete) {
  Open(Options(/*max_size=*/2));
  for (int key : {1, 2, 3}) EXPECT_TRUE(Insert(key));
  EXPECT_EQ(table->size(), 2);
  EXPECT_THAT(Sample(1), ElementsAre(2));
  EXPECT_EQ(table->info().counts.inserts, 3);
  EXPECT_EQ(table->info().counts.deletes, 1);
}

TEST_F(TableTest, TheRemoverMayPickTheNewItem) {
  auto options = Options(/*max_size=*/2);
  options.remover = selectors::LifoOptions{};
  Open(options);
  for (int key : {1, 2, 3, 4}) EXPECT_TRUE(Insert(key));
  const auto snapshot = table->Snapshot();
  ASSERT_EQ(snapshot.items.size(), 2);
  EXPECT_EQ(snapshot.items[0].key, 1);
  EXPECT_EQ(snapshot.items[1].key, 2);
}

TEST_F(TableTest, ALiveKeyIsAssignedWithoutCounting) {
  auto options = Options();
  options.sampler = selectors::HeapOptions{/*min_heap=*/false};
  options.rate_limiter = QueueOf(2);
  Open(options);
  EXPECT_TRUE(Insert(1, 1));
  EXPECT_TRUE(Insert(2, 2));
  EXPECT_FALSE(Insert(3, 3));
  const auto trajectory = MakeTrajectory({MakeChunk(9, /*episode=*/4)});
  EXPECT_TRUE(Insert(1, 5, trajectory));
  const auto samples = table->Sample(1);
  EXPECT_EQ(samples->front().item.key, 1);
  EXPECT_EQ(samples->front().item.priority, 5);
  EXPECT_EQ(samples->front().item.trajectory, trajectory);
  EXPECT_EQ(table->info().counts.inserts, 2);
  EXPECT_EQ(table->info().bytes, 8);
  EXPECT_EQ(table->info().num_episodes, 1);
}

TEST_F(TableTest, ItemsGoAfterMaxTimesSampled) {
  auto options = Options();
  options.max_times_sampled = 2;
  Open(options);
  for (int key : {1, 2, 3}) Insert(key);
  const auto samples = table->Sample(4);
  EXPECT_THAT(KeysOf(*samples), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(samples->at(1).table_size, 3);
  EXPECT_THAT(samples->at(2).table_size, 2);
  EXPECT_EQ(table->size(), 1);
  EXPECT_EQ(table->info().counts.deletes, 2);
  EXPECT_EQ(table->info().num_unique_samples, 2);
  EXPECT_THAT(Sample(9), ElementsAre(3, 3));
  EXPECT_THAT(Sample(1), IsEmpty());
}

TEST_F(TableTest, MutateUpdatesThenDeletesAndIgnoresUnknownKeys) {
  auto options = Options();
  options.sampler = selectors::HeapOptions{/*min_heap=*/false};
  Open(options);
  for (int key : {1, 2, 3}) Insert(key, key);
  EXPECT_TRUE(table->MutateItems({{1, 9}, {77, 5}, {88, -5}, {1, 10}}, {3, 99, 3}).ok());
  EXPECT_EQ(table->size(), 2);
  EXPECT_THAT(Sample(1), ElementsAre(1));
  EXPECT_EQ(table->Snapshot().items[0].priority, 10);
  EXPECT_EQ(table->info().counts.deletes, 1);
}

TEST_F(TableTest, BadPrioritiesAreNamedAndChangeNothing) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  TableOptions options = Options();
  options.remover = selectors::PrioritizedOptions{1};
  Open(std::move(options));
  Insert(1, 1);
  for (const double bad : {-1., kInf, kNan}) {
    const auto inserted = table->InsertOrAssign(MakeItem(5, bad));
    EXPECT_TRUE(absl::IsInvalidArgument(inserted));
    EXPECT_THAT(std::string(inserted.message()), HasSubstr("Item 5"));
    const auto mutated = table->MutateItems({{1, 4}, {1, bad}}, {1});
    EXPECT_TRUE(absl::IsInvalidArgument(mutated));
    EXPECT_THAT(std::string(mutated.message()), HasSubstr("Item 1"));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(table->MutateItems({{99, kNan}}, {})));
  EXPECT_EQ(table->Snapshot().items[0].priority, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(table->Sample(0).status()));
}

TEST_F(TableTest, ABatchOfInsertionsIsTheSameAsOneAfterAnother) {
  TableOptions options = Options(/*max_size=*/3);
  options.rate_limiter = {/*samples_per_insert=*/1, /*min_size_to_sample=*/1, -100, 4};
  Open(std::move(options));
  std::vector<std::pair<uint64_t, absl::StatusCode>> done;
  std::vector<Table::Insertion> batch;
  const std::vector<std::pair<uint64_t, double>> items = {
      {1, 1}, {2, 1}, {3, std::nan("")}, {1, 5}, {4, 1}, {5, 1}, {6, 1}};
  for (const auto& [key, priority] : items) {
    batch.push_back({MakeItem(key, priority), [&done, key = key](absl::Status status) {
                       done.emplace_back(key, status.code());
                     }});
  }
  const std::vector<Table::WaitId> ids =
      table->InsertOrAssignBatchAsync(std::move(batch), absl::InfiniteFuture());
  using Code = absl::StatusCode;
  EXPECT_THAT(done, ElementsAre(std::pair(1, Code::kOk), std::pair(2, Code::kOk),
                                std::pair(3, Code::kInvalidArgument), std::pair(1, Code::kOk),
                                std::pair(4, Code::kOk), std::pair(5, Code::kOk)));
  EXPECT_EQ(std::vector<bool>(ids.begin(), ids.end()), std::vector<bool>({0, 0, 0, 0, 0, 0, 1}))
      << "the limiter lets four in";
  EXPECT_EQ(table->size(), 3) << "the first has gone";
  Sample(1);
  EXPECT_EQ(done.back(), std::pair(uint64_t{6}, Code::kOk));
}

TEST_F(TableTest, APriorityThatIsNoWeightMayBeNegative) {
  TableOptions options = Options();
  options.sampler = selectors::HeapOptions{/*min_heap=*/true};
  Open(std::move(options));
  for (const auto& [key, priority] :
       std::vector<std::pair<uint64_t, double>>{{1, 0}, {2, -3}, {3, 2}}) {
    EXPECT_TRUE(Insert(key, priority));
  }
  EXPECT_THAT(Sample(1), ElementsAre(2));
  ASSERT_TRUE(table->MutateItems({{3, -4}}, {}).ok());
  EXPECT_THAT(Sample(1), ElementsAre(3));
}

TEST_F(TableTest, OptionsAreChecked) {
  const auto fails = [](auto change) {
    auto options = Options();
    change(options);
    return absl::IsInvalidArgument(Table::Create(options).status());
  };
  EXPECT_TRUE(fails([](auto& o) { o.name = ""; }));
  EXPECT_TRUE(fails([](auto& o) { o.max_size = 0; }));
  EXPECT_TRUE(fails([](auto& o) { o.rate_limiter.min_size_to_sample = 0; }));
  EXPECT_TRUE(fails([](auto& o) { o.sampler = selectors::PrioritizedOptions{-1}; }));
  EXPECT_TRUE(fails([](auto& o) { o.extensions.push_back(nullptr); }));
}

TEST_F(TableTest, ResetForgetsEverything) {
  Open(Options(2));
  for (int key : {1, 2, 3}) Insert(key, 1, MakeTrajectory({MakeChunk(key, key)}));
  Sample(2);
  table->Reset();
  const TableInfo info = table->info();
  EXPECT_EQ(info.current_size + info.counts.inserts + info.counts.samples + info.counts.deletes, 0);
  EXPECT_EQ(info.num_episodes + info.num_deleted_episodes + info.num_unique_samples, 0);
  EXPECT_EQ(info.bytes, 0);
  EXPECT_TRUE(Insert(1));
  EXPECT_THAT(Sample(1), ElementsAre(1));
}

TEST_F(TableTest, EpisodesEndWithTheirLastItem) {
  Open();
  Insert(1, 1, MakeTrajectory({MakeChunk(1, /*episode=*/1)}));
  Insert(2, 1, MakeTrajectory({MakeChunk(2, /*episode=*/1)}));
  Insert(3, 1, MakeTrajectory({MakeChunk(3, /*episode=*/2)}));
  EXPECT_EQ(table->info().num_episodes, 2);
  ASSERT_TRUE(table->MutateItems({}, {1, 3}).ok());
  EXPECT_EQ(table->info().num_episodes, 1);
  EXPECT_EQ(table->info().num_deleted_episodes, 1);
}

TEST_F(TableTest, SharedChunksCountOnce) {
  Open();
  const auto a = MakeChunk(1, 1, 10), b = MakeChunk(2, 1, 100);
  Insert(1, 1, MakeTrajectory({a, b}));
  Insert(2, 1, MakeTrajectory({b, a, b}));
  EXPECT_EQ(table->info().bytes, 880);
  ASSERT_TRUE(table->MutateItems({}, {1}).ok());
  EXPECT_EQ(table->info().bytes, 880);
  Insert(2, 1, MakeTrajectory({a}));
  EXPECT_EQ(table->info().bytes, 80);
  ASSERT_TRUE(table->MutateItems({}, {2}).ok());
  EXPECT_EQ(table->info().bytes, 0);
}

class Recorder : public Extension {
 public:
  void OnAttach(const std::string& name) override { log += "attach " + name; }
  void OnInsert(const Item& item) override { Add("insert", item); }
  void OnUpdate(const Item& item) override { Add("update", item); }
  void OnSample(const Item& item) override { Add("sample", item); }
  void OnDelete(const Item& item) override { Add("delete", item); }
  void OnReset() override { log += "; reset"; }
  std::string DebugString() const override { return "Recorder"; }

  std::string log;

 private:
  void Add(const std::string& what, const Item& item) {
    log += "; " + what + " " + std::to_string(item.key) + "@" +
           std::to_string(static_cast<int>(item.priority)) + "x" +
           std::to_string(item.times_sampled);
  }
};

TEST_F(TableTest, ExtensionsSeeEveryChangeInOrder) {
  const auto recorder = std::make_shared<Recorder>();
  auto options = Options(/*max_size=*/2);
  options.max_times_sampled = 1;
  options.extensions = {recorder};
  Open(options);
  for (int key : {1, 2, 3}) Insert(key);
  Insert(2, 4);
  Sample(1);
  ASSERT_TRUE(table->MutateItems({{3, 6}}, {3}).ok());
  table->Reset();
  EXPECT_EQ(recorder->log,
            "attach t; insert 1@1x0; insert 2@1x0; insert 3@1x0; delete 1@1x0; update 2@4x0; "
            "sample 2@4x1; delete 2@4x1; update 3@6x0; delete 3@6x0; reset");
}

TEST_F(TableTest, DrawKeysSelectsAsSampleDoesAndCountsNothing) {
  auto options = Options();
  options.sampler = selectors::PrioritizedOptions{1};
  Open(options);
  Keys keys(100);
  std::vector<double> priorities(100), probabilities(100);
  for (int i = 0; i < 100; ++i) {
    keys[i] = 1000 + i;
    priorities[i] = i;
  }
  ASSERT_TRUE(table->InsertKeys(keys, priorities).ok());
  const auto first = table;
  Open(options);
  ASSERT_TRUE(table->InsertKeys(keys, priorities).ok());
  Keys drawn(100);
  ASSERT_TRUE(first->DrawKeys(absl::MakeSpan(drawn), absl::MakeSpan(probabilities)).ok());
  EXPECT_EQ(Sample(100), drawn);
  for (int i = 0; i < 100; ++i) EXPECT_NEAR(probabilities[i], (drawn[i] - 1000) / 4950., 1e-12);
  EXPECT_EQ(first->info().counts.samples, 0);
  EXPECT_EQ(first->info().counts.inserts, 100);
}

TEST_F(TableTest, InsertKeysAllOrNothing) {
  Open(Options(/*max_size=*/3));
  ASSERT_TRUE(table->InsertKeys({1, 2}, {1, 1}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(table->InsertKeys({2}, {1})));
  EXPECT_TRUE(table->InsertKeys({}, {}).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(table->InsertKeys({3, 4}, {1, 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(table->InsertKeys({3}, {std::nan("")})));
  EXPECT_TRUE(absl::IsInvalidArgument(table->InsertKeys({3}, {})));
  Keys keys(2);
  std::vector<double> probabilities(1);
  EXPECT_TRUE(absl::IsInvalidArgument(
      table->DrawKeys(absl::MakeSpan(keys), absl::MakeSpan(probabilities))));
  EXPECT_EQ(table->size(), 2);
  table->Reset();
  EXPECT_TRUE(absl::IsFailedPrecondition(
      table->DrawKeys(absl::MakeSpan(keys).first(1), absl::MakeSpan(probabilities))));
}

TEST_F(TableTest, ARestoredTableGoesOnWhereTheOtherStood) {
  auto options = Options(50);
  options.sampler = selectors::PrioritizedOptions{0.5};
  options.rate_limiter = QueueOf(1000);
  Open(options);
  for (int key = 1; key <= 40; ++key) Insert(key, key, MakeTrajectory({MakeChunk(key, key % 7)}));
  Sample(10);
  const auto original = table;
  const TableSnapshot snapshot = original->Snapshot();
  options.seed = 99;
  Open(options);
  ASSERT_TRUE(table->Restore(snapshot).ok());
  const TableInfo a = original->info(), b = table->info();
  EXPECT_EQ(a.current_size, b.current_size);
  EXPECT_EQ(a.counts.inserts, b.counts.inserts);
  EXPECT_EQ(a.counts.samples, b.counts.samples);
  EXPECT_EQ(a.num_episodes, b.num_episodes);
  EXPECT_EQ(a.num_unique_samples, b.num_unique_samples);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(KeysOf(*original->Sample(20)), Sample(20));
  EXPECT_THAT(Sample(20), testing::SizeIs(10));
}

TEST_F(TableTest, TwoRestoresOfOneSnapshotDrawTheSame) {
  auto options = Options(20);
  options.sampler = selectors::UniformOptions{};
  Open(options);
  for (int key = 1; key <= 50; ++key) Insert(key);
  const TableSnapshot snapshot = table->Snapshot();
  Open(options);
  ASSERT_TRUE(table->Restore(snapshot).ok());
  const Keys first = Sample(100);
  Open(options);
  ASSERT_TRUE(table->Restore(snapshot).ok());
  EXPECT_EQ(Sample(100), first);
}

TEST_F(TableTest, ASnapshotThatCannotBeRestoredChangesNothing) {
  Open();
  for (int key : {1, 2, 3}) Insert(key);
  const TableSnapshot good = table->Snapshot();
  EXPECT_TRUE(absl::IsFailedPrecondition(table->Restore(good)));

  Open(Options(/*max_size=*/2));
  const absl::Status exhausted = table->Restore(good);
  EXPECT_TRUE(absl::IsResourceExhausted(exhausted));
  EXPECT_THAT(std::string(exhausted.message()), HasSubstr("max_size (2)"));

  Open();
  const auto fails = [&](auto change) {
    TableSnapshot snapshot = good;
    change(snapshot);
    return absl::IsInvalidArgument(table->Restore(snapshot));
  };
  EXPECT_TRUE(fails([](auto& s) { s.items[1].key = s.items[0].key; }));
  EXPECT_TRUE(fails([](auto& s) { s.items[1].priority = std::nan(""); }));
  EXPECT_TRUE(fails([](auto& s) { s.items[1].times_sampled = -1; }));
  EXPECT_TRUE(fails([](auto& s) { s.info.counts.inserts = 7; }));
  EXPECT_TRUE(fails([](auto& s) { s.info.counts.samples = -1; }));
  EXPECT_EQ(table->size(), 0);
  EXPECT_TRUE(table->Restore(good).ok());
  EXPECT_EQ(table->size(), 3);
}

TEST_F(TableTest, UnusedSamplesAreCountedUpToThoseDrawnAndUntilReset) {
  Open();
  Insert(1);
  Sample(5);
  table->CountUnused(3);
  EXPECT_EQ(table->info().num_unused_samples, 3);
  table->CountUnused(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(table->info().num_unused_samples, 5);
  EXPECT_EQ(table->info().counts.samples, 5);
  table->Reset();
  EXPECT_EQ(table->info().num_unused_samples, 0);
}

TEST_F(TableTest, DrawsByAGeneratorOfTheCallersLeaveTheTablesAlone) {
  TableOptions options = Options();
  options.sampler = selectors::UniformOptions{};
  Open(options);
  for (int key = 1; key <= 20; ++key) Insert(key);
  const auto draw = [&](uint64_t seed) {
    std::vector<uint64_t> keys;
    table->SampleAsync(
        8, absl::InfiniteFuture(), [&](auto samples) { keys = KeysOf(*samples); },
        std::make_shared<base::Philox>(seed));
    return keys;
  };
  const uint64_t position = table->Snapshot().random_position;
  const std::vector<uint64_t> keys = draw(5);
  EXPECT_EQ(keys.size(), 8u);
  EXPECT_EQ(draw(5), keys);
  EXPECT_NE(draw(6), keys);
  EXPECT_EQ(table->Snapshot().random_position, position);
}

}  // namespace
}  // namespace gear_reverb::table
