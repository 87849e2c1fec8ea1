#include "native/writer/structured_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "native/base/log.h"
#include "native/writer/fake_insert_stream.h"
#include "native/writer/scalar_value.h"
#include "native/writer/test_tensors.h"

namespace gear_reverb::writer {
namespace {

using ::testing::HasSubstr;
using Left = PatternCondition::Left;
using Compare = PatternCondition::Compare;

std::string TextOf(const absl::Status& status) { return std::string(status.message()); }

// A config that takes the last `count` steps of column 0.
StructuredConfig LastSteps(int64_t count) {
  StructuredConfig config;
  config.table = "t";
  config.nodes = {{.column = 0, .first = count, .count = count}};
  config.priority = {PatternPriority::Kind::kConstant, 1.0};
  return config;
}

class StructuredWriterTest : public ::testing::Test {
 protected:
  StructuredWriterTest() { server_->set_auto_confirm(true); }

  absl::Status Start(std::vector<StructuredConfig> configs) {
    auto made = StructuredWriter::Create(server_, options_, std::move(configs));
    if (made.ok()) writer_ = *std::move(made);
    return made.status();
  }

  absl::Status Append(const std::vector<std::optional<TensorCopy>>& values, bool partial = false) {
    StructuredWriter::Step step;
    for (const auto& value : values) {
      step.push_back(value.has_value() ? std::make_optional(value->view()) : std::nullopt);
    }
    if (absl::Status status = writer_->Append(step, partial, absl::InfiniteFuture());
        !status.ok()) {
      return status;
    }
    return writer_->InsertItems(absl::InfiniteFuture());
  }

  // Items inserted so far.
  size_t Items() {
    EXPECT_TRUE(writer_->Flush(0, absl::InfiniteFuture()).ok());
    return server_->items().size();
  }

  std::shared_ptr<FakeServer> server_ = std::make_shared<FakeServer>();
  TrajectoryWriterOptions options_;
  std::unique_ptr<StructuredWriter> writer_;
};

TEST_F(StructuredWriterTest, InsertsAnItemPerStepOnceThePatternFits) {
  ASSERT_TRUE(Start({LastSteps(3)}).ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Append({Int(i)}).ok());
  EXPECT_EQ(Items(), 3);
}

TEST_F(StructuredWriterTest, AppliesAConfigOncePerStep) {
  ASSERT_TRUE(Start({LastSteps(1), LastSteps(2)}).ok());
  ASSERT_TRUE(Append({Int(0)}, /*partial=*/true).ok());
  EXPECT_TRUE(writer_->step_is_open());
  ASSERT_TRUE(Append({}).ok());
  EXPECT_FALSE(writer_->step_is_open());
  EXPECT_EQ(Items(), 1);
}

TEST_F(StructuredWriterTest, RefusesASecondValueInOneStep) {
  ASSERT_TRUE(Start({LastSteps(1)}).ok());
  ASSERT_TRUE(Append({Int(0)}, /*partial=*/true).ok());
  const absl::Status status = Append({Int(1)});
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(TextOf(status), HasSubstr("column 0"));
  EXPECT_TRUE(writer_->step_is_open());
}

TEST_F(StructuredWriterTest, AFailedAppendChangesNothing) {
  ASSERT_TRUE(Start({LastSteps(2)}).ok());
  ASSERT_TRUE(Append({Int(0)}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Append({Float(1)})));
  EXPECT_EQ(Items(), 0);
  ASSERT_TRUE(Append({Int(1)}).ok());
  EXPECT_EQ(Items(), 1);
}

TEST_F(StructuredWriterTest, EndOfEpisode) {
  StructuredConfig at_end = LastSteps(2);
  at_end.at_end_of_episode = true;
  ASSERT_TRUE(Start({at_end}).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Append({Int(i)}).ok());
  EXPECT_EQ(Items(), 0);
  ASSERT_TRUE(writer_->EndEpisode(true, absl::InfiniteFuture()).ok());
  EXPECT_EQ(Items(), 1);
  ASSERT_TRUE(writer_->EndEpisode(true, absl::InfiniteFuture()).ok());
  ASSERT_TRUE(Append({Int(4)}).ok());
  ASSERT_TRUE(writer_->EndEpisode(true, absl::InfiniteFuture()).ok());  // Too short.
  EXPECT_EQ(Items(), 1);
}

TEST_F(StructuredWriterTest, TheEpisodeEndsEvenIfThereIsNoRoomForItsItems) {
  options_.sender.max_in_flight_bytes = 1;
  StructuredConfig at_end = LastSteps(1);
  at_end.at_end_of_episode = true;
  ASSERT_TRUE(Start({LastSteps(1), at_end}).ok());
  server_->set_auto_confirm(false);
  ASSERT_TRUE(Append({Int(0)}).ok());
  const TensorCopy value = Int(1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      writer_->Append({value.view()}, /*partial=*/false, absl::InfinitePast())));
  EXPECT_TRUE(absl::IsDeadlineExceeded(writer_->EndEpisode(true, absl::InfinitePast())));
  EXPECT_EQ(server_->items().size(), 2);
  server_->set_auto_confirm(true);
  server_->ConfirmAll();
  ASSERT_TRUE(writer_->EndEpisode(true, absl::InfiniteFuture()).ok());  // Of no steps.
  EXPECT_EQ(Items(), 2);
}

TEST_F(StructuredWriterTest, FlushesWhenItIsDestroyed) {
  ASSERT_TRUE(Start({LastSteps(2)}).ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Append({Int(i)}).ok());
  writer_ = nullptr;
  EXPECT_EQ(server_->items().size(), 4);
}

TEST_F(StructuredWriterTest, KnowsWhichColumnsItUses) {
  StructuredConfig config = LastSteps(1);
  config.nodes[0].column = 7;
  config.conditions = {{.left = Left::kData, .column = 2}};
  ASSERT_TRUE(Start({config, LastSteps(3)}).ok());
  for (const int used : {0, 2, 7}) EXPECT_TRUE(writer_->Uses(used));
  for (const int unused : {-1, 1, 3, 8}) EXPECT_FALSE(writer_->Uses(unused));
}

TEST_F(StructuredWriterTest, WarnsOnceOfDataThatCannotBeCompared) {
  int warnings = 0;
  base::SetLogSink([&](base::LogLevel, const std::string& text) {
    EXPECT_THAT(text, HasSubstr("column 0"));
    ++warnings;
  });
  StructuredConfig config = LastSteps(1);
  config.conditions = {{.left = Left::kData, .compare = Compare::kGreaterEqual}};
  ASSERT_TRUE(Start({config}).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Append({Float(1)}).ok());
  base::SetLogSink(nullptr);
  EXPECT_EQ(warnings, 1);
  EXPECT_EQ(Items(), 0);
}

TEST_F(StructuredWriterTest, RefusesConfigsThatReachNowhere) {
  EXPECT_TRUE(absl::IsInvalidArgument(Start({})));
  std::vector<StructuredConfig> bad(9, LastSteps(2));
  bad[0].table.clear();
  bad[1].nodes.clear();
  bad[2].nodes[0].column = -1;
  bad[3].nodes[0].first = 0;
  bad[4].nodes[0].count = 0;
  bad[5].nodes[0].step = 0;
  bad[6].nodes[0].step = 2;  // Beyond the newest step.
  bad[7].nodes[0].squeeze = true;
  bad[8].conditions = {{.left = Left::kStepIndex, .compare = Compare::kModuloEqual, .modulus = 0}};
  for (const StructuredConfig& config : bad) {
    const absl::Status status = Start({LastSteps(1), config});
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(TextOf(status), HasSubstr("position 1"));
  }
}

TEST(PatternConditionTest, Holds) {
  const PatternCondition mod{.compare = Compare::kModuloEqual, .value = 1, .modulus = 3};
  EXPECT_TRUE(mod.Holds(4));
  EXPECT_FALSE(mod.Holds(3));
  EXPECT_FALSE(mod.Holds(-2));  // -2 % 3 == -2.
  const PatternCondition below{.compare = Compare::kGreaterEqual, .value = 3, .inverse = true};
  EXPECT_TRUE(below.Holds(2));
  EXPECT_FALSE(below.Holds(3));
}

TEST(ScalarValueTest, IntegersAreExactAndOthersHaveNone) {
  const auto of = [](tensor::DType dtype, tensor::Shape shape, const auto& value) {
    return IntegerOf({dtype, shape, {reinterpret_cast<const std::byte*>(&value), sizeof(value)}});
  };
  using tensor::DType;
  EXPECT_EQ(of(DType::kInt8, {}, int8_t{-5}), -5);
  EXPECT_EQ(of(DType::kUint32, {}, uint32_t{0xffffffff}), 0xffffffff);
  EXPECT_EQ(of(DType::kUint64, {1, 1}, ~uint64_t{0}), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(of(DType::kBool, {}, true), 1);
  EXPECT_EQ(of(DType::kFloat32, {}, 1.0f), std::nullopt);
  EXPECT_EQ(of(DType::kInt32, {2}, int64_t{1}), std::nullopt);
  EXPECT_EQ(of(DType::kInt32, {0}, int32_t{1}), std::nullopt);
}

}  // namespace
}  // namespace gear_reverb::writer
