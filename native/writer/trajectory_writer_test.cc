#include <cmath>
#include <limits>

#include "native/writer/trajectory_writer_fixture.h"

namespace gear_reverb::writer {
namespace {

using ::testing::HasSubstr;

// ------------------------------------------------------------------------------ appending

TEST_F(TrajectoryWriterTest, AppendGivesACellPerValueAndNullForNone) {
  const Cells cells = Append({Int(1), std::nullopt, Text({"a", "bc"}, {2})});
  ASSERT_EQ(cells.size(), 3);
  EXPECT_EQ(cells[1], nullptr);
  EXPECT_EQ(cells[0]->Copy().value(), Int(1));
  EXPECT_EQ(cells[0]->dtype().value(), tensor::DType::kInt32);
  EXPECT_EQ(cells[2]->Copy().value(), Text({"a", "bc"}, {2}));
  EXPECT_EQ(cells[2]->shape().value(), tensor::Shape({2}));
}

TEST_F(TrajectoryWriterTest, ACellCanBeReadBeforeAndAfterItsChunkIsFinished) {
  const auto first = AppendInt(7);
  EXPECT_EQ(first->Copy().value(), Int(7));
  AppendInt(8);
  EXPECT_EQ(first->Copy().value(), Int(7));
}

TEST_F(TrajectoryWriterTest, ACellExpiresWhenItIsNoLongerAmongTheNewest) {
  const auto first = AppendInt(0);
  for (int i = 1; i < 4; ++i) AppendInt(i);
  EXPECT_FALSE(first->expired());
  AppendInt(4);
  EXPECT_TRUE(first->expired());
  EXPECT_TRUE(absl::IsFailedPrecondition(first->Copy().status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(first->dtype().status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(first->shape().status()));
}

TEST_F(TrajectoryWriterTest, CellsAreCountedPerColumnNotPerStep) {
  const auto first = Append({Int(0), Int(0)});
  for (int i = 0; i < 5; ++i) Append({Int(i)});
  EXPECT_TRUE(first[0]->expired());
  EXPECT_FALSE(first[1]->expired());
}

TEST_F(TrajectoryWriterTest, OnlyAppendEndsAStep) {
  Append({});
  AppendPartial({Int(1)});
  EXPECT_EQ(writer().episode_steps(), 1);
  Append({std::nullopt, Int(2)});
  EXPECT_EQ(writer().episode_steps(), 2);
}

TEST_F(TrajectoryWriterTest, AColumnTakesOneValuePerStep) {
  AppendPartial({Int(1)});
  const absl::Status status = AppendError({Int(2), Int(3)});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(TextOf(status), HasSubstr(" for column 0"));
  Append({std::nullopt, Int(3)});
  Append({Int(2)});
}

TEST_F(TrajectoryWriterTest, AWrongDtypeIsRefusedWithColumnAndBothSpecs) {
  Append({Int(1), Int(1)});
  EXPECT_EQ(AppendError({std::nullopt, Float(1)}),
            absl::InvalidArgumentError(
                "Tensor of wrong dtype provided for column 1. Got float32 but expected int32."));
}

TEST_F(TrajectoryWriterTest, AWrongShapeIsRefusedEvenInANewEpisode) {
  Append({Ints({1, 2}, {2})});
  ASSERT_TRUE(writer().EndEpisode(true).ok());
  EXPECT_EQ(AppendError({Ints({1, 2, 3}, {3})}),
            absl::InvalidArgumentError("Tensor of incompatible shape provided for column 0. Got "
                                       "[3] which is incompatible with [2]."));
}

TEST_F(TrajectoryWriterTest, AMalformedTensorIsRefusedWithItsColumn) {
  TensorCopy cut = Ints({1, 2}, {2});
  cut.bytes.pop_back();
  EXPECT_THAT(TextOf(AppendError({Int(1), cut})), HasSubstr("column 1"));
  TensorCopy negative = Ints({1, 2}, {-2});
  EXPECT_TRUE(absl::IsInvalidArgument(AppendError({negative})));
  TensorCopy text = Text({"abc"}, {});
  text.bytes.back() = 'x';
  text.bytes.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(AppendError({text})));
}

TEST_F(TrajectoryWriterTest, AFailedAppendLeavesNoValueBehind) {
  const auto first = Append({Int(1), Int(10)});
  EXPECT_FALSE(AppendError({Int(2), Float(20)}).ok());
  EXPECT_EQ(writer().episode_steps(), 1);
  const auto second = Append({Int(3), Int(30)});
  ASSERT_TRUE(Create({{first[0], second[0]}}).ok());
  ASSERT_TRUE(server_->WaitForItems(1));
  const storage::ChunkPtr chunk = server_->items()[0].item.trajectory->chunks()[0];
  EXPECT_EQ(chunk->steps(), 2);
  EXPECT_EQ(chunk->range().end, 1);
}

TEST_F(TrajectoryWriterTest, ANewColumnThatFailedMayComeAgainWithAnotherSpec) {
  Append({Int(1)});
  EXPECT_FALSE(AppendError({Float(2), Int(1)}).ok());
  const auto cells = Append({Int(2), Float(3)});
  EXPECT_EQ(cells[1]->Copy().value(), Float(3));
}

// -------------------------------------------------------------------------- configuration

TEST_F(TrajectoryWriterTest, BadChunkerOptionsAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ChunkerOptions& bad :
       {ConstantChunkerOptions(0, 1), ConstantChunkerOptions(0, 0), ConstantChunkerOptions(2, 1),
        ConstantChunkerOptions(-1, -1), AutoTunedChunkerOptions(0),
        AutoTunedChunkerOptions(int64_t{1} << 31), AutoTunedChunkerOptions(1, -1.0),
        AutoTunedChunkerOptions(1, nan)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(writer().ConfigureChunker(0, bad)));
    TrajectoryWriterOptions options = options_;
    options.chunker = bad;
    EXPECT_FALSE(TrajectoryWriter::Create(server_, options).ok());
  }
  EXPECT_TRUE(absl::IsInvalidArgument(writer().ConfigureChunker(-1, ConstantChunkerOptions(1, 1))));
}

TEST_F(TrajectoryWriterTest, AColumnToComeCanBeConfigured) {
  ASSERT_TRUE(writer().ConfigureChunker(1, ConstantChunkerOptions(3, 20)).ok());
  EXPECT_EQ(writer().max_num_keep_alive_refs(), 20);
  Cells last;
  for (int i = 0; i < 3; ++i) last = Append({Int(i), Int(i)});
  ASSERT_TRUE(Create({{last[1]}}).ok());
  ASSERT_TRUE(server_->WaitForItems(1));
  EXPECT_EQ(server_->items()[0].item.trajectory->chunks()[0]->steps(), 3);
}

TEST_F(TrajectoryWriterTest, AColumnWithAnOpenChunkCannotBeConfigured) {
  const auto cell = AppendInt(1);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(writer().ConfigureChunker(0, ConstantChunkerOptions(1, 1))));
  AppendInt(2);
  EXPECT_FALSE(cell->expired());
  ASSERT_TRUE(writer().ConfigureChunker(0, ConstantChunkerOptions(1, 1)).ok());
  EXPECT_TRUE(cell->expired());
}

// ---------------------------------------------------------------------------------- items

TEST_F(TrajectoryWriterTest, AnItemLeavesWhenItsLastChunkIsFinished) {
  const auto a = AppendInt(1);
  ASSERT_TRUE(Create({{a}}).ok());
  EXPECT_TRUE(server_->items().empty());
  AppendInt(2);
  ASSERT_EQ(server_->items().size(), 1);
  EXPECT_EQ(Gathered(server_->items()[0].item.trajectory->columns[0]), Ints({1}, {1}));
}

TEST_F(TrajectoryWriterTest, ItemsLeaveInTheOrderOfTheirCreation) {
  const auto first = Append({Int(1), Int(1)});
  ASSERT_TRUE(Create({{first[1]}}).ok());  // Its chunk stays open.
  Append({Int(2)});
  ASSERT_TRUE(Create({{first[0]}}).ok());  // Its chunk is finished.
  EXPECT_TRUE(server_->items().empty());
  Append({std::nullopt, Int(2)});
  const auto sent = server_->items();
  ASSERT_EQ(sent.size(), 2);
  EXPECT_NE(sent[0].item.trajectory->chunks()[0], sent[1].item.trajectory->chunks()[0]);
}

TEST_F(TrajectoryWriterTest, NeighbouringCellsOfAChunkMakeOneSlice) {
  Cells cells;
  for (int i = 0; i < 4; ++i) cells.push_back(AppendInt(i));
  ASSERT_TRUE(Create({cells, {cells[3], cells[2]}, {cells[1], cells[1]}, {cells[2]}},
                     {false, false, false, true})
                  .ok());
  ASSERT_TRUE(server_->WaitForItems(1));
  const auto& columns = server_->items()[0].item.trajectory->columns;
  EXPECT_EQ(columns[0].slices.size(), 2);
  EXPECT_EQ(Gathered(columns[0]), Ints({0, 1, 2, 3}, {4}));
  EXPECT_EQ(Gathered(columns[1]), Ints({3, 2}, {2}));
  EXPECT_EQ(Gathered(columns[2]), Ints({1, 1}, {2}));
  EXPECT_EQ(Gathered(columns[3]), Ints({2}, {}));
  EXPECT_TRUE(storage::CheckTrajectory(*server_->items()[0].item.trajectory).ok());
}

TEST_F(TrajectoryWriterTest, KeysAndEpisodesAreUniqueAndRangesTellMissingSteps) {
  const auto a = Append({Int(0), Int(0)});
  Append({std::nullopt, Int(1)});
  const auto c = Append({Int(2)});
  ASSERT_TRUE(Create({{a[0], c[0]}, {a[1]}}).ok());
  server_->set_auto_confirm(true);
  server_->ConfirmAll();
  ASSERT_TRUE(writer().EndEpisode(true).ok());
  const auto d = Append({Int(3), Int(3)});
  ASSERT_TRUE(Create({{d[0]}}).ok());
  ASSERT_TRUE(writer().Flush().ok());
  const auto sent = server_->items();
  const auto chunks = sent[0].item.trajectory->chunks();
  EXPECT_TRUE(chunks[0]->range().sparse);
  EXPECT_EQ(chunks[0]->range().start, 0);
  EXPECT_EQ(chunks[0]->range().end, 2);
  EXPECT_FALSE(chunks[1]->range().sparse);
  EXPECT_EQ(chunks[0]->range().episode_id, chunks[1]->range().episode_id);
  EXPECT_NE(chunks[0]->key(), chunks[1]->key());
  EXPECT_NE(sent[0].item.key, sent[1].item.key);
  const auto range = sent[1].item.trajectory->chunks()[0]->range();
  EXPECT_NE(range.episode_id, chunks[0]->range().episode_id);
  EXPECT_EQ(range.start, 0);
}

TEST_F(TrajectoryWriterTest, AnItemMayReachBackIntoTheEpisodeBefore) {
  server_->set_auto_confirm(true);
  const auto a = AppendInt(1);
  ASSERT_TRUE(writer().EndEpisode(/*clear_buffers=*/false).ok());
  const auto b = AppendInt(2);
  ASSERT_TRUE(Create({{a, b}}).ok());
  ASSERT_TRUE(writer().Flush().ok());
  EXPECT_EQ(Gathered(server_->items()[0].item.trajectory->columns[0]), Ints({1, 2}, {2}));
}

TEST_F(TrajectoryWriterTest, BadItemsAreRefusedAndNothingIsSent) {
  const auto a = Append({Int(1), Float(1), Ints({1, 2}, {2})});
  const auto error = [&](const std::vector<Cells>& columns, std::vector<bool> squeeze = {}) {
    const absl::Status status = Create(columns, squeeze);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return TextOf(status);
  };
  EXPECT_THAT(error({}), HasSubstr("trajectory must not be empty."));
  EXPECT_THAT(error({{a[0]}, {}}), HasSubstr("trajectory must not be empty."));
  EXPECT_THAT(error({{a[0]}, {nullptr}}), HasSubstr("Error in column 1"));
  EXPECT_EQ(error({{a[0], a[1]}}),
            "Error in column 0: Column references tensors with different dtypes: int32 (index 0) "
            "!= float32 (index 1).");
  EXPECT_EQ(error({{a[0]}, {a[0], a[2]}}),
            "Error in column 1: Column references tensors with incompatible shapes: [] (index 0) "
            "not compatible with [2] (index 1).");
  EXPECT_EQ(error({{a[0], a[0]}}, {true}),
            "Error in column 0: TrajectoryColumn must contain exactly one row when squeeze is set "
            "but got 2.");
  const auto other = TrajectoryWriter::Create(server_, options_).value();
  const auto foreign = other->Append(StepOf({Int(1)})).value();
  EXPECT_THAT(error({foreign}), HasSubstr("another writer"));
  for (int i = 0; i < 4; ++i) AppendInt(i);
  EXPECT_EQ(error({{a[0]}}), "Error in column 0: Column contains expired CellRef.");
  EXPECT_TRUE(writer().Flush().ok());
  EXPECT_TRUE(server_->items().empty());
}

TEST_F(TrajectoryWriterTest, APriorityMustBeFinite) {
  const auto a = AppendInt(1);
  for (double bad : {std::nan(""), -std::numeric_limits<double>::infinity(),
                     std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CreateItem(writer(), "t", bad, {{a}}, {false})));
  }
  for (double good : {0.0, -1.0}) {
    EXPECT_TRUE(CreateItem(writer(), "t", good, {{a}}, {false}).ok());
  }
}

// ------------------------------------------------------------------------------ signatures

class SignatureTest : public TrajectoryWriterTest {
 protected:
  SignatureTest() {
    options_.signatures =
        [](const std::string& table) -> absl::StatusOr<std::shared_ptr<const tensor::Signature>> {
      if (table == "free") return std::shared_ptr<const tensor::Signature>();
      if (table != "t") return absl::NotFoundError("No such table.");
      return std::make_shared<const tensor::Signature>(
          tensor::Signature{{"obs/a", "a", tensor::DType::kInt32, false, {-1, 2}},
                            {"b", "b", tensor::DType::kFloat32, false, {}}});
    };
    cells_ = Append({Ints({1, 2}, {2}), Float(1), Ints({1, 2, 3}, {3})});
  }
  Cells cells_;
};

TEST_F(SignatureTest, AFittingItemAndAnyItemOfATableWithoutSignatureAreTaken) {
  EXPECT_TRUE(Create({{cells_[0]}, {cells_[1]}}, {false, true}).ok());
  EXPECT_TRUE(CreateItem(writer(), "free", 1.0, {{cells_[2]}}, {false}).ok());
}

TEST_F(SignatureTest, AnUnknownTableIsRefused) {
  EXPECT_EQ(CreateItem(writer(), "zz", 1.0, {{cells_[0]}}, {false}),
            absl::InvalidArgumentError(
                "Unable to create item in table 'zz' since the table could not be found."));
}

TEST_F(SignatureTest, AMisfitIsRefusedWithPathAndBothSpecs) {
  EXPECT_THAT(TextOf(Create({{cells_[0]}})),
              HasSubstr("The trajectory has 1 columns but the table signature has 2 columns."));
  const std::string shape = TextOf(Create({{cells_[2]}, {cells_[1]}}, {false, true}));
  EXPECT_THAT(shape, HasSubstr("The table expects column 0 ('obs/a') to be a int32 [?,2] tensor "
                               "but got a int32 [1,3] tensor."));
  EXPECT_THAT(shape, HasSubstr("0: Tensor<name: 'obs/a', dtype: int32, shape: [?,2]>, 1: "));
  EXPECT_THAT(TextOf(Create({{cells_[0]}, {cells_[1]}})),
              HasSubstr("column 1 ('b') to be a float32 [] tensor but got a float32 [1] tensor"));
  EXPECT_THAT(TextOf(Create({{cells_[0]}, {cells_[0]}}, {true, false})),
              HasSubstr("to be a int32 [?,2] tensor but got a int32 [2] tensor"));
}

}  // namespace
}  // namespace gear_reverb::writer
