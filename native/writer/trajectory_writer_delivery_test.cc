// How a TrajectoryWriter's items reach the server, and what happens when they don't.
#include <thread>

#include "native/writer/trajectory_writer_fixture.h"

namespace gear_reverb::writer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// -------------------------------------------------------------------- flush, episodes, close

TEST_F(TrajectoryWriterTest, FlushFinishesChunksAndWaitsForConfirmation) {
  ASSERT_TRUE(Create({{AppendInt(1)}}).ok());
  std::thread confirm([&] {
    EXPECT_TRUE(server_->WaitForItems(1));
    server_->ConfirmAll();
  });
  EXPECT_TRUE(writer().Flush().ok());
  confirm.join();
  EXPECT_EQ(writer().stats().in_flight_items, 0);
  EXPECT_EQ(writer().stats().in_flight_bytes, 0);
}

TEST_F(TrajectoryWriterTest, FlushLeavesTheNewestItemsAlone) {
  server_->set_auto_confirm(true);
  const auto first = Append({Int(1), Int(1)});
  ASSERT_TRUE(Create({{first[0]}}).ok());
  ASSERT_TRUE(Create({{first[1]}}).ok());
  ASSERT_TRUE(writer().Flush(1).ok());
  EXPECT_EQ(server_->items().size(), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(writer().Flush(-1)));
}

TEST_F(TrajectoryWriterTest, AnItemThatFlushLeavesAloneCountsAsUnconfirmed) {
  const auto first = Append({Int(1), Int(1)});
  ASSERT_TRUE(Create({{first[0]}}).ok());
  ASSERT_TRUE(Create({{first[1]}}).ok());
  EXPECT_EQ(writer().Flush(1, Soon()),
            absl::DeadlineExceededError("Timeout exceeded with 1 items waiting to be written and "
                                        "1 items awaiting confirmation."));
  server_->ConfirmAll();
  EXPECT_TRUE(writer().Flush(1).ok());
}

TEST_F(TrajectoryWriterTest, FlushReturnsWhenSoManyAreStillUnconfirmed) {
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Create({{AppendInt(i)}}).ok());
  ASSERT_EQ(server_->items().size(), 4);
  server_->Confirm({server_->items()[0].item.key, server_->items()[3].item.key});
  EXPECT_TRUE(writer().Flush(2).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(writer().Flush(1, Soon())));
}

TEST_F(TrajectoryWriterTest, AnExpiredFlushTellsWhatIsMissingAndCanBeRepeated) {
  ASSERT_TRUE(Create({{AppendInt(1)}}).ok());
  const absl::Status status = writer().Flush(0, Soon());
  EXPECT_EQ(status, absl::DeadlineExceededError("Timeout exceeded with 0 items waiting to be "
                                                "written and 1 items awaiting confirmation."));
  server_->ConfirmAll();
  EXPECT_TRUE(writer().Flush().ok());
}

TEST_F(TrajectoryWriterTest, EndEpisodeClearsTheBuffersIfAsked) {
  const auto a = AppendInt(1);
  ASSERT_TRUE(writer().EndEpisode(/*clear_buffers=*/false).ok());
  EXPECT_FALSE(a->expired());
  EXPECT_EQ(writer().episode_steps(), 0);
  ASSERT_TRUE(writer().EndEpisode(/*clear_buffers=*/true).ok());
  EXPECT_TRUE(a->expired());
}

TEST_F(TrajectoryWriterTest, EndEpisodeClosesAnOpenStep) {
  AppendPartial({Int(1)});
  ASSERT_TRUE(writer().EndEpisode(true).ok());
  EXPECT_EQ(writer().episode_steps(), 0);
  Append({Int(2)});
  EXPECT_EQ(writer().episode_steps(), 1);
}

TEST_F(TrajectoryWriterTest, TheEpisodeEndsEvenIfEndEpisodeRunsOutOfTime) {
  const auto a = AppendInt(1);
  ASSERT_TRUE(Create({{a}}).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(writer().EndEpisode(true, Soon())));
  EXPECT_EQ(writer().episode_steps(), 0);
  EXPECT_TRUE(a->expired());
  AppendInt(2);
}

TEST_F(TrajectoryWriterTest, AfterCloseEverythingFailsButClose) {
  const auto a = AppendInt(1);
  ASSERT_TRUE(Create({{a}}).ok());
  writer().Close();
  writer().Close();
  EXPECT_TRUE(a->expired());
  const absl::Status closed =
      absl::FailedPreconditionError("TrajectoryWriter::Close has been called.");
  EXPECT_EQ(AppendError({Int(1)}), closed);
  EXPECT_EQ(writer().AppendPartial(StepOf({Int(1)})).status(), closed);
  EXPECT_EQ(Create({{a}}), closed);
  EXPECT_EQ(writer().Flush(), closed);
  EXPECT_EQ(writer().EndEpisode(true), closed);
  EXPECT_EQ(writer().ConfigureChunker(0, ConstantChunkerOptions(1, 1)), closed);
}

TEST_F(TrajectoryWriterTest, CloseEndsAFlushOfAnotherThread) {
  ASSERT_TRUE(Create({{AppendInt(1)}}).ok());
  absl::Status flushed;
  std::thread flush([&] { flushed = writer().Flush(); });
  ASSERT_TRUE(server_->WaitForItems(1));
  writer().Close();
  flush.join();
  EXPECT_TRUE(absl::IsFailedPrecondition(flushed));
}

TEST_F(TrajectoryWriterTest, ACellOutlivesItsWriterAsExpired) {
  const auto a = AppendInt(1);
  writer_ = nullptr;
  EXPECT_TRUE(a->expired());
}

// --------------------------------------------------------------------------------- faults

TEST_F(TrajectoryWriterTest, AnErrorOfTheServerIsReturnedByEveryLaterCall) {
  const auto a = AppendInt(1);
  ASSERT_TRUE(Create({{a}}).ok());
  AppendInt(2);
  const absl::Status error = absl::NotFoundError("Priority table t was not found");
  server_->End(error);
  EXPECT_EQ(writer().Flush(), error);
  EXPECT_EQ(AppendError({Int(3)}), error);
  EXPECT_EQ(Create({{a}}), error);
  EXPECT_EQ(writer().EndEpisode(true), error);
  writer().Close();
  EXPECT_TRUE(absl::IsFailedPrecondition(AppendError({Int(3)})));
}

TEST_F(TrajectoryWriterTest, UnconfirmedItemsAreSentAgainInOrderWhenTheServerIsBack) {
  Cells cells;
  for (int i = 0; i < 4; ++i) {
    cells.push_back(AppendInt(i));
    ASSERT_TRUE(Create({cells}).ok());
  }
  const auto before = server_->items();
  ASSERT_EQ(before.size(), 4);
  server_->Confirm({before[1].item.key});
  ASSERT_TRUE(writer().Flush(3).ok());
  server_->End(absl::UnavailableError("Socket closed"));
  ASSERT_TRUE(server_->WaitForItems(7));
  const auto after = server_->items();
  const std::vector<uint64_t> keys = {after[4].item.key, after[5].item.key, after[6].item.key};
  EXPECT_THAT(keys, ElementsAre(before[0].item.key, before[2].item.key, before[3].item.key));
  EXPECT_EQ(after[4].new_chunk_keys.size(), 1);  // The server had lost the chunks; …
  EXPECT_EQ(after[5].new_chunk_keys.size(), 1);
  EXPECT_EQ(after[6].new_chunk_keys.size(), 0);  // … and is sent each only once.
  server_->ConfirmAll();
  EXPECT_TRUE(writer().Flush().ok());
  EXPECT_EQ(writer().stats().reconnections, 1);
}

TEST_F(TrajectoryWriterTest, AnExpiredFlushNamesTheConnectionError) {
  server_->set_refuse(absl::UnavailableError("Connection refused"));
  ASSERT_TRUE(Create({{AppendInt(1)}}).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(writer().Flush(0, Soon())));
  ASSERT_TRUE(server_->WaitForStreams(2));  // The end of the first is known.
  const absl::Status status = writer().Flush(0, Soon());
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(TextOf(status), HasSubstr("1 items waiting to be written and 0 items"));
  EXPECT_THAT(TextOf(status), HasSubstr("Connection refused"));
  server_->set_auto_confirm(true);
  server_->set_refuse(absl::OkStatus());
  EXPECT_TRUE(writer().Flush().ok());
  EXPECT_EQ(server_->items().size(), 1);
}

TEST_F(TrajectoryWriterTest, CloseDoesNotWaitForADeadServer) {
  server_->set_refuse(absl::UnavailableError("Connection refused"));
  ASSERT_TRUE(Create({{AppendInt(1)}}).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(writer().Flush(0, Soon())));
  writer().Close();
}

TEST_F(TrajectoryWriterTest, AppendAndCreateItemWaitWhileTooMuchIsUnconfirmed) {
  options_.sender.max_in_flight_bytes = 3;
  options_.chunker = ConstantChunkerOptions(1, 4);
  const auto a = Append({Bytes(4)})[0];
  ASSERT_TRUE(Create({{a}}).ok());  // Too large, but alone.
  EXPECT_TRUE(absl::IsDeadlineExceeded(writer().Append(StepOf({Bytes(4)}), Soon()).status()));
  const absl::Status blocked = CreateItem(writer(), "t", 1, {{a}}, {false}, Soon());
  EXPECT_TRUE(absl::IsDeadlineExceeded(blocked));
  EXPECT_THAT(TextOf(blocked), HasSubstr("4 bytes in flight"));
  EXPECT_EQ(writer().episode_steps(), 1);
  EXPECT_GT(writer().stats().blocked, absl::ZeroDuration());
  std::thread confirm([&] { server_->ConfirmAll(); });
  Append({Bytes(4)});
  confirm.join();
  EXPECT_EQ(server_->items().size(), 1);
}

}  // namespace
}  // namespace gear_reverb::writer
