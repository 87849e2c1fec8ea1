#include "native/device/draw_check.h"

#include <gmock/gmock.h>

namespace gear_reverb::device {
namespace {

// The twin, but for one thing that it does wrong.
class SpoiledDraws final : public DrawBackend {
 public:
  enum class Fault { kNone, kEntry, kPick, kWeight, kNothingWritten };
  explicit SpoiledDraws(Fault fault) : fault_(fault) {}

  const std::shared_ptr<SelectBackend>& select() const override { return twin_->select(); }
  absl::StatusOr<std::shared_ptr<std::byte>> AllocateHost(size_t bytes) override {
    return twin_->AllocateHost(bytes);
  }
  void AddSource(std::shared_ptr<memory::Arena>, DeviceTier*) override {}
  const std::byte* AddressOf(const std::byte* data, uint64_t) override { return data; }
  absl::StatusOr<std::unique_ptr<Mark>> NewMark(Stream stream) override {
    return twin_->NewMark(stream);
  }
  absl::Status Synchronize() override { return twin_->Synchronize(); }
  absl::Status WriteEntries(const DirectoryView& directory, const EntryChanges& changes,
                            Stream stream) override {
    const absl::Status status = twin_->WriteEntries(directory, changes, stream);
    if (fault_ == Fault::kEntry) ++directory.pieces[0].end;
    return status;
  }
  absl::Status Pick(const DirectoryView& directory, const Picked& picked, Stream stream) override {
    const absl::Status status = twin_->Pick(directory, picked, stream);
    if (fault_ == Fault::kPick) ++picked.rows[0].pieces;
    return status;
  }
  absl::Status Weights(const double* probabilities, uint32_t n, double beta, float* weights,
                       Stream stream) override {
    if (fault_ == Fault::kNothingWritten) return absl::OkStatus();
    const absl::Status status = twin_->Weights(probabilities, n, beta, weights, stream);
    if (fault_ == Fault::kWeight) weights[n - 1] += 1e-6f;
    return status;
  }
  absl::Status Gather(const RowList& list, const Pieces& pieces, std::byte* output,
                      Stream stream) override {
    return twin_->Gather(list, pieces, output, stream);
  }

 private:
  const Fault fault_;
  const std::unique_ptr<DrawBackend> twin_ = MakeDrawTwin();
};

using Fault = SpoiledDraws::Fault;

std::vector<std::string> Differences(Fault fault) {
  SpoiledDraws backend(fault);
  return CheckDraws(backend, 4, 3).value();
}

TEST(CheckDrawsTest, FindsNothingInTheTwin) {
  EXPECT_THAT(Differences(Fault::kNone), ::testing::IsEmpty());
}

TEST(CheckDrawsTest, FindsASingleDifferenceByName) {
  // A wrong entry may also be picked.
  EXPECT_THAT(Differences(Fault::kEntry), ::testing::Contains(::testing::HasSubstr("entries")));
  EXPECT_THAT(Differences(Fault::kPick),
              ::testing::Each(::testing::HasSubstr("picked rows differ from the twin's (seed 4")));
  for (const Fault fault : {Fault::kWeight, Fault::kNothingWritten}) {
    const auto differences = Differences(fault);
    EXPECT_EQ(differences.size(), 3u);
    EXPECT_THAT(differences, ::testing::Each(::testing::HasSubstr("importance weights")));
  }
  EXPECT_EQ(Differences(Fault::kPick).size(), 3u);
}

TEST(CheckDrawsTest, ThereAreRounds) {
  EXPECT_TRUE(absl::IsInvalidArgument(CheckDraws(*MakeDrawTwin(), 1, 0).status()));
}

}  // namespace
}  // namespace gear_reverb::device
