// The structured writer. Its configs come as tuples, compiled by gear_reverb/_patterns.py.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "native/bindings/arrays.h"
#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
#include "native/bindings/peer_delete.h"
#include "native/bindings/writer_calls.h"
#include "native/writer/structured_writer.h"
#include "pybind11/stl.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

using writer::PatternCondition;
using writer::PatternPriority;
using writer::StructuredConfig;
using writer::StructuredWriter;

using StructuredWriterPtr = std::unique_ptr<StructuredWriter, PeerDelete>;

// Calls `f(deadline)` first so that it never waits, with the GIL unless `release_gil`, and then,
// if it would have to, without the GIL.
template <typename F>
void TryWithGil(bool release_gil, F f) {
  absl::Status status = absl::DeadlineExceededError("");
  if (!release_gil) status = f(absl::InfinitePast());
  if (absl::IsDeadlineExceeded(status)) {
    ReleaseGil release;
    status = f(absl::InfiniteFuture());
  }
  ThrowIfError(status);
}

// The values of columns that configs use, None for the others, which are not even looked at.
py::list UsedValues(const StructuredWriter& self, const py::list& data) {
  bool all_used = true;
  for (size_t i = 0; i < data.size() && all_used; ++i) all_used = self.Uses(i);
  if (all_used) return data;
  py::list used;
  for (size_t i = 0; i < data.size(); ++i) {
    used.append(self.Uses(i) ? py::object(data[i]) : py::none());
  }
  return used;
}

template <bool partial>
void Append(StructuredWriter& self, const py::list& data) {
  const BorrowedStep step(UsedValues(self, data));
  size_t bytes = 0;
  for (const auto& view : step.optional_views()) {
    if (view.has_value()) bytes += view->data.size();
  }
  TryWithGil(bytes >= kReleaseGilFromBytes, [&](absl::Time deadline) {
    return self.Append(step.optional_views(), partial, deadline);
  });
  TryWithGil(false, [&](absl::Time deadline) { return self.InsertItems(deadline); });
}

// (column, first, count, step, squeeze)
using NodeTuple = std::tuple<int64_t, int64_t, int64_t, int64_t, bool>;
// (left, column, compare, value, modulus, inverse)
using ConditionTuple = std::tuple<std::string, int64_t, std::string, int64_t, int64_t, bool>;
// (kind, value, column)
using PriorityTuple = std::tuple<std::string, double, int64_t>;
// (table, nodes, conditions, at_end_of_episode, priority)
using ConfigTuple = std::tuple<std::string, std::vector<NodeTuple>, std::vector<ConditionTuple>,
                               bool, PriorityTuple>;

template <typename Enum>
Enum Choose(const std::string& name, std::initializer_list<std::pair<const char*, Enum>> choices) {
  for (const auto& [choice, value] : choices) {
    if (name == choice) return value;
  }
  throw py::value_error("Unknown kind of condition or priority: " + name);
}

PatternCondition ConditionOf(const ConditionTuple& tuple) {
  using Left = PatternCondition::Left;
  using Compare = PatternCondition::Compare;
  const auto& [left, column, compare, value, modulus, inverse] = tuple;
  return {.left = Choose<Left>(left, {{"step_index", Left::kStepIndex},
                                      {"steps_since_applied", Left::kStepsSinceApplied},
                                      {"buffer_length", Left::kBufferLength},
                                      {"flat_source_index", Left::kData}}),
          .column = column,
          .compare = Choose<Compare>(compare, {{"eq", Compare::kEqual},
                                               {"ge", Compare::kGreaterEqual},
                                               {"mod_eq", Compare::kModuloEqual}}),
          .value = value,
          .modulus = modulus,
          .inverse = inverse};
}

StructuredConfig ConfigOf(const ConfigTuple& tuple) {
  using Kind = PatternPriority::Kind;
  const auto& [table, nodes, conditions, at_end_of_episode, priority] = tuple;
  StructuredConfig config;
  config.table = table;
  config.at_end_of_episode = at_end_of_episode;
  for (const auto& [column, first, count, step, squeeze] : nodes) {
    config.nodes.push_back({column, first, count, step, squeeze});
  }
  for (const ConditionTuple& condition : conditions) {
    config.conditions.push_back(ConditionOf(condition));
  }
  const auto& [kind, value, column] = priority;
  config.priority = {Choose<Kind>(kind, {{"missing", Kind::kMissing},
                                         {"constant_fn", Kind::kConstant},
                                         {"td_error", Kind::kTdError}}),
                     value, column};
  return config;
}

}  // namespace

py::object MakeStructuredWriter(const ClientPtr& client, const py::list& configs) {
  std::vector<StructuredConfig> parsed;
  for (py::handle config : configs) parsed.push_back(ConfigOf(py::cast<ConfigTuple>(config)));
  Connect(client);
  writer::TrajectoryWriterOptions options;
  options.sender.max_unavailable = client::ConnectPatience();
  StructuredWriterPtr made(
      ValueOrThrow(StructuredWriter::Create(client, std::move(options), std::move(parsed)))
          .release());
  return py::cast(std::move(made));
}

void DefineStructuredWriter(py::module_& module) {
  py::class_<StructuredWriter, StructuredWriterPtr>(module, "StructuredWriter")
      .def("Append", &Append<false>, py::arg("data"))
      .def("AppendPartial", &Append<true>, py::arg("data"))
      .def(
          "Flush",
          [](StructuredWriter& self, int64_t ignore_last_num_items,
             std::optional<int64_t> timeout_ms) {
            const absl::Time deadline = DeadlineOf(timeout_ms);
            WithoutGil([&] { return self.Flush(ignore_last_num_items, deadline); });
          },
          py::arg("ignore_last_num_items"), py::arg("timeout_ms"))
      .def(
          "EndEpisode",
          [](StructuredWriter& self, bool clear_buffers, std::optional<int64_t> timeout_ms) {
            const absl::Time deadline = DeadlineOf(timeout_ms);
            WithoutGil([&] { return self.EndEpisode(clear_buffers, deadline); });
          },
          py::arg("clear_buffers"), py::arg("timeout_ms"))
      .def_property_readonly("step_is_open", &StructuredWriter::step_is_open);
}

}  // namespace gear_reverb::bindings
