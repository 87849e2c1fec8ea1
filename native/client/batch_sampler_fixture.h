// Batch samplers of a server in this process, and the steps they draw.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/client/batch_sampler.h"
#include "native/client/inproc_connection.h"

namespace gear_reverb::client {

inline constexpr size_t kNoLimit = size_t{1} << 40;

inline absl::Time Soon() { return absl::Now() + absl::Milliseconds(30); }
inline absl::Time Late() { return absl::Now() + absl::Seconds(20); }

inline storage::TrajectoryPtr Steps(const std::vector<int32_t>& values) {
  const tensor::TensorView view{
      tensor::DType::kInt32,
      {static_cast<int64_t>(values.size())},
      {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(int32_t)}};
  const auto chunk = storage::CopyToChunk(*memory::ProcessArena(), 1, {}, {view}).value();
  return storage::TrajectoryBuilder::SliceOf(chunk, 0, static_cast<int32_t>(values.size()), false);
}

inline std::vector<int32_t> ValuesOf(const Batch& batch) {
  std::vector<int32_t> values(batch.layout.columns[0].bytes / sizeof(int32_t));
  std::memcpy(values.data(), batch.buffer.get() + batch.layout.columns[0].offset,
              batch.layout.columns[0].bytes);
  return values;
}

// A table that gives each item once, in order of insertion, unless told otherwise.
class BatchSamplerTest : public ::testing::Test {
 protected:
  void Start(int32_t max_times_sampled = 1,
             selectors::SelectorOptions sampler = selectors::FifoOptions{},
             table::Placement placement = {}) {
    table::TableOptions options;
    options.name = "t";
    options.sampler = sampler;
    options.remover = selectors::FifoOptions{};
    options.max_size = 1000;
    options.max_times_sampled = max_times_sampled;
    options.placement = placement;
    options.rate_limiter = {1, 1, -1e9, 1e9};
    service_ =
        *service::ReplayService::Create({*table::Table::Create(std::move(options))}, nullptr);
    connection_ = std::make_shared<InprocConnection>(service_);
  }
  BatchSamplerTest() { Start(); }

  void Insert(const std::vector<int32_t>& steps) {
    ASSERT_TRUE(table().InsertOrAssign({++key_, 1.0, 0, UINT32_MAX, {}, Steps(steps)}).ok());
  }
  void InsertMany(int32_t from, int32_t to) {
    for (int32_t i = from; i < to; ++i) Insert({i});
  }

  BatchSampler::Pointer MakeSampler(int64_t size, int64_t prefetch,
                                    std::optional<uint64_t> seed = std::nullopt) {
    BatchSamplerOptions options;
    options.table = "t";
    options.request = {size, batch::Ragged::kError, kNoLimit, std::nullopt};
    options.prefetch = prefetch;
    options.seed = seed;
    return *BatchSampler::Create([this](absl::Time) { return Connect(); }, options);
  }
  BatchSampler::Pointer MakeSequence(int64_t size, const SequenceLimits& limits,
                                     std::optional<size_t> block_bytes = std::nullopt,
                                     int64_t prefetch = 0) {
    BatchSamplerOptions options;
    options.table = "t";
    options.request = {size, batch::Ragged::kPack, kNoLimit, block_bytes};
    options.prefetch = prefetch;
    options.limits = limits;
    options.polled = true;
    return *BatchSampler::Create([this](absl::Time) { return Connect(); }, options);
  }
  // Keys are 1, 2, ... in the order of insertion.
  static std::vector<std::vector<uint64_t>> KeysUntilTheEnd(BatchSampler& sampler) {
    std::vector<std::vector<uint64_t>> keys;
    while (true) {
      const auto batch = sampler.Next(Late());
      if (!batch.ok()) {
        EXPECT_TRUE(absl::IsOutOfRange(batch.status())) << batch.status();
        return keys;
      }
      keys.push_back((*batch)->drawn.keys);
    }
  }
  absl::StatusOr<std::shared_ptr<Connection>> Connect() { return connection_; }

  table::Table& table() { return *service_->tables()[0]; }
  int64_t samples() { return table().info().counts.samples; }
  int64_t unused() { return table().info().num_unused_samples; }

  uint64_t key_ = 0;
  std::shared_ptr<service::ReplayService> service_;
  std::shared_ptr<Connection> connection_;
};

}  // namespace gear_reverb::client
