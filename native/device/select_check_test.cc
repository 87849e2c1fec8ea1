#include "native/device/select_check.h"

#include <gmock/gmock.h>

namespace gear_reverb::device {
namespace {

// Hands everything to the twin; then one output differs in one place.
class SpoiledBackend final : public SelectBackend {
 public:
  explicit SpoiledBackend(bool spoils_draws) : spoils_draws_(spoils_draws) {}

  absl::StatusOr<void*> Allocate(size_t bytes) override { return twin_->Allocate(bytes); }
  void Free(void* memory) override { twin_->Free(memory); }
  absl::Status Fill(void* memory, int byte, size_t bytes, Stream stream) override {
    return twin_->Fill(memory, byte, bytes, stream);
  }
  absl::Status Copy(void* to, const void* from, size_t bytes, Stream stream) override {
    return twin_->Copy(to, from, bytes, stream);
  }
  absl::Status Synchronize(Stream stream) override { return twin_->Synchronize(stream); }
  absl::Status Write(const SelectionView& view, const SlotState* states, uint32_t n,
                     const ClaimTable& claims, Stream stream) override {
    return twin_->Write(view, states, n, claims, stream);
  }
  absl::Status Resum(const SelectionView& view, const SlotState* states, uint32_t n,
                     bool members_changed, Stream stream) override {
    return twin_->Resum(view, states, n, members_changed, stream);
  }
  absl::Status Draw(const SelectionView& view, DrawState* state, uint32_t n, double beta,
                    const DrawOutput& output, Stream stream) override {
    const absl::Status status = twin_->Draw(view, state, n, beta, output, stream);
    if (spoils_draws_)
      output.weights[n - 1] = DoubleOf(BitsOf(output.weights[n - 1]) + (1ul << 29));
    return status;
  }
  absl::Status Top(const SelectionView& view, uint32_t k, const DrawOutput& output,
                   Stream stream) override {
    const absl::Status status = twin_->Top(view, k, output, stream);
    if (!spoils_draws_ && k > 1) std::swap(output.slots[0], output.slots[1]);
    return status;
  }

 private:
  const bool spoils_draws_;
  const std::shared_ptr<SelectBackend> twin_ = MakeSelectTwin();
};

TEST(CheckSelectionTest, FindsNothingInTheTwin) {
  for (const uint32_t slots : {2000u, 50000u}) {
    EXPECT_THAT(CheckSelection(MakeSelectTwin(), 3, slots).value(), ::testing::IsEmpty());
  }
}

TEST(CheckSelectionTest, FindsASingleDifference) {
  const auto draws = CheckSelection(std::make_shared<SpoiledBackend>(true), 3, 4000).value();
  EXPECT_EQ(draws.size(), 6u * 5);
  EXPECT_EQ(draws[0], "Fifo: a draw after 4000 changes differs from the twin's.");
  EXPECT_FALSE(CheckSelection(MakeSelectTwin(), 3, 100).ok());
  EXPECT_EQ(CheckSelection(std::make_shared<SpoiledBackend>(false), 3, 4000)->size(), 4u * 5 * 3);
}

TEST(MeasureTest, TimesDrawsFirstItemsAndUpdates) {
  const auto twin = [] { return MakeSelectTwin(); };
  const selectors::PrioritizedOptions weighted{0.6};
  for (const selectors::SelectorOptions& strategy : std::vector<selectors::SelectorOptions>{
           selectors::UniformOptions{}, weighted, selectors::FifoOptions{},
           selectors::HeapOptions{true}}) {
    EXPECT_GT(MeasureDraw(twin(), strategy, 5000, 100, 2).value(), 0);
  }
  EXPECT_GT(MeasureTop(twin(), selectors::LifoOptions{}, 5000, kMaxTop, 2).value(), 0);
  EXPECT_GT(MeasureUpdate(*MakeDrawTwin(), 5000, 100, 2).value(), 0);
  for (const auto& refused :
       {MeasureDraw(twin(), weighted, 0, 100, 2), MeasureDraw(twin(), weighted, 10, 0, 2),
        MeasureDraw(twin(), weighted, 10, 10, 0), MeasureTop(twin(), weighted, 10, 1, 2),
        MeasureUpdate(*MakeDrawTwin(), 10, 0, 2)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
  }
}

}  // namespace
}  // namespace gear_reverb::device
