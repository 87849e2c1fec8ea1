#include "native/writer/structured_writer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "native/base/log.h"
#include "native/base/status.h"
#include "native/writer/scalar_value.h"

namespace gear_reverb::writer {
namespace {

// The cells of one column of an item.
using ItemCells = std::vector<std::shared_ptr<CellRef>>;

template <typename Cells>
ItemCells Take(const Cells& cells, const PatternNode& node) {
  ItemCells taken;
  taken.reserve(node.count);
  for (int64_t i = 0; i < node.count; ++i) {
    taken.push_back(cells[cells.size() - node.first + i * node.step]);
  }
  return taken;
}

absl::Status CreateItem(TrajectoryWriter& writer, const StructuredConfig& config, double priority,
                        const std::vector<ItemCells>& columns, std::optional<absl::Time> deadline) {
  std::vector<std::vector<const CellRef*>> cells(columns.size());
  std::vector<TrajectoryWriter::ItemColumn> item(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    cells[i].reserve(columns[i].size());
    for (const auto& cell : columns[i]) cells[i].push_back(cell.get());
    item[i] = {cells[i], config.nodes[i].squeeze};
  }
  return writer.CreateItem(config.table, priority, item, deadline);
}

}  // namespace

absl::StatusOr<std::unique_ptr<StructuredWriter>> StructuredWriter::Create(
    std::shared_ptr<InsertStreamFactory> factory, TrajectoryWriterOptions options,
    std::vector<StructuredConfig> configs) {
  if (configs.empty()) return base::InvalidArgument("At least one config must be provided.");
  for (size_t i = 0; i < configs.size(); ++i) {
    if (absl::Status checked = CheckStructuredConfig(configs[i]); !checked.ok()) {
      return base::InvalidArgument("Invalid configuration at position ", i, ": ",
                                   checked.message());
    }
  }
  options.chunker = AutoTunedChunkerOptions(1);
  GR_ASSIGN_OR_RETURN(auto writer,
                      TrajectoryWriter::Create(std::move(factory), std::move(options)));
  std::unique_ptr<StructuredWriter> made(
      new StructuredWriter(std::move(writer), std::move(configs)));
  for (const Column& column : made->columns_) {
    GR_RETURN_IF_ERROR(made->writer_->ConfigureChunker(
        column.index, AutoTunedChunkerOptions(std::max<int64_t>(1, column.reach))));
  }
  return made;
}

StructuredWriter::StructuredWriter(std::unique_ptr<TrajectoryWriter> writer,
                                   std::vector<StructuredConfig> configs)
    : writer_(std::move(writer)) {
  configs_.reserve(configs.size());
  for (StructuredConfig& config : configs) configs_.emplace_back(std::move(config));
  for (const Config& config : configs_) {
    for (const PatternNode& node : config.nodes) {
      Column& column = columns_[AddColumn(node.column)];
      column.reach = std::max(column.reach, node.first);
      longest_reach_ = std::max(longest_reach_, node.first);
    }
    for (const PatternCondition& condition : config.conditions) {
      if (condition.left != PatternCondition::Left::kData) continue;
      columns_[AddColumn(condition.column)].in_conditions = true;
    }
  }
  // All columns are there, and stay where they are.
  for (Config& config : configs_) {
    for (const PatternNode& node : config.nodes) {
      config.node_columns.push_back(AddColumn(node.column));
    }
    for (const PatternCondition& condition : config.conditions) {
      const bool has_column = condition.left == PatternCondition::Left::kData;
      config.condition_columns.push_back(has_column ? AddColumn(condition.column) : 0);
    }
  }
}

StructuredWriter::~StructuredWriter() {
  const absl::Status flushed = writer_->Flush(0, absl::Now() + kLastFlush);
  if (flushed.ok()) return;
  base::Log(base::LogLevel::kWarning,
            absl::StrCat("StructuredWriter destroyed before all items were inserted: ",
                         flushed.ToString()));
}

const StructuredWriter::Column* StructuredWriter::FindColumn(int64_t index) const {
  const auto found =
      std::lower_bound(columns_.begin(), columns_.end(), index,
                       [](const Column& column, int64_t wanted) { return column.index < wanted; });
  return found == columns_.end() || found->index != index ? nullptr : &*found;
}

size_t StructuredWriter::AddColumn(int64_t index) {
  if (const Column* found = FindColumn(index)) return found - columns_.data();
  Column added;
  added.index = index;
  const size_t place = std::count_if(columns_.begin(), columns_.end(),
                                     [&](const Column& column) { return column.index < index; });
  columns_.insert(columns_.begin() + place, std::move(added));
  return place;
}

// ------------------------------------------------------------------------------------- appending

absl::Status StructuredWriter::Append(const Step& step, bool partial, absl::Time deadline) {
  base::MutexLock lock(&mutex_);
  if (step_is_open_) {
    for (const Column& column : columns_) {
      if (column.is_set && column.index < static_cast<int64_t>(step.size()) &&
          step[column.index].has_value()) {
        return base::FailedPrecondition(
            "A value for column ", column.index,
            " has already been provided in this step by an earlier, partial append.");
      }
    }
  }
  GR_ASSIGN_OR_RETURN(auto cells, partial ? writer_->AppendPartial(step, deadline)
                                          : writer_->Append(step, deadline));
  if (!step_is_open_) BeginStep();
  step_is_open_ = partial;
  bool has_values = false;
  for (Column& column : columns_) {
    if (column.index >= static_cast<int64_t>(step.size())) break;
    if (!step[column.index].has_value()) continue;
    has_values = true;
    column.is_set = true;
    if (column.reach > 0) column.cells.back() = std::move(cells[column.index]);
    if (!column.in_conditions) continue;
    column.integer = IntegerOf(*step[column.index]);
    if (column.integer.has_value() || column.has_warned) continue;
    column.has_warned = true;
    base::Log(base::LogLevel::kWarning,
              absl::StrCat("A condition compares column ", column.index,
                           ", which is no integer or bool scalar but ",
                           tensor::Name(step[column.index]->dtype), " ",
                           tensor::ShapeString(step[column.index]->shape),
                           ": configs with such conditions are not applied."));
  }
  if (has_values && !step_has_values_) {
    step_has_values_ = true;
    for (Config& config : configs_) ++config.steps_since_applied;
  }
  return absl::OkStatus();
}

void StructuredWriter::BeginStep() {
  for (Column& column : columns_) {
    column.is_set = false;
    column.integer.reset();
    if (column.reach == 0) continue;
    if (static_cast<int64_t>(column.cells.size()) == column.reach) column.cells.pop_front();
    column.cells.emplace_back();
  }
  ++step_index_;
  buffer_length_ = std::min(buffer_length_ + 1, longest_reach_);
  step_has_values_ = false;
}

// ----------------------------------------------------------------------------------------- items

absl::Status StructuredWriter::InsertItems(absl::Time deadline) {
  base::MutexLock lock(&mutex_);
  return InsertItemsOf(/*end_of_episode=*/false, deadline);
}

absl::Status StructuredWriter::InsertItemsOf(bool end_of_episode,
                                             std::optional<absl::Time> deadline) {
  if (!step_has_values_) return absl::OkStatus();
  for (Config& config : configs_) {
    if (config.at_end_of_episode != end_of_episode || !IsDue(config)) continue;
    GR_RETURN_IF_ERROR(Insert(config, deadline));
    config.steps_since_applied = 0;
  }
  return absl::OkStatus();
}

bool StructuredWriter::IsDue(const Config& config) const {
  using Left = PatternCondition::Left;
  if (config.steps_since_applied == 0) return false;
  for (size_t i = 0; i < config.conditions.size(); ++i) {
    const PatternCondition& condition = config.conditions[i];
    int64_t left = 0;
    switch (condition.left) {
      case Left::kStepIndex: left = step_index_; break;
      case Left::kStepsSinceApplied: left = config.steps_since_applied; break;
      case Left::kBufferLength: left = buffer_length_; break;
      case Left::kData: {
        const std::optional<int64_t>& value = columns_[config.condition_columns[i]].integer;
        if (!value.has_value()) return false;
        left = *value;
        break;
      }
    }
    if (!condition.Holds(left)) return false;
  }
  for (size_t i = 0; i < config.nodes.size(); ++i) {
    const PatternNode& node = config.nodes[i];
    const auto& cells = columns_[config.node_columns[i]].cells;
    if (node.first > static_cast<int64_t>(cells.size())) return false;
    for (int64_t k = 0; k < node.count; ++k) {
      if (cells[cells.size() - node.first + k * node.step] == nullptr) return false;
    }
  }
  return true;
}

absl::StatusOr<double> StructuredWriter::PriorityOf(const Config& config) const {
  switch (config.priority.kind) {
    case PatternPriority::Kind::kConstant: return config.priority.value;
    case PatternPriority::Kind::kTdError: break;
    case PatternPriority::Kind::kMissing:
      return base::InvalidArgument("The config for table '", config.table,
                                   "' has no priority function.");
  }
  for (size_t i = config.nodes.size(); i-- > 0;) {
    const PatternNode& node = config.nodes[i];
    if (node.column != config.priority.column) continue;
    double sum = 0, max = 0;
    for (const auto& cell : Take(columns_[config.node_columns[i]].cells, node)) {
      GR_ASSIGN_OR_RETURN(const TensorCopy value, cell->Copy());
      const std::optional<double> number = NumberOf(value.view());
      if (!number.has_value()) {
        return base::InvalidArgument(
            "TD Error expects a scalar tensor of double/float/int in column ", node.column,
            " but got ", tensor::Name(value.dtype), " ", tensor::ShapeString(value.shape), ".");
      }
      max = std::max(max, std::abs(*number));
      sum += std::abs(*number);
    }
    const double weight = config.priority.value;
    return weight * max + (1 - weight) * (sum / static_cast<double>(node.count));
  }
  return 0.0;  // No column of the item is the TD error.
}

absl::Status StructuredWriter::Insert(const Config& config, std::optional<absl::Time> deadline) {
  GR_ASSIGN_OR_RETURN(const double priority, PriorityOf(config));
  std::vector<ItemCells> columns;
  columns.reserve(config.nodes.size());
  for (size_t i = 0; i < config.nodes.size(); ++i) {
    columns.push_back(Take(columns_[config.node_columns[i]].cells, config.nodes[i]));
  }
  return CreateItem(*writer_, config, priority, columns, deadline);
}

// --------------------------------------------------------------------------------------- waiting

absl::Status StructuredWriter::Flush(int64_t ignore_last_num_items, absl::Time deadline) {
  return writer_->Flush(ignore_last_num_items, deadline);
}

absl::Status StructuredWriter::EndEpisode(bool clear_buffers, absl::Time deadline) {
  {
    base::MutexLock lock(&mutex_);
    // Room is not waited for: they are few, and all is flushed next.
    GR_RETURN_IF_ERROR(InsertItemsOf(/*end_of_episode=*/true, std::nullopt));
    step_is_open_ = false;
    step_has_values_ = false;
    step_index_ = -1;
    if (clear_buffers) {
      buffer_length_ = 0;
      for (Column& column : columns_) column.cells.clear();
    }
  }
  return writer_->EndEpisode(clear_buffers, deadline);
}

}  // namespace gear_reverb::writer
