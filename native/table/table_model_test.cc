// Random operations, checked against the plainest model of a table that there is.
#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <random>

#include "native/table/table_test_util.h"

namespace gear_reverb::table {
namespace {

// A list of items and two lists of waiting calls; everything by linear search.
class Model {
 public:
  explicit Model(const TableOptions& options) : options_(options) {}

  void Insert(int call, uint64_t key, double priority) {
    if (Find(key) != nullptr || (inserts_.empty() && MayInsert())) {
      DoInsert(call, key, priority);
    } else {
      inserts_.push_back({call, key, priority});
    }
    Admit();
  }
  void Sample(int call, int64_t n) {
    samples_.push_back({call, static_cast<uint64_t>(n)});
    if (samples_.size() == 1 && MaySample()) {
      samples_.clear();
      DoSample(call, n);
    }
    Admit();
  }
  void Update(uint64_t key, double priority) {
    if (Entry* item = Find(key)) {
      item->priority = priority;
      item->touched = ++clock_;
    }
    Admit();
  }
  void Delete(uint64_t key) {
    if (Entry* item = Find(key)) Erase(item);
    Admit();
  }
  void Reset() {
    items.clear();
    inserts = samples = deletes = 0;
    Admit();
  }
  void Cancel(int call) {
    for (auto* queue : {&inserts_, &samples_}) {
      const auto found = std::find_if(queue->begin(), queue->end(),
                                      [&](const Call& waiting) { return waiting.id == call; });
      if (found == queue->end()) continue;
      queue->erase(found);
      results[call] = "CANCELLED";
    }
    Admit();
  }

  struct Entry {
    uint64_t key;
    double priority;
    int times_sampled;
    int touched;
  };
  std::vector<Entry> items;  // In order of insertion.
  int64_t inserts = 0, samples = 0, deletes = 0;
  std::map<int, std::string> results;

 private:
  struct Call {
    int id;
    uint64_t key_or_count;
    double priority = 0;
  };

  Entry* Find(uint64_t key) {
    for (Entry& item : items) {
      if (item.key == key) return &item;
    }
    return nullptr;
  }
  void Erase(Entry* item) {
    items.erase(items.begin() + (item - items.data()));
    ++deletes;
  }
  bool MayInsert() const {
    const auto& limit = options_.rate_limiter;
    return inserts + 1 - deletes <= limit.min_size_to_sample ||
           (inserts + 1) * limit.samples_per_insert - samples <= limit.max_diff;
  }
  bool MaySample() const {
    const auto& limit = options_.rate_limiter;
    return inserts - deletes >= limit.min_size_to_sample &&
           inserts * limit.samples_per_insert - samples - 1 >= limit.min_diff;
  }
  Entry* Pick(const selectors::SelectorOptions& selector) {
    if (std::holds_alternative<selectors::FifoOptions>(selector)) return &items.front();
    if (std::holds_alternative<selectors::LifoOptions>(selector)) return &items.back();
    const bool min_heap = std::get<selectors::HeapOptions>(selector).min_heap;
    return &*std::min_element(items.begin(), items.end(), [&](const Entry& a, const Entry& b) {
      const double pa = min_heap ? a.priority : -a.priority;
      const double pb = min_heap ? b.priority : -b.priority;
      return std::tie(pa, a.touched) < std::tie(pb, b.touched);
    });
  }
  void DoInsert(int call, uint64_t key, double priority) {
    results[call] = "ok";
    if (Entry* item = Find(key)) {
      item->priority = priority;
      item->touched = ++clock_;
      return;
    }
    items.push_back({key, priority, 0, ++clock_});
    ++inserts;
    if (static_cast<int64_t>(items.size()) > options_.max_size) Erase(Pick(options_.remover));
  }
  void DoSample(int call, int64_t n) {
    for (int64_t i = 0; i < n && MaySample(); ++i) {
      Entry* const item = Pick(options_.sampler);
      results[call] += std::to_string(item->key) + " ";
      ++item->times_sampled;
      ++samples;
      if (item->times_sampled == options_.max_times_sampled) Erase(item);
    }
  }
  void Admit() {
    for (bool again = true; again;) {
      again = false;
      if (!inserts_.empty() && (MayInsert() || Find(inserts_.front().key_or_count) != nullptr)) {
        const Call call = inserts_.front();
        inserts_.pop_front();
        DoInsert(call.id, call.key_or_count, call.priority);
        again = true;
      }
      if (!samples_.empty() && MaySample()) {
        const Call call = samples_.front();
        samples_.pop_front();
        DoSample(call.id, call.key_or_count);
        again = true;
      }
    }
  }

  const TableOptions options_;
  std::deque<Call> inserts_, samples_;
  int clock_ = 0;
};

struct Case {
  const char* name;
  selectors::SelectorOptions sampler, remover;
  int32_t max_times_sampled;
  rate_limiter::RateLimiterOptions limiter;
};

class TableModelTest : public testing::TestWithParam<Case> {};

TEST_P(TableModelTest, RandomOperationsDoWhatTheModelDoes) {
  for (int seed = 0; seed < 40; ++seed) {
    TableOptions options = Options(/*max_size=*/5);
    options.sampler = GetParam().sampler;
    options.remover = GetParam().remover;
    options.max_times_sampled = GetParam().max_times_sampled;
    options.rate_limiter = GetParam().limiter;
    Model model(options);
    const auto table = Table::Create(options).value();
    std::map<int, std::string> results;
    std::map<int, Table::WaitId> waiting;
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % n); };
    for (int step = 0; step < 300; ++step) {
      const uint64_t key = below(12);
      const double priority = below(4);
      switch (below(20)) {
        default:
          model.Insert(step, key, priority);
          waiting[step] = table->InsertOrAssignAsync(
              MakeItem(key, priority), absl::InfiniteFuture(),
              [&results, step](absl::Status status) {
                results[step] = status.ok() ? "ok" : absl::StatusCodeToString(status.code());
              });
          break;
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
        case 5:
        case 6:
        case 7: {
          const int n = 1 + below(3);
          model.Sample(step, n);
          waiting[step] = table->SampleAsync(n, absl::InfiniteFuture(), [&, step](auto samples) {
            if (!samples.ok()) {
              results[step] = absl::StatusCodeToString(samples.status().code());
              return;
            }
            for (uint64_t drawn : KeysOf(*samples)) results[step] += std::to_string(drawn) + " ";
          });
          break;
        }
        case 8:
          model.Update(key, priority);
          ASSERT_TRUE(table->MutateItems({{key, priority}}, {}).ok());
          break;
        case 9:
          model.Delete(key);
          ASSERT_TRUE(table->MutateItems({}, {key}).ok());
          break;
        case 10: {
          const int call = below(step + 1);
          if (!waiting.count(call)) break;
          model.Cancel(call);
          table->Cancel(waiting[call]);
          break;
        }
        case 11:
          if (below(20) > 0) break;
          model.Reset();
          table->Reset();
      }
      ASSERT_EQ(results, model.results) << "seed " << seed << " step " << step;
      const TableSnapshot snapshot = table->Snapshot();
      ASSERT_EQ(snapshot.items.size(), model.items.size());
      for (size_t i = 0; i < model.items.size(); ++i) {
        ASSERT_EQ(snapshot.items[i].key, model.items[i].key);
        ASSERT_EQ(snapshot.items[i].priority, model.items[i].priority);
        ASSERT_EQ(snapshot.items[i].times_sampled, model.items[i].times_sampled);
      }
      ASSERT_EQ(snapshot.info.counts.inserts, model.inserts);
      ASSERT_EQ(snapshot.info.counts.samples, model.samples);
      ASSERT_EQ(snapshot.info.counts.deletes, model.deletes);
    }
    table->Close();
  }
}

INSTANTIATE_TEST_SUITE_P(
    , TableModelTest,
    testing::Values(
        Case{"FifoMinSize", selectors::FifoOptions{}, selectors::FifoOptions{}, 0, MinSize(2)},
        Case{"Queue", selectors::FifoOptions{}, selectors::FifoOptions{}, 1, QueueOf(4)},
        Case{"Stack", selectors::LifoOptions{}, selectors::LifoOptions{}, 1, QueueOf(4)},
        Case{"Heaps", selectors::HeapOptions{false}, selectors::HeapOptions{true}, 3, MinSize(1)},
        Case{"Ratio", selectors::LifoOptions{}, selectors::FifoOptions{}, 0, {1.5, 3, 2, 7}},
        Case{"RatioHeap",
             selectors::HeapOptions{true},
             selectors::LifoOptions{},
             2,
             {0.5, 2, -1, 2}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace gear_reverb::table
