// Items of known content, and batches of them that are compared with it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "native/base/status.h"
#include "native/device/resident_table.h"
#include "native/device/selection_test_util.h"
#include "native/table/table_test_util.h"

namespace gear_reverb::device::testing {

struct NamedDrawBackend {
  std::string name;
  absl::StatusOr<std::shared_ptr<DrawBackend>> (*make)();
};

constexpr int32_t kSteps = 6;

// Items of two columns of different width, of `kSteps` steps in so many pieces, and a squeezed one;
// all bytes follow from `content`.
inline storage::TrajectoryPtr MakeContent(uint64_t content, int32_t pieces,
                                          int32_t steps = kSteps) {
  storage::TrajectoryBuilder trajectory;
  trajectory.columns.resize(3);
  trajectory.columns[2].squeeze = true;
  for (int32_t first = 0; first < steps;) {
    const int32_t count =
        pieces-- > 1 ? std::max((steps - first) / (pieces + 1), 1) : steps - first;
    // The chunk has a step more on either side.
    std::vector<uint64_t> numbers;
    std::vector<uint8_t> bytes;
    for (int32_t step = first - 1; step <= first + count; ++step) {
      numbers.insert(numbers.end(), {content, static_cast<uint64_t>(step)});
      for (int i = 0; i < 5; ++i) bytes.push_back(static_cast<uint8_t>(content * 7 + step * 5 + i));
    }
    const auto view = [&](const auto& values, tensor::DType dtype, int64_t width) {
      return tensor::TensorView{
          dtype,
          {count + 2, width},
          {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(values[0])}};
    };
    const auto chunk = storage::CopyToChunk(*memory::ProcessArena(), content, {},
                                            {view(numbers, tensor::DType::kUint64, 2),
                                             view(bytes, tensor::DType::kUint8, 5)})
                           .value();
    trajectory.columns[0].slices.push_back({chunk, 1, count, 0});
    trajectory.columns[1].slices.push_back({chunk, 1, count, 1});
    if (first == 0) trajectory.columns[2].slices.push_back({chunk, 1, 1, 1});
    first += count;
  }
  return std::move(trajectory).Build();
}

class ResidentTableTest : public ::testing::TestWithParam<NamedDrawBackend> {
 protected:
  struct Content {
    uint64_t content;
    double priority;
  };
  using Contents = std::map<uint64_t, Content>;  // By key.
  struct Batch {
    std::byte* output;
    DrawnArrays arrays;
    uint32_t n;
    Contents contents;  // Of the table when the draws were allowed.
    int64_t table_size;
  };

  void SetUp() override {
    auto made = GetParam().make();
    if (!made.ok()) GTEST_SKIP() << made.status().message();
    backend = *std::move(made);
    backend->AddSource(memory::ProcessArena(), nullptr);
  }
  void TearDown() override {
    for (std::byte* const each : outputs) backend->select()->Free(each);
  }

  void Open(int64_t max_size, selectors::SelectorOptions sampler = selectors::UniformOptions{},
            rate_limiter::RateLimiterOptions limiter = table::MinSize(1), bool in_place = false,
            std::optional<Padding> with_padding = std::nullopt) {
    table::TableOptions options = table::Options(max_size);
    options.sampler = std::move(sampler);
    options.rate_limiter = limiter;
    table = table::Table::Create(std::move(options)).value();
    plan = nullptr;
    padding = with_padding;
    resident = ResidentTable::Create(table, backend, {9, in_place, TierOf(table), padding}).value();
    contents.clear();
  }
  // Of a table without items.
  virtual std::shared_ptr<DeviceTier> TierOf(const std::shared_ptr<table::Table>&) {
    return nullptr;
  }
  void Insert(uint64_t key, double priority, int32_t pieces = 1) {
    const uint64_t content = ++last_content;
    const auto item = MakeContent(content, pieces, StepsOf(content));
    ASSERT_TRUE(table->InsertOrAssign(table::MakeItem(key, priority, item)).ok());
    contents[key] = {content, priority};
  }
  int32_t StepsOf(uint64_t content) const {
    return padding.has_value() ? 1 + static_cast<int32_t>(content * 5 % 11) : kSteps;
  }
  // What the table has evicted meanwhile.
  void Forget() {
    Contents left;
    for (const auto& item : table->Snapshot().items) left[item.key] = contents.at(item.key);
    contents = std::move(left);
  }

  absl::StatusOr<Batch> Draw(uint32_t n, absl::Time deadline = absl::InfinitePast()) {
    GR_RETURN_IF_ERROR(resident->Prepare(n, deadline, nullptr));
    if (plan == nullptr || plan->version() != resident->directory().version() ||
        plan->size() != n) {
      GR_ASSIGN_OR_RETURN(plan, DrawPlan::Create(resident->directory(), n, {}, true, nullptr));
    }
    Forget();
    for (const auto& [key, item] : contents) longest = std::max(longest, StepsOf(item.content));
    Batch batch{nullptr, plan->arrays(), n, contents, resident->table_size()};
    SelectBackend& memory = *backend->select();
    batch.output = static_cast<std::byte*>(memory.Allocate(batch.arrays.output_bytes).value());
    outputs.push_back(batch.output);
    EXPECT_TRUE(memory.Fill(batch.output, 0xa5, batch.arrays.output_bytes, nullptr).ok());
    GR_RETURN_IF_ERROR(plan->Enqueue(resident->selection(), 0.5, batch.output, nullptr));
    GR_RETURN_IF_ERROR(resident->Collect(*plan, batch.output, nullptr));
    return batch;
  }

  template <typename T>
  std::vector<T> Read(const Batch& batch, const OutputArray& array) {
    return ToHost(*backend->select(), reinterpret_cast<const T*>(batch.output + array.offset),
                  array.bytes / sizeof(T));
  }
  std::vector<uint64_t> Keys(const Batch& batch) {
    return Read<uint64_t>(batch, batch.arrays.keys);
  }

  void ExpectContents(const Batch& batch) {
    ASSERT_EQ(batch.table_size, static_cast<int64_t>(batch.contents.size()));
    const auto keys = Keys(batch);
    const auto priorities = Read<double>(batch, batch.arrays.priorities);
    const auto numbers = Read<uint64_t>(batch, batch.arrays.columns[0]);
    const auto bytes = Read<uint8_t>(batch, batch.arrays.columns[1]);
    const auto firsts = Read<uint8_t>(batch, batch.arrays.columns[2]);
    const auto room = static_cast<uint32_t>(batch.arrays.columns[0].shape[1]);
    ASSERT_EQ(numbers.size(), batch.n * room * 2u);
    ASSERT_EQ(bytes.size(), batch.n * room * 5u);
    ASSERT_EQ(firsts.size(), batch.n * 5u);
    ASSERT_EQ(batch.arrays.sides.size(), padding.has_value() ? 1u : 0u);
    std::vector<int32_t> lengths(batch.n, kSteps);
    std::vector<uint8_t> mask(batch.n * room, 1);
    if (padding.has_value()) {
      lengths = Read<int32_t>(batch, *batch.arrays.sides[0].lengths);
      mask = Read<uint8_t>(batch, *batch.arrays.sides[0].mask);
      ASSERT_EQ(mask.size(), batch.n * room);
    }
    for (uint32_t draw = 0; draw < batch.n; ++draw) {
      const auto found = batch.contents.find(keys[draw]);
      ASSERT_NE(found, batch.contents.end()) << keys[draw];
      const auto [content, priority] = found->second;
      ASSERT_EQ(priorities[draw], priority);
      const auto steps = static_cast<uint32_t>(StepsOf(content));
      ASSERT_EQ(static_cast<uint32_t>(lengths[draw]), steps);
      for (uint32_t step = 0; step < room; ++step) {
        const size_t row = draw * room + step;
        const bool there = step < steps;
        ASSERT_EQ(mask[row], there);
        ASSERT_EQ(numbers[row * 2], there ? content : 0);
        ASSERT_EQ(numbers[row * 2 + 1], there ? step : 0);
        for (uint32_t i = 0; i < 5; ++i) {
          const auto expected = static_cast<uint8_t>(there ? content * 7 + step * 5 + i : 0);
          ASSERT_EQ(bytes[row * 5 + i], expected);
          if (step == 0) {
            ASSERT_EQ(firsts[draw * 5 + i], expected);
          }
        }
      }
    }
  }

  std::shared_ptr<DrawBackend> backend;
  std::vector<std::byte*> outputs;
  std::shared_ptr<table::Table> table;
  std::unique_ptr<ResidentTable> resident;
  std::unique_ptr<DrawPlan> plan;  // Ends before the directory that it is of.
  Contents contents;
  uint64_t last_content = 0;
  std::optional<Padding> padding;
  int32_t longest = 0;  // Of the items at a draw.
};

}  // namespace gear_reverb::device::testing
