// What the tests of TrajectoryWriter share: a writer with a fake server, and short verbs.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "native/writer/fake_insert_stream.h"
#include "native/writer/test_tensors.h"
#include "native/writer/trajectory_writer.h"

namespace gear_reverb::writer {

using Cells = TrajectoryWriter::Cells;

inline std::string TextOf(const absl::Status& status) { return std::string(status.message()); }

// `squeeze` has a flag for each of `columns`.
inline absl::Status CreateItem(TrajectoryWriter& writer, const std::string& table, double priority,
                               const std::vector<TrajectoryWriter::Cells>& columns,
                               const std::vector<bool>& squeeze,
                               absl::Time deadline = absl::InfiniteFuture()) {
  std::vector<std::vector<const CellRef*>> cells(columns.size());
  std::vector<TrajectoryWriter::ItemColumn> item;
  for (size_t i = 0; i < columns.size(); ++i) {
    for (const auto& cell : columns[i]) cells[i].push_back(cell.get());
    item.push_back({cells[i], squeeze[i]});
  }
  return writer.CreateItem(table, priority, item, deadline);
}

class TrajectoryWriterTest : public ::testing::Test {
 protected:
  TrajectoryWriterTest() {
    options_.chunker = ConstantChunkerOptions(2, 4);
    options_.sender.min_backoff = absl::Milliseconds(1);
    options_.sender.max_backoff = absl::Milliseconds(5);
  }

  ~TrajectoryWriterTest() override {
    writer_ = nullptr;
    EXPECT_EQ(server_->misuse(), "");
  }

  TrajectoryWriter& writer() {
    if (writer_ == nullptr) writer_ = TrajectoryWriter::Create(server_, options_).value();
    return *writer_;
  }

  static TrajectoryWriter::Step StepOf(const std::vector<std::optional<TensorCopy>>& values) {
    TrajectoryWriter::Step step;
    for (const auto& value : values) {
      step.push_back(value.has_value() ? std::make_optional(value->view()) : std::nullopt);
    }
    return step;
  }

  Cells Append(const std::vector<std::optional<TensorCopy>>& values) {
    auto cells = writer().Append(StepOf(values));
    EXPECT_TRUE(cells.ok()) << cells.status();
    return cells.ok() ? *std::move(cells) : Cells();
  }
  Cells AppendPartial(const std::vector<std::optional<TensorCopy>>& values) {
    auto cells = writer().AppendPartial(StepOf(values));
    EXPECT_TRUE(cells.ok()) << cells.status();
    return cells.ok() ? *std::move(cells) : Cells();
  }
  std::shared_ptr<CellRef> AppendInt(int32_t value) { return Append({Int(value)})[0]; }

  absl::Status AppendError(const std::vector<std::optional<TensorCopy>>& values) {
    return writer().Append(StepOf(values)).status();
  }

  absl::Status Create(const std::vector<Cells>& columns, std::vector<bool> squeeze = {}) {
    squeeze.resize(columns.size());
    return CreateItem(writer(), "t", 1.0, columns, squeeze);
  }

  static absl::Time Soon() { return absl::Now() + absl::Milliseconds(50); }

  std::shared_ptr<FakeServer> server_ = std::make_shared<FakeServer>();
  TrajectoryWriterOptions options_;
  std::unique_ptr<TrajectoryWriter> writer_;
};

}  // namespace gear_reverb::writer
