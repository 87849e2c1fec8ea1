// Inserts items by static patterns over the steps that are appended: Reverb's StructuredWriter.
//
// Every config has a pattern (which steps of which columns), conditions, and a priority. After
// every append the configs whose conditions hold and whose steps are all there become items.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "native/base/mutex.h"
#include "native/writer/structured_config.h"
#include "native/writer/trajectory_writer.h"

namespace gear_reverb::writer {

// Thread-safe, though meant for one thread: steps of two threads would mix.
//
// 1. A config is applied at most once per step, however many parts the step is appended in.
// 2. A step in which no column has a value that some config uses has its place in the history,
//    but no config is applied at it, and it does not count as a step since a config was applied.
// 3. Conditions on data look at the newest step, and fail while it has no such value, whether
//    inverted or not.
// 4. The history has the length of the longest pattern; so has what `kBufferLength` compares.
class StructuredWriter {
 public:
  using Step = TrajectoryWriter::Step;

  // `options.chunker` is not used: columns keep what their patterns reach. INVALID_ARGUMENT for
  // bad configs.
  static absl::StatusOr<std::unique_ptr<StructuredWriter>> Create(
      std::shared_ptr<InsertStreamFactory> factory, TrajectoryWriterOptions options,
      std::vector<StructuredConfig> configs);
  // Flushes, for at most kLastFlush; not in a forked child, where no thread would answer.
  ~StructuredWriter();

  // Whether any config refers to the column, by pattern or condition. Others need no value.
  bool Uses(int64_t column) const { return FindColumn(column) != nullptr; }

  // Adds values to the open step, or opens one; `partial` leaves it open. Errors are those of
  // TrajectoryWriter::Append, and FAILED_PRECONDITION for a second value of a column in one step;
  // nothing changes then. InsertItems comes next.
  absl::Status Append(const Step& step, bool partial, absl::Time deadline);

  // Creates the items that are due; after an error the rest of them. DEADLINE_EXCEEDED if it would
  // have to wait longer for room; INVALID_ARGUMENT where a priority cannot be computed or an
  // item's steps do not fit together.
  absl::Status InsertItems(absl::Time deadline);

  // As TrajectoryWriter::Flush.
  absl::Status Flush(int64_t ignore_last_num_items, absl::Time deadline);

  // Creates the items that are due at the end, then as TrajectoryWriter::EndEpisode: by
  // `deadline` the episode has ended. If even creating them fails, it goes on.
  absl::Status EndEpisode(bool clear_buffers, absl::Time deadline);

  bool step_is_open() const { return step_is_open_; }

 private:
  static constexpr absl::Duration kLastFlush = absl::Seconds(10);

  // A source column that configs use.
  struct Column {
    int64_t index = 0;
    int64_t reach = 0;                           // Steps back that patterns look; 0 for none.
    std::deque<std::shared_ptr<CellRef>> cells;  // Newest last, at most `reach`; null: no value.
    bool in_conditions = false;
    bool is_set = false;             // In the newest step.
    std::optional<int64_t> integer;  // Its value there, if conditions can compare it.
    bool has_warned = false;
  };

  struct Config : StructuredConfig {
    explicit Config(StructuredConfig config) : StructuredConfig(std::move(config)) {}

    int64_t steps_since_applied = 0;                      // 0: applied at the newest step.
    std::vector<size_t> node_columns, condition_columns;  // Into columns_, one per node.
  };

  StructuredWriter(std::unique_ptr<TrajectoryWriter> writer, std::vector<StructuredConfig> configs);

  const Column* FindColumn(int64_t index) const;
  size_t AddColumn(int64_t index);
  void BeginStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Without a deadline, whatever is unconfirmed.
  absl::Status InsertItemsOf(bool end_of_episode, std::optional<absl::Time> deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsDue(const Config& config) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<double> PriorityOf(const Config& config) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Insert(const Config& config, std::optional<absl::Time> deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<TrajectoryWriter> writer_;
  int64_t longest_reach_ = 0;
  std::atomic<bool> step_is_open_ = false;

  base::Mutex mutex_;            // Held before the writer's.
  std::vector<Column> columns_;  // By index; which ones there are never changes.
  std::vector<Config> configs_ ABSL_GUARDED_BY(mutex_);
  int64_t step_index_ ABSL_GUARDED_BY(mutex_) = -1;  // Of the newest step in its episode.
  int64_t buffer_length_ ABSL_GUARDED_BY(mutex_) = 0;
  bool step_has_values_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gear_reverb::writer
