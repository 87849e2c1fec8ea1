#include "native/client/shm_batches.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/storage/trajectory.h"

namespace gear_reverb::client {
namespace {

using tensor::DType;
using ::testing::ElementsAre;

// Items with one int32 column of `lengths` steps, counting up from `first` through all items; each
// item's last step is a piece of its own.
batch::DrawnBatch MakeBatch(const std::vector<int32_t>& lengths, int32_t first) {
  auto values = std::make_shared<std::vector<int32_t>>();
  for (int32_t length : lengths) {
    for (int32_t i = 0; i < length; ++i) values->push_back(first++);
  }
  batch::DrawnBatch batch;
  batch::DrawnColumn column;
  column.dtype = DType::kInt32;
  const auto* data = reinterpret_cast<const std::byte*>(values->data());
  for (size_t i = 0; i < lengths.size(); ++i) {
    batch.keys.push_back(100 + i);
    batch.probabilities.push_back(0.5);
    batch.priorities.push_back(static_cast<double>(i));
    batch.table_sizes.push_back(7);
    batch.times_sampled.push_back(1);
    batch.rate_limited.push_back(0);
    const size_t bytes = 4 * lengths[i];
    if (lengths[i] > 1) column.pieces.push_back({data, bytes - 4});
    column.pieces.push_back({data + bytes - 4, 4});
    data += bytes;
    column.lengths.push_back(lengths[i]);
    column.piece_ends.push_back(static_cast<uint32_t>(column.pieces.size()));
  }
  batch.columns.push_back(std::move(column));
  batch.lease = std::move(values);
  return batch;
}

std::vector<int32_t> ValuesOf(const table::SampledItem& sample) {
  const storage::TrajectoryColumn& column = sample.item.trajectory->columns[0];
  std::vector<int32_t> values(column.length());
  storage::Gather(column, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

TEST(ShmBatches, SamplesPointIntoTheBatchAndHoldItsLease) {
  batch::DrawnBatch batch = MakeBatch({3, 1}, 10);
  const std::weak_ptr<const void> lease = batch.lease;
  const std::byte* first = batch.columns[0].pieces[0].data;
  auto samples = ToSamples(batch);
  ASSERT_TRUE(samples.ok()) << samples.status();
  batch = {};
  EXPECT_THAT(ValuesOf((*samples)[0]), ElementsAre(10, 11, 12));
  EXPECT_THAT(ValuesOf((*samples)[1]), ElementsAre(13));
  EXPECT_EQ((*samples)[1].item.key, 101u);
  EXPECT_EQ((*samples)[0].item.trajectory->columns[0].slices[0].source().data.data(), first);
  samples->erase(samples->begin());
  EXPECT_FALSE(lease.expired());
  samples->clear();
  EXPECT_TRUE(lease.expired());
}

TEST(ShmBatches, StringsAreCopied) {
  const std::string text = "hello";
  batch::DrawnBatch batch = MakeBatch({2}, 0);
  batch::DrawnColumn& column = batch.columns[0];
  column.dtype = DType::kString;
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  column.pieces = {{nullptr, 0}, {data, text.size()}};
  const auto samples = ToSamples(batch);
  ASSERT_TRUE(samples.ok()) << samples.status();
  const storage::TrajectoryColumn& strings = (*samples)[0].item.trajectory->columns[0];
  std::string packed(storage::LayoutOf(strings).bytes, '\0');
  storage::Gather(strings, reinterpret_cast<std::byte*>(packed.data()));
  EXPECT_EQ(packed.substr(3 * sizeof(uint64_t)), "hello");
}

TEST(ShmBatches, StepsWithoutElementsHaveALengthAllTheSame) {
  batch::DrawnBatch batch = MakeBatch({3}, 0);
  batch.columns[0].step_shape = {0};
  batch.columns[0].pieces = {{nullptr, 0}};
  batch.columns[0].piece_ends = {1};
  const auto samples = ToSamples(batch);
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ((*samples)[0].item.trajectory->columns[0].length(), 3);
}

TEST(ShmBatches, PiecesOfHalfStepsAreRefused) {
  batch::DrawnBatch batch = MakeBatch({2}, 0);
  batch.columns[0].pieces[0].bytes = 3;
  EXPECT_TRUE(absl::IsInvalidArgument(ToSamples(batch).status()));
}

}  // namespace
}  // namespace gear_reverb::client
