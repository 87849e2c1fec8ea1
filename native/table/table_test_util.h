// A small language for tests of tables.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "native/base/mutex.h"
#include "native/memory/arena.h"
#include "native/storage/chunk.h"
#include "native/table/table.h"

namespace gear_reverb::table {

inline constexpr absl::Time kPast = absl::InfinitePast();
inline constexpr double kAny = 1e300;

// Limiters: no limit but a minimal size; a queue of `size` items.
inline rate_limiter::RateLimiterOptions MinSize(int64_t size) { return {1, size, -kAny, kAny}; }
inline rate_limiter::RateLimiterOptions QueueOf(int64_t size) {
  return {1, 1, 0, static_cast<double>(size)};
}

inline TableOptions Options(int64_t max_size = 1000) {
  TableOptions options;
  options.name = "t";
  options.max_size = max_size;
  options.sampler = selectors::FifoOptions{};
  options.remover = selectors::FifoOptions{};
  options.rate_limiter = MinSize(1);
  options.has_seed = true;
  options.seed = 17;
  return options;
}

inline storage::ChunkPtr MakeChunk(uint64_t key, uint64_t episode = 1, int64_t int64s = 1) {
  const std::vector<int64_t> values(int64s, static_cast<int64_t>(key));
  const tensor::TensorView view{
      tensor::DType::kInt64,
      {int64s},
      {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(int64_t)}};
  const storage::SequenceRange range{episode, 0, static_cast<int32_t>(int64s - 1), false};
  return storage::CopyToChunk(*memory::ProcessArena(), key, range, {view}).value();
}

// One column over all of each chunk.
inline storage::TrajectoryPtr MakeTrajectory(const std::vector<storage::ChunkPtr>& chunks) {
  storage::TrajectoryBuilder trajectory;
  trajectory.columns.emplace_back();
  for (const auto& chunk : chunks) {
    trajectory.columns[0].slices.push_back({chunk, 0, static_cast<int32_t>(chunk->steps()), 0});
  }
  return std::move(trajectory).Build();
}

inline Item MakeItem(uint64_t key, double priority = 1, storage::TrajectoryPtr trajectory = {}) {
  Item item;
  item.key = key;
  item.priority = priority;
  item.trajectory = std::move(trajectory);
  return item;
}

inline std::vector<uint64_t> KeysOf(const std::vector<SampledItem>& samples) {
  std::vector<uint64_t> keys;
  for (const auto& sample : samples) keys.push_back(sample.item.key);
  return keys;
}

class TableTest : public testing::Test {
 protected:
  using Keys = std::vector<uint64_t>;

  ~TableTest() override { table.reset(); }  // Before what its callbacks write to.

  void Open(TableOptions options = Options()) {
    auto created = Table::Create(std::move(options));
    ASSERT_TRUE(created.ok()) << created.status();
    table = *std::move(created);
  }

  // Without waiting; whether it was allowed.
  bool Insert(uint64_t key, double priority = 1, storage::TrajectoryPtr trajectory = {}) {
    const absl::Status status =
        table->InsertOrAssign(MakeItem(key, priority, std::move(trajectory)), kPast);
    EXPECT_TRUE(status.ok() || absl::IsDeadlineExceeded(status)) << status;
    return status.ok();
  }
  // Without waiting; no keys if not allowed.
  Keys Sample(int64_t n) {
    const auto samples = table->Sample(n, kPast);
    EXPECT_TRUE(samples.ok() || absl::IsDeadlineExceeded(samples.status())) << samples.status();
    return samples.ok() ? KeysOf(*samples) : Keys();
  }

  // Calls that may wait; what came of them is written down as "NAME: ok", "NAME: 1 2" or
  // "NAME: CANCELLED" in the order of the callbacks.
  Table::WaitId StartInsert(const std::string& name, uint64_t key,
                            absl::Time deadline = absl::InfiniteFuture()) {
    return table->InsertOrAssignAsync(MakeItem(key), deadline, [this, name](absl::Status status) {
      Write(name, status.ok() ? "ok" : absl::StatusCodeToString(status.code()));
    });
  }
  Table::WaitId StartSample(const std::string& name, int64_t n,
                            absl::Time deadline = absl::InfiniteFuture()) {
    return table->SampleAsync(
        n, deadline, [this, name](absl::StatusOr<std::vector<SampledItem>> samples) {
          if (!samples.ok()) return Write(name, absl::StatusCodeToString(samples.status().code()));
          std::vector<std::string> keys;
          for (uint64_t key : KeysOf(*samples)) keys.push_back(std::to_string(key));
          std::string text;
          for (const auto& key : keys) text += (text.empty() ? "" : " ") + key;
          Write(name, text);
        });
  }
  std::vector<std::string> Written() {
    base::MutexLock lock(&mutex);
    return std::exchange(lines, {});
  }
  std::vector<std::string> WaitForLines(size_t count) {
    base::MutexLock lock(&mutex);
    written.WaitUntil(&mutex, absl::Now() + absl::Seconds(30),
                      [&] { return lines.size() >= count; });
    return std::exchange(lines, {});
  }

  std::shared_ptr<Table> table;

 private:
  void Write(const std::string& name, const std::string& text) {
    base::MutexLock lock(&mutex);
    lines.push_back(name + ": " + text);
    written.NotifyAll();
  }

  base::Mutex mutex;
  base::CondVar written;
  std::vector<std::string> lines;
};

}  // namespace gear_reverb::table
