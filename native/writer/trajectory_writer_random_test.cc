// Random programs against a model: whatever is appended, configured, referred to, flushed and
// interrupted, the server gets every item once confirmed, in order, with the right tensors, and
// never the same chunk twice on one stream.
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "native/writer/trajectory_writer_fixture.h"

namespace gear_reverb::writer {
namespace {

class Program {
 public:
  Program(TrajectoryWriter* writer, FakeServer* server, uint32_t seed)
      : writer_(writer), server_(server), random_(seed), columns_(Below(4) + 1) {}

  void Run(int operations) {
    for (int i = 0; i < operations && !::testing::Test::HasFatalFailure(); ++i) {
      switch (Below(12)) {
        case 0:
        case 1:
        case 2:
        case 3: Append(/*partial=*/false); break;
        case 4: Append(/*partial=*/true); break;
        case 5:
        case 6:
        case 7: CreateItem(); break;
        case 8: Configure(); break;
        case 9: ASSERT_TRUE(writer_->Flush(Below(4)).ok()); break;
        case 10:
          if (Below(4) == 0) EndEpisode();
          break;
        case 11:
          if (Below(4) == 0) server_->End(absl::UnavailableError("lost"));
          break;
      }
    }
    ASSERT_TRUE(writer_->Flush().ok());
  }

  // Every item arrived, in order, with its tensors.
  void CheckSent() const {
    std::set<uint64_t> seen;
    size_t next = 0;
    std::map<int, std::set<uint64_t>> sent_chunks;  // By stream.
    for (const SentItem& sent : server_->items()) {
      for (uint64_t key : sent.new_chunk_keys) {
        EXPECT_TRUE(sent_chunks[sent.stream].insert(key).second) << "a chunk was sent twice";
      }
      if (!seen.insert(sent.item.key).second) continue;  // Sent again on another stream.
      ASSERT_LT(next, expected_.size());
      const auto& columns = sent.item.trajectory->columns;
      ASSERT_TRUE(storage::CheckTrajectory(*sent.item.trajectory).ok());
      ASSERT_EQ(columns.size(), expected_[next].size());
      for (size_t i = 0; i < columns.size(); ++i) {
        EXPECT_EQ(Gathered(columns[i]), expected_[next][i]);
      }
      ++next;
    }
    EXPECT_EQ(next, expected_.size());
  }

 private:
  struct Cell {
    std::shared_ptr<CellRef> ref;
    TensorCopy value;
  };

  int Below(int bound) { return static_cast<int>(random_() % bound); }

  // Column 0: scalars; 1: vectors; 2: strings; 3: large enough to be chunked singly.
  TensorCopy Value(size_t column) {
    switch (column) {
      case 0: return Int(counter_++);
      case 1: return Ints({counter_, -counter_++}, {2});
      case 2: return Text({std::string(Below(5), 'x'), std::to_string(counter_++)}, {2});
      default: return Bytes(5000, static_cast<uint8_t>(counter_++));
    }
  }

  void Append(bool partial) {
    std::vector<std::optional<TensorCopy>> values(columns_);
    TrajectoryWriter::Step step(columns_);
    for (size_t i = 0; i < columns_; ++i) {
      if (Below(4) == 0 || set_.contains(i)) continue;
      values[i] = Value(i);
      step[i] = values[i]->view();
    }
    const auto cells = partial ? writer_->AppendPartial(step) : writer_->Append(step);
    ASSERT_TRUE(cells.ok()) << cells.status();
    for (size_t i = 0; i < columns_; ++i) {
      ASSERT_EQ((*cells)[i] != nullptr, values[i].has_value());
      if (!values[i].has_value()) continue;
      history_[i].push_back({(*cells)[i], *values[i]});
      set_.insert(i);
    }
    if (!partial) set_.clear();
  }

  void CreateItem() {
    std::vector<Cells> columns;
    std::vector<bool> squeeze;
    std::vector<TensorCopy> expected;
    for (int n = Below(3) + 1; n > 0; --n) {
      const auto& cells = history_[Below(columns_)];
      size_t alive = 0;
      while (alive < cells.size() && !cells[cells.size() - 1 - alive].ref->expired()) ++alive;
      if (alive == 0) continue;
      const size_t length = Below(alive) + 1;
      const size_t begin = cells.size() - alive + Below(alive - length + 1);
      const bool stride = Below(4) == 0;
      Cells refs;
      std::vector<TensorCopy> values;
      for (size_t i = begin; i < begin + length; i += stride ? 2 : 1) {
        refs.push_back(cells[i].ref);
        values.push_back(cells[i].value);
        ASSERT_EQ(cells[i].ref->Copy().value(), cells[i].value);
      }
      squeeze.push_back(refs.size() == 1 && Below(2) == 0);
      expected.push_back(squeeze.back() ? values[0] : Stacked(values));
      columns.push_back(std::move(refs));
    }
    if (columns.empty()) return;
    ASSERT_TRUE(writer::CreateItem(*writer_, "t", 1.0, columns, squeeze).ok());
    expected_.push_back(std::move(expected));
  }

  void Configure() {
    const int64_t keep = Below(9) + 1;
    const absl::Status status = writer_->ConfigureChunker(
        Below(columns_), Below(2) == 0 ? AutoTunedChunkerOptions(keep)
                                       : ConstantChunkerOptions(Below(keep) + 1, keep));
    EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
  }

  void EndEpisode() {
    ASSERT_TRUE(writer_->EndEpisode(Below(2) == 0).ok());
    set_.clear();
  }

  TrajectoryWriter* const writer_;
  FakeServer* const server_;
  std::mt19937 random_;
  const size_t columns_;
  int32_t counter_ = 0;
  std::map<size_t, std::vector<Cell>> history_;
  std::set<size_t> set_;  // Columns with a value in the open step.
  std::vector<std::vector<TensorCopy>> expected_;
};

TEST_F(TrajectoryWriterTest, RandomProgramsDeliverEveryItem) {
  server_->set_auto_confirm(true);
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    server_ = std::make_shared<FakeServer>();
    server_->set_auto_confirm(seed % 2 == 0);
    std::atomic<bool> done = false;
    std::thread confirm([&] {  // Slow, so that items pile up and streams break under them.
      while (seed % 2 == 1 && !done) {
        server_->ConfirmAll();
        std::this_thread::yield();
      }
    });
    options_.chunker = seed % 3 == 0 ? AutoTunedChunkerOptions(6) : ConstantChunkerOptions(3, 6);
    options_.sender.max_in_flight_bytes = seed % 5 == 0 ? 10'000 : 0;
    writer_ = TrajectoryWriter::Create(server_, options_).value();
    Program program(writer_.get(), server_.get(), seed);
    program.Run(300);
    program.CheckSent();
    done = true;
    confirm.join();
    EXPECT_EQ(writer_->stats().in_flight_items, 0);
    EXPECT_EQ(writer_->stats().in_flight_bytes, 0);
    writer_ = nullptr;
    EXPECT_EQ(server_->misuse(), "");
  }
}

}  // namespace
}  // namespace gear_reverb::writer
