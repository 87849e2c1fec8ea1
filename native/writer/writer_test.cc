#include "native/writer/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "native/writer/fake_insert_stream.h"
#include "native/writer/test_tensors.h"

namespace gear_reverb::writer {
namespace {

using ::testing::HasSubstr;

std::string TextOf(const absl::Status& status) { return std::string(status.message()); }

class WriterTest : public ::testing::Test {
 protected:
  WriterTest() {
    options_.chunk_length = 2;
    options_.max_timesteps = 3;
    options_.max_in_flight_items = 100;
    options_.sender.min_backoff = absl::Milliseconds(1);
    options_.sender.max_backoff = absl::Milliseconds(5);
    options_.close_max_unavailable = absl::Milliseconds(50);
  }
  ~WriterTest() override {
    writer_ = nullptr;
    EXPECT_EQ(server_->misuse(), "");
  }

  Writer& writer() {
    if (writer_ == nullptr) writer_ = Writer::Create(server_, options_).value();
    return *writer_;
  }

  static std::vector<tensor::TensorView> Views(const std::vector<TensorCopy>& tensors) {
    std::vector<tensor::TensorView> views;
    for (const TensorCopy& tensor : tensors) views.push_back(tensor.view());
    return views;
  }
  absl::Status Append(const std::vector<TensorCopy>& step) { return writer().Append(Views(step)); }
  absl::Status AppendSequence(const std::vector<TensorCopy>& columns) {
    return writer().AppendSequence(Views(columns));
  }
  void AppendInts(int32_t begin, int32_t end) {
    for (int32_t i = begin; i < end; ++i) EXPECT_TRUE(Append({Int(i), Ints({i, -i}, {2})}).ok());
  }
  absl::Status Create(int64_t num_timesteps, double priority = 1.0) {
    return writer().CreateItem("t", num_timesteps, priority);
  }
  std::vector<int32_t> SentInts(size_t item, size_t column) {
    return IntsOf(Gathered(server_->items().at(item).item.trajectory->columns[column]));
  }

  std::shared_ptr<FakeServer> server_ = std::make_shared<FakeServer>();
  WriterOptions options_;
  std::unique_ptr<Writer> writer_;
};

TEST_F(WriterTest, BadOptionsAreRefused) {
  const auto refused = [&](int64_t chunk_length, int64_t max_timesteps, int64_t max_in_flight) {
    WriterOptions options = options_;
    options.chunk_length = chunk_length;
    options.max_timesteps = max_timesteps;
    options.max_in_flight_items = max_in_flight;
    return absl::IsInvalidArgument(Writer::Create(server_, options).status());
  };
  EXPECT_TRUE(refused(1, 0, 1));
  EXPECT_TRUE(refused(0, 1, 1));
  EXPECT_TRUE(refused(2, 1, 1));
  EXPECT_TRUE(refused(1, 1, 0));
  EXPECT_TRUE(refused(1, int64_t{1} << 31, 1));
  EXPECT_FALSE(refused(1, 1, 1));
}

TEST_F(WriterTest, AnItemHasTheLastStepsOfAllColumnsAcrossChunks) {
  AppendInts(0, 4);
  ASSERT_TRUE(Create(3).ok());
  ASSERT_EQ(server_->items().size(), 1);
  EXPECT_EQ(SentInts(0, 0), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(SentInts(0, 1), (std::vector<int32_t>{1, -1, 2, -2, 3, -3}));
  const storage::Trajectory& trajectory = *server_->items()[0].item.trajectory;
  EXPECT_TRUE(storage::CheckTrajectory(trajectory).ok());
  EXPECT_EQ(trajectory.chunks().size(), 2);  // All columns share them.
  EXPECT_EQ(trajectory.columns[1].slices[0].column, 1);
  EXPECT_EQ(trajectory.chunks()[1]->range().start, 2);
  EXPECT_EQ(trajectory.chunks()[1]->range().end, 3);
}

TEST_F(WriterTest, AnItemLeavesWhenItsLastChunkIsFinished) {
  AppendInts(0, 1);
  ASSERT_TRUE(Create(1).ok());
  EXPECT_TRUE(server_->items().empty());
  AppendInts(1, 2);
  EXPECT_EQ(server_->items().size(), 1);
}

TEST_F(WriterTest, FlushFinishesTheChunkAndLaterItemsMayReachBackIntoIt) {
  server_->set_auto_confirm(true);
  AppendInts(0, 1);
  ASSERT_TRUE(Create(1).ok());
  ASSERT_TRUE(writer().Flush().ok());
  AppendInts(1, 3);
  ASSERT_TRUE(Create(3).ok());
  ASSERT_TRUE(writer().Flush().ok());
  EXPECT_EQ(SentInts(1, 0), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(server_->items()[1].new_chunk_keys.size(), 1);  // The first was kept.
}

TEST_F(WriterTest, ChunksOutOfReachAreNotKept) {
  AppendInts(0, 2);
  ASSERT_TRUE(Create(1).ok());
  AppendInts(2, 6);
  ASSERT_TRUE(Create(1).ok());
  const auto sent = server_->items();
  EXPECT_EQ(sent[0].keep_chunk_keys.size(), 1);
  EXPECT_EQ(sent[1].keep_chunk_keys, sent[1].new_chunk_keys);
}

TEST_F(WriterTest, ChunksWithinReachAreKept) {
  options_.chunk_length = 1;
  for (int32_t i = 0; i < 5; ++i) {
    AppendInts(i, i + 1);
    ASSERT_TRUE(Create(1).ok());
    EXPECT_EQ(server_->items()[i].keep_chunk_keys.size(), std::min(i + 1, 3));
  }
}

TEST_F(WriterTest, BadItemsAreRefused) {
  EXPECT_THAT(TextOf(Create(1)), HasSubstr("larger than number of buffered timesteps."));
  AppendInts(0, 4);
  EXPECT_THAT(TextOf(Create(5)), HasSubstr("larger than number of buffered timesteps."));
  EXPECT_THAT(TextOf(Create(4)), HasSubstr("`num_timesteps` must be <= `max_timesteps`"));
  for (int64_t bad : {0, -1}) EXPECT_TRUE(absl::IsInvalidArgument(Create(bad)));
  for (double bad : {std::nan(""), HUGE_VAL}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Create(1, bad)));
  }
  EXPECT_TRUE(server_->items().empty());
}

TEST_F(WriterTest, StepsOfAChunkMustAgree) {
  EXPECT_TRUE(absl::IsInvalidArgument(Append({})));
  AppendInts(0, 1);
  EXPECT_EQ(Append({Int(1)}), absl::InvalidArgumentError(
                                  "Number of tensors per timestep was inconsistent. Previously it "
                                  "was 2, but is now 1."));
  EXPECT_THAT(TextOf(Append({Int(1), Float(1)})),
              HasSubstr("index 1 is float32[] but earlier steps of the chunk have int32[2]"));
  EXPECT_TRUE(absl::IsInvalidArgument(Append({Int(1), Ints({1, 2, 3}, {3})})));
  TensorCopy cut = Ints({1, 2}, {2});
  cut.bytes.pop_back();
  EXPECT_THAT(TextOf(Append({Int(1), cut})), HasSubstr("index 1"));
  EXPECT_EQ(writer().steps(), 1);
}

TEST_F(WriterTest, ChunksMayDifferButNotWithinAnItem) {
  AppendInts(0, 2);
  ASSERT_TRUE(Append({Float(1), Int(1)}).ok());
  EXPECT_THAT(TextOf(Create(2)), HasSubstr("disagree at index 0: int32[] and float32[]"));
  ASSERT_TRUE(Append({Float(1), Int(1)}).ok());
  EXPECT_TRUE(Create(2).ok());
  ASSERT_TRUE(Append({Int(1)}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Create(2)));
  EXPECT_TRUE(Create(1).ok());
}

TEST_F(WriterTest, ASequenceIsAppendedStepByStep) {
  ASSERT_TRUE(
      AppendSequence({Ints({1, 2, 3}, {3}), Text({"a", "b", "cc", "", "e", "f"}, {3, 2})}).ok());
  EXPECT_EQ(writer().steps(), 3);
  ASSERT_TRUE(Create(2).ok());
  ASSERT_TRUE(AppendSequence({Ints({4}, {1}), Text({"g", "h"}, {1, 2})}).ok());
  EXPECT_EQ(SentInts(0, 0), (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(Gathered(server_->items()[0].item.trajectory->columns[1]),
            Text({"cc", "", "e", "f"}, {2, 2}));
}

TEST_F(WriterTest, BadSequencesAreRefusedWhole) {
  EXPECT_THAT(TextOf(AppendSequence({})), HasSubstr("empty data"));
  EXPECT_THAT(TextOf(AppendSequence({Int(1)})), HasSubstr("scalar tensor at index 0"));
  EXPECT_THAT(TextOf(AppendSequence({Ints({1, 2}, {2}), Ints({1}, {1})})),
              HasSubstr("non equal batch dimension: 0: int32[2], 1: int32[1]"));
  AppendInts(0, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(AppendSequence({Ints({1, 2}, {2})})));
  EXPECT_EQ(writer().steps(), 1);
  EXPECT_TRUE(AppendSequence({Ints({}, {0}), Ints({}, {0, 2})}).ok());
  EXPECT_EQ(writer().steps(), 1);
}

TEST_F(WriterTest, ItemsAreCheckedAgainstSignatures) {
  options_.signatures =
      [](const std::string& table) -> absl::StatusOr<std::shared_ptr<const tensor::Signature>> {
    if (table != "t") return absl::NotFoundError("Unable to find signatures for table 'zz'.");
    return std::make_shared<const tensor::Signature>(
        tensor::Signature{{"a", "a", tensor::DType::kInt32, false, {-1}}});
  };
  ASSERT_TRUE(Append({Int(1)}).ok());
  EXPECT_TRUE(Create(1).ok());  // Fits with its axis of time.
  EXPECT_EQ(writer().CreateItem("zz", 1, 1.0),
            absl::InvalidArgumentError("Unable to find signatures for table 'zz'."));
  ASSERT_TRUE(Append({Int(1)}).ok());
  ASSERT_TRUE(Append({Ints({1, 2, 3}, {3})}).ok());
  EXPECT_TRUE(Create(1).ok());  // Fits step by step.
  ASSERT_TRUE(Append({Ints({1, 2, 3}, {3})}).ok());
  ASSERT_TRUE(Append({Ints({1, 2}, {1, 2})}).ok());
  EXPECT_THAT(TextOf(Create(1)),
              HasSubstr("At timestep offset 0, flattened index 0, saw a tensor of dtype int32, "
                        "shape [1,2], but expected tensor 'a' of dtype int32 and shape compatible "
                        "with [?]."));
}

TEST_F(WriterTest, CreateItemWaitsWhileTooManyAreUnconfirmed) {
  options_.max_in_flight_items = 2;
  options_.chunk_length = 1;
  AppendInts(0, 1);
  ASSERT_TRUE(Create(1).ok());
  ASSERT_TRUE(Create(1).ok());
  std::atomic<bool> created = false;
  std::thread third([&] {
    EXPECT_TRUE(Create(1).ok());
    created = true;
  });
  EXPECT_EQ(server_->items().size(), 2);
  EXPECT_FALSE(created);
  server_->Confirm({server_->items()[0].item.key});
  third.join();
  EXPECT_EQ(server_->items().size(), 3);
}

TEST_F(WriterTest, CloseFlushes) {
  server_->set_auto_confirm(true);
  AppendInts(0, 1);
  ASSERT_TRUE(Create(1).ok());
  EXPECT_TRUE(writer().Close().ok());
  EXPECT_EQ(server_->items().size(), 1);
  const auto closed = [](const char* method) {
    return absl::FailedPreconditionError(
        absl::StrCat("Calling method ", method, " after Close has been called"));
  };
  EXPECT_EQ(Append({Int(1)}), closed("Append"));
  EXPECT_EQ(AppendSequence({Ints({1}, {1})}), closed("AppendSequence"));
  EXPECT_EQ(Create(1), closed("CreateItem"));
  EXPECT_EQ(writer().Flush(), closed("Flush"));
  EXPECT_EQ(writer().Close(), closed("Close"));
}

TEST_F(WriterTest, CloseGivesUpOnADeadServer) {
  server_->set_refuse(absl::UnavailableError("Connection refused"));
  AppendInts(0, 1);
  ASSERT_TRUE(Create(1).ok());
  const absl::Status status = writer().Close();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(TextOf(status), HasSubstr("Connection refused"));
}

TEST_F(WriterTest, CloseWithoutRetryDropsWhatMeetsADeadServer) {
  server_->set_refuse(absl::UnavailableError("Connection refused"));
  AppendInts(0, 1);
  ASSERT_TRUE(Create(1).ok());
  EXPECT_TRUE(writer().Close(/*retry_on_unavailable=*/false).ok());
}

TEST_F(WriterTest, CloseReturnsTheServersError) {
  const absl::Status error = absl::InternalError("Table is gone");
  AppendInts(0, 2);
  ASSERT_TRUE(Create(1).ok());
  server_->End(error);
  EXPECT_EQ(writer().Close(), error);
}

TEST_F(WriterTest, ItemsSurviveARestartOfTheServer) {
  AppendInts(0, 2);
  ASSERT_TRUE(Create(2).ok());
  server_->set_auto_confirm(true);
  server_->End(absl::UnavailableError("Socket closed"));
  EXPECT_TRUE(writer().Flush().ok());
  EXPECT_EQ(server_->items().size(), 2);
  EXPECT_EQ(SentInts(1, 0), (std::vector<int32_t>{0, 1}));
}

}  // namespace
}  // namespace gear_reverb::writer
