// Resident tables on the twin, and on one that does everything as late as it may.
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>

#include "native/device/resident_table_conformance.h"

namespace gear_reverb::device::testing {
namespace {

using Bytes = std::shared_ptr<std::byte>;

// One stream, whose work waits until somebody asks for it; memory, which is the process's own.
class LateWork {
 public:
  void Add(std::function<absl::Status()> work) {
    work_.push_back(std::move(work));
    ++added_;
  }
  absl::Status Run() {
    absl::Status status;
    for (; !work_.empty(); work_.pop_front(), ++done_) status.Update(work_.front()());
    return status;
  }
  // About half of it.
  void RunSome() {
    for (size_t n = work_.size() / 2; n > 0; --n, work_.pop_front(), ++done_) {
      EXPECT_TRUE(work_.front()().ok());
    }
  }
  uint64_t added() const { return added_; }
  uint64_t done() const { return done_; }

  // Neither read nor written before its time; elsewhere copies are made at once.
  std::map<const std::byte*, size_t> ranges;
  bool Has(const void* address) const {
    auto after = ranges.upper_bound(static_cast<const std::byte*>(address));
    if (after == ranges.begin()) return false;
    --after;
    return static_cast<const std::byte*>(address) < after->first + after->second;
  }

 private:
  std::deque<std::function<absl::Status()>> work_;
  uint64_t added_ = 0, done_ = 0;
};

class LateSelect final : public SelectBackend {
 public:
  explicit LateSelect(std::shared_ptr<LateWork> work) : work_(std::move(work)) {}
  size_t most_bytes = SIZE_MAX;  // Of one allocation.
  absl::StatusOr<void*> Allocate(size_t bytes) override {
    if (bytes > most_bytes) return absl::ResourceExhaustedError("no memory");
    GR_ASSIGN_OR_RETURN(void* const memory, twin_->Allocate(bytes));
    std::memset(memory, 0xee, bytes);
    work_->ranges[static_cast<std::byte*>(memory)] = bytes;
    return memory;
  }
  void Free(void* memory) override {
    EXPECT_TRUE(work_->Run().ok());
    work_->ranges.erase(static_cast<std::byte*>(memory));
    twin_->Free(memory);
  }
  absl::Status Fill(void* memory, int byte, size_t bytes, Stream stream) override {
    return Later([=, this] { return twin_->Fill(memory, byte, bytes, stream); });
  }
  absl::Status Copy(void* to, const void* from, size_t bytes, Stream stream) override {
    if (!work_->Has(to)) {
      GR_RETURN_IF_ERROR(work_->Run());
      return twin_->Copy(to, from, bytes, stream);
    }
    if (work_->Has(from)) {
      return Later([=, this] { return twin_->Copy(to, from, bytes, stream); });
    }
    std::vector<std::byte> read(bytes);
    std::memcpy(read.data(), from, bytes);
    return Later([=, this] { return twin_->Copy(to, read.data(), bytes, stream); });
  }
  absl::Status Synchronize(Stream) override { return work_->Run(); }
  absl::Status Write(const SelectionView& view, const SlotState* states, uint32_t n,
                     const ClaimTable& claims, Stream stream) override {
    return Later([=, this] { return twin_->Write(view, states, n, claims, stream); });
  }
  absl::Status Resum(const SelectionView& view, const SlotState* states, uint32_t n,
                     bool members_changed, Stream stream) override {
    return Later([=, this] { return twin_->Resum(view, states, n, members_changed, stream); });
  }
  absl::Status Draw(const SelectionView& view, DrawState* state, uint32_t n, double beta,
                    const DrawOutput& output, Stream stream) override {
    return Later([=, this] { return twin_->Draw(view, state, n, beta, output, stream); });
  }
  absl::Status Top(const SelectionView& view, uint32_t k, const DrawOutput& output,
                   Stream stream) override {
    return Later([=, this] { return twin_->Top(view, k, output, stream); });
  }

 private:
  absl::Status Later(std::function<absl::Status()> call) {
    work_->Add(std::move(call));
    return absl::OkStatus();
  }
  const std::shared_ptr<LateWork> work_;
  const std::shared_ptr<SelectBackend> twin_ = MakeSelectTwin();
};

class LateMark final : public Mark {
 public:
  explicit LateMark(std::shared_ptr<LateWork> work)
      : work_(std::move(work)), after_(work_->added()) {}
  bool done() const override { return work_->done() >= after_; }

 private:
  const std::shared_ptr<LateWork> work_;
  const uint64_t after_;
};

class LateBackend final : public DrawBackend {
 public:
  const std::shared_ptr<SelectBackend>& select() const override { return select_; }
  void LimitAllocations(size_t bytes) { static_cast<LateSelect&>(*select_).most_bytes = bytes; }
  absl::StatusOr<Bytes> AllocateHost(size_t bytes) override {
    auto* const memory = static_cast<std::byte*>(std::malloc(bytes));
    work_->ranges[memory] = bytes;
    return Bytes(memory, [work = work_](std::byte* data) {
      work->ranges.erase(data);
      std::free(data);
    });
  }
  void AddSource(std::shared_ptr<memory::Arena>) override {}
  const std::byte* AddressOf(const std::byte* data, uint64_t) override { return data; }
  absl::StatusOr<std::unique_ptr<Mark>> NewMark(Stream) override {
    auto mark = std::make_unique<LateMark>(work_);
    work_->RunSome();
    return mark;
  }
  absl::Status Synchronize() override { return work_->Run(); }
  absl::Status WriteEntries(const DirectoryView& directory, const EntryChanges& changes,
                            Stream stream) override {
    work_->Add([=, this] { return twin_->WriteEntries(directory, changes, stream); });
    return absl::OkStatus();
  }
  absl::Status Pick(const DirectoryView& directory, const Picked& picked, Stream stream) override {
    work_->Add([=, this] { return twin_->Pick(directory, picked, stream); });
    return absl::OkStatus();
  }
  absl::Status Weights(const double* probabilities, uint32_t n, double beta, float* weights,
                       Stream stream) override {
    work_->Add([=, this] { return twin_->Weights(probabilities, n, beta, weights, stream); });
    return absl::OkStatus();
  }
  absl::Status Gather(const RowList& list, uint64_t mean, std::byte* output,
                      Stream stream) override {
    work_->Add([=, this] { return twin_->Gather(list, mean, output, stream); });
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<LateWork> work_ = std::make_shared<LateWork>();
  const std::shared_ptr<SelectBackend> select_ = std::make_shared<LateSelect>(work_);
  const std::unique_ptr<DrawBackend> twin_ = MakeDrawTwin();
};

using Made = absl::StatusOr<std::shared_ptr<DrawBackend>>;

INSTANTIATE_TEST_SUITE_P(
    Cpu, ResidentTableTest,
    ::testing::Values(NamedDrawBackend{"Twin", [] { return Made(MakeDrawTwin()); }},
                      NamedDrawBackend{"Late",
                                       [] { return Made(std::make_shared<LateBackend>()); }}),
    [](const auto& info) { return info.param.name; });

// What a table let go of is freed once the work that may read it is done, and what came and went
// between two batches at once.
TEST(ResidentMemoryTest, HoldsItemsForAsLongAsTheyMayBeRead) {
  const auto backend = std::make_shared<LateBackend>();
  table::TableOptions options = table::Options(5000);
  options.sampler = selectors::UniformOptions{};
  const auto table = table::Table::Create(std::move(options)).value();
  auto resident = ResidentTable::Create(table, backend, {}).value();
  const auto blocks = [] { return memory::ProcessArena()->stats().live_blocks; };
  const auto insert = [&](uint64_t key) {
    ASSERT_TRUE(table->InsertOrAssign(table::MakeItem(key, 1, MakeContent(key, 1))).ok());
  };
  const auto prepare = [&] {
    ASSERT_TRUE(resident->Prepare(1, absl::InfinitePast(), nullptr).ok());
  };
  const size_t before = blocks();
  insert(1);
  const size_t of_item = blocks() - before;
  ASSERT_GT(of_item, 0u);
  prepare();
  ASSERT_TRUE(table->MutateItems({}, {1}).ok());
  EXPECT_EQ(blocks(), before + of_item);
  for (uint64_t key = 2; key < 1000; ++key) {
    insert(key);
    insert(key);  // In place of the first.
    ASSERT_TRUE(table->MutateItems({}, {key}).ok());
  }
  EXPECT_EQ(blocks(), before + of_item);
  insert(1000);
  prepare();  // The work is not done.
  EXPECT_EQ(blocks(), before + 2 * of_item);
  ASSERT_TRUE(backend->Synchronize().ok());
  prepare();
  EXPECT_EQ(blocks(), before + of_item);
  table->Reset();
  EXPECT_EQ(blocks(), before + of_item);
  resident = nullptr;
  EXPECT_EQ(blocks(), before);
}

TEST(ResidentMemoryTest, WithoutMemoryForADirectoryItSaysSo) {
  const auto backend = std::make_shared<LateBackend>();
  table::TableOptions options = table::Options(50000);
  options.sampler = selectors::UniformOptions{};
  const auto table = table::Table::Create(std::move(options)).value();
  auto resident = ResidentTable::Create(table, backend, {}).value();
  for (uint64_t key = 0; key < 5000; ++key) {
    ASSERT_TRUE(table->InsertOrAssign(table::MakeItem(key, 1, MakeContent(key, 1))).ok());
  }
  backend->LimitAllocations(150000);
  EXPECT_TRUE(absl::IsFailedPrecondition(resident->Prepare(1, absl::InfinitePast(), nullptr)));
  EXPECT_EQ(resident->why_not(), "the device has no memory for a directory of 5000 items");
  EXPECT_EQ(table->info().num_unused_samples, 1);
}

// More than is staged at once.
TEST(ResidentMemoryTest, ALargeTableIsCopiedInParts) {
  const auto backend = std::make_shared<LateBackend>();
  constexpr uint64_t kItems = 200000;
  table::TableOptions options = table::Options(kItems);
  options.sampler = selectors::UniformOptions{};
  const auto table = table::Table::Create(std::move(options)).value();
  std::vector<storage::TrajectoryPtr> items;
  for (uint64_t i = 0; i < 16; ++i) items.push_back(MakeContent(i, 16, 16));
  for (uint64_t key = 0; key < kItems; ++key) {
    ASSERT_TRUE(table->InsertOrAssign(table::MakeItem(key, 1, items[key % 16])).ok());
  }
  auto resident = ResidentTable::Create(table, backend, {}).value();
  ASSERT_TRUE(resident->Prepare(64, absl::InfinitePast(), nullptr).ok());
  auto plan = DrawPlan::Create(resident->directory(), 64, {}, false).value();
  const DrawnArrays& arrays = plan->arrays();
  auto* const output =
      static_cast<std::byte*>(backend->select()->Allocate(arrays.output_bytes).value());
  ASSERT_TRUE(plan->Enqueue(resident->selection(), 0, output, nullptr).ok());
  ASSERT_TRUE(resident->Collect(*plan, output, nullptr).ok());
  ASSERT_TRUE(backend->Synchronize().ok());
  const auto* const keys = reinterpret_cast<const uint64_t*>(output + arrays.keys.offset);
  const auto* const numbers = reinterpret_cast<const uint64_t*>(output + arrays.columns[0].offset);
  for (uint64_t i = 0; i < 64 * 16; ++i) {
    ASSERT_EQ(numbers[2 * i], keys[i / 16] % 16);
    ASSERT_EQ(numbers[2 * i + 1], i % 16);
  }
  plan = nullptr;
  backend->select()->Free(output);
}

}  // namespace
}  // namespace gear_reverb::device::testing
