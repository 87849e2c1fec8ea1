// Cell references, chunker options and the two writers.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "native/bindings/arrays.h"
#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
#include "native/writer/trajectory_writer.h"
#include "native/writer/writer.h"
#include "pybind11/stl.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

using writer::CellRef;
using writer::ChunkerOptions;
using writer::TrajectoryWriter;
using writer::Writer;

// Python's two kinds of options are one in the core.
struct ConstantChunkerOptions : ChunkerOptions {};
struct AutoTunedChunkerOptions : ChunkerOptions {};

// Both writers end their stream, and with it wait for gRPC's threads, without the GIL.
struct ReleasingDelete {
  template <typename T>
  void operator()(T* writer) const {
    ReleaseGil release;
    delete writer;
  }
};
using TrajectoryWriterPtr = std::unique_ptr<TrajectoryWriter, ReleasingDelete>;
using WriterPtr = std::unique_ptr<Writer, ReleasingDelete>;

// Below this a step is copied faster than the GIL is released and taken again.
constexpr size_t kReleaseGilFromBytes = 64 << 10;

absl::Time DeadlineOf(std::optional<int64_t> timeout_ms) {
  if (!timeout_ms.has_value() || *timeout_ms <= 0) return absl::InfiniteFuture();
  return absl::Now() + absl::Milliseconds(*timeout_ms);
}

using AppendMethod = absl::StatusOr<TrajectoryWriter::Cells> (TrajectoryWriter::*)(
    const TrajectoryWriter::Step&, absl::Time);

// A first try that never waits keeps the GIL; what is left to wait for is waited for without it.
template <AppendMethod method>
py::list Append(TrajectoryWriter& self, const py::sequence& data) {
  const BorrowedStep step(data);
  size_t bytes = 0;
  for (const auto& view : step.optional_views()) {
    if (view.has_value()) bytes += view->data.size();
  }
  absl::StatusOr<TrajectoryWriter::Cells> cells = absl::DeadlineExceededError("");
  if (bytes < kReleaseGilFromBytes) {
    cells = (self.*method)(step.optional_views(), absl::InfinitePast());
  }
  if (absl::IsDeadlineExceeded(cells.status())) {
    ReleaseGil release;
    cells = (self.*method)(step.optional_views(), absl::InfiniteFuture());
  }
  ThrowIfError(cells.status());
  py::list out(cells->size());
  for (size_t i = 0; i < cells->size(); ++i) {
    if ((*cells)[i] == nullptr) {
      out[i] = py::none();
    } else {
      out[i] = py::cast(std::move((*cells)[i]));
    }
  }
  return out;
}

void CreateItem(TrajectoryWriter& self, const std::string& table, double priority,
                const py::sequence& trajectory, const std::vector<bool>& squeeze_column) {
  std::vector<TrajectoryWriter::Cells> columns(trajectory.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    const py::sequence column = trajectory[i];
    columns[i].reserve(column.size());
    for (py::handle ref : column) columns[i].push_back(py::cast<std::shared_ptr<CellRef>>(ref));
  }
  WithoutGil([&] { return self.CreateItem(table, priority, columns, squeeze_column); });
}

void DefineCellRef(py::module_& module) {
  py::class_<CellRef, std::shared_ptr<CellRef>>(module, "WeakCellRef")
      .def_property_readonly("expired", &CellRef::expired)
      .def_property_readonly("shape",
                             [](const CellRef& self) {
                               const tensor::Shape shape = ValueOrThrow(self.shape());
                               return std::vector<int64_t>(shape.begin(), shape.end());
                             })
      .def_property_readonly(
          "dtype", [](const CellRef& self) { return ToNumpy(ValueOrThrow(self.dtype())); })
      .def("numpy", [](const CellRef& self) { return ToArray(ValueOrThrow(self.Copy()).view()); })
      .def("__repr__", [](const CellRef& self) {
        return std::string(self.expired() ? "WeakCellRef(expired)" : "WeakCellRef");
      });
}

void DefineChunkerOptions(py::module_& module) {
  py::class_<ChunkerOptions>(module, "ChunkerOptions")
      .def("__eq__", [](const ChunkerOptions& self, const py::object& other) {
        return py::isinstance<ChunkerOptions>(other) && self == py::cast<ChunkerOptions>(other);
      });
  py::class_<ConstantChunkerOptions, ChunkerOptions>(module, "ConstantChunkerOptions")
      .def(py::init([](int64_t max_chunk_length, int64_t num_keep_alive_refs) {
             return ConstantChunkerOptions{
                 writer::ConstantChunkerOptions(max_chunk_length, num_keep_alive_refs)};
           }),
           py::arg("max_chunk_length"), py::arg("num_keep_alive_refs"));
  py::class_<AutoTunedChunkerOptions, ChunkerOptions>(module, "AutoTunedChunkerOptions")
      .def(py::init([](int64_t num_keep_alive_refs, double throughput_weight) {
             return AutoTunedChunkerOptions{
                 writer::AutoTunedChunkerOptions(num_keep_alive_refs, throughput_weight)};
           }),
           py::arg("num_keep_alive_refs"), py::arg("throughput_weight") = 1.0);
}

void DefineTrajectoryWriter(py::module_& module) {
  py::class_<TrajectoryWriter, TrajectoryWriterPtr>(module, "TrajectoryWriter")
      .def("Append", &Append<&TrajectoryWriter::Append>, py::arg("data"))
      .def("AppendPartial", &Append<&TrajectoryWriter::AppendPartial>, py::arg("data"))
      .def("CreateItem", &CreateItem, py::arg("table"), py::arg("priority"),
           py::arg("py_trajectory"), py::arg("squeeze_column"))
      .def(
          "ConfigureChunker",
          [](TrajectoryWriter& self, int64_t column, const ChunkerOptions& options) {
            ThrowIfError(self.ConfigureChunker(column, options));
          },
          py::arg("column"), py::arg("options"))
      .def(
          "Flush",
          [](TrajectoryWriter& self, int64_t ignore_last_num_items, int64_t timeout_ms) {
            const absl::Time deadline = DeadlineOf(timeout_ms);
            WithoutGil([&] { return self.Flush(ignore_last_num_items, deadline); });
          },
          py::arg("ignore_last_num_items"), py::arg("timeout_ms"))
      .def(
          "EndEpisode",
          [](TrajectoryWriter& self, bool clear_buffers, std::optional<int64_t> timeout_ms) {
            const absl::Time deadline = DeadlineOf(timeout_ms);
            WithoutGil([&] { return self.EndEpisode(clear_buffers, deadline); });
          },
          py::arg("clear_buffers"), py::arg("timeout_ms"))
      .def("Close", &TrajectoryWriter::Close, py::call_guard<ReleaseGil>())
      .def_property_readonly("max_num_keep_alive_refs", &TrajectoryWriter::max_num_keep_alive_refs)
      .def_property_readonly("episode_steps", &TrajectoryWriter::episode_steps);
}

void DefineWriter(py::module_& module) {
  py::class_<Writer, WriterPtr>(module, "Writer")
      .def(
          "Append",
          [](Writer& self, const py::sequence& data) {
            const BorrowedStep step(data);
            const auto views = step.views();
            WithoutGil([&] { return self.Append(views); });
          },
          py::arg("data"))
      .def(
          "AppendSequence",
          [](Writer& self, const py::sequence& data) {
            const BorrowedStep step(data);
            const auto views = step.views();
            WithoutGil([&] { return self.AppendSequence(views); });
          },
          py::arg("data"))
      .def(
          "CreateItem",
          [](Writer& self, const std::string& table, int64_t num_timesteps, double priority) {
            WithoutGil([&] { return self.CreateItem(table, num_timesteps, priority); });
          },
          py::arg("table"), py::arg("num_timesteps"), py::arg("priority"))
      .def("Flush", [](Writer& self) { WithoutGil([&] { return self.Flush(); }); })
      .def(
          "Close",
          [](Writer& self, bool retry_on_unavailable) {
            WithoutGil([&] { return self.Close(retry_on_unavailable); });
          },
          py::arg("retry_on_unavailable") = true);
}

// Finds out, before the first item, by which way the data will go.
void Connect(const ClientPtr& client) {
  WithoutGil([&] { return client->GetConnection().status(); });
}

}  // namespace

py::object MakeTrajectoryWriter(const ClientPtr& client, py::handle chunker_options,
                                bool validate_items, int64_t max_in_flight_bytes) {
  Connect(client);
  writer::TrajectoryWriterOptions options;
  options.chunker = py::cast<ChunkerOptions>(chunker_options);
  if (validate_items) {
    options.signatures = [client](const std::string& table) { return client->GetSignature(table); };
  }
  options.sender.max_in_flight_bytes = max_in_flight_bytes;
  options.sender.max_unavailable = client::ConnectPatience();
  TrajectoryWriterPtr made(
      ValueOrThrow(TrajectoryWriter::Create(client, std::move(options))).release());
  return py::cast(std::move(made));
}

py::object MakeWriter(const ClientPtr& client, int chunk_length, int max_timesteps,
                      bool /*delta_encoded: chunks are kept and sent whole*/,
                      int max_in_flight_items) {
  Connect(client);
  writer::WriterOptions options;
  options.chunk_length = chunk_length;
  options.max_timesteps = max_timesteps;
  options.signatures = [client](const std::string& table) { return client->GetSignature(table); };
  options.max_in_flight_items = max_in_flight_items;
  options.sender.max_unavailable = client::ConnectPatience();
  WriterPtr made(ValueOrThrow(Writer::Create(client, std::move(options))).release());
  return py::cast(std::move(made));
}

void DefineWriters(py::module_& module) {
  DefineCellRef(module);
  DefineChunkerOptions(module);
  DefineTrajectoryWriter(module);
  DefineWriter(module);
}

}  // namespace gear_reverb::bindings
