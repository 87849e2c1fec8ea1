// Chunker options and the two writers.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "native/bindings/arrays.h"
#include "native/bindings/boxed.h"
#include "native/bindings/cell_refs.h"
#include "native/bindings/column_steps.h"
#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
#include "native/bindings/peer_delete.h"
#include "native/bindings/writer_calls.h"
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

using TrajectoryWriterPtr = std::unique_ptr<TrajectoryWriter, PeerDelete>;
using WriterPtr = std::unique_ptr<Writer, PeerDelete>;

// The core behind a `self` whose type a method descriptor has checked.
TrajectoryWriter& CoreOf(PyObject* self) {
  auto* const instance = reinterpret_cast<py::detail::instance*>(self);
  void* const core = instance->get_value_and_holder().value_ptr();
  if (core == nullptr) throw py::type_error("The writer has not been initialised.");
  return *static_cast<TrajectoryWriter*>(core);
}

using AppendMethod = absl::StatusOr<TrajectoryWriter::Cells> (TrajectoryWriter::*)(
    const TrajectoryWriter::Step&, absl::Time);

// A first try that never waits keeps the GIL; what is left to wait for is waited for without it.
template <AppendMethod method>
PyObject* Append(PyObject* self, PyObject* data) {
  return AsSlot([&] {
    TrajectoryWriter& core = CoreOf(self);
    const BorrowedStep step(py::reinterpret_borrow<py::sequence>(data));
    absl::StatusOr<TrajectoryWriter::Cells> cells = absl::DeadlineExceededError("");
    if (step.bytes() < kReleaseGilFromBytes) {
      cells = (core.*method)(step.optional_views(), absl::InfinitePast());
    }
    if (absl::IsDeadlineExceeded(cells.status())) {
      ReleaseGil release;
      cells = (core.*method)(step.optional_views(), absl::InfiniteFuture());
    }
    ThrowIfError(cells.status());
    return ToPython(*std::move(cells)).release().ptr();
  });
}

// The columns of an item as the core takes them. Keeps the references alive, even if another
// thread changes the list while the GIL is released.
class BorrowedColumns {
 public:
  explicit BorrowedColumns(PyObject* list) {
    if (!PyList_Check(list)) throw py::type_error("The columns of an item must be a list.");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
      const ColumnSteps* const steps = ColumnStepsOf(PyList_GET_ITEM(list, i));
      if (steps == nullptr) throw py::type_error("Items consist of TrajectoryColumns.");
      owners_.push_back(steps->references);
      columns_.push_back({{}, steps->is_squeezed});
      num_cells_ += PyTuple_GET_SIZE(steps->references.ptr());
    }
    cells_.reserve(num_cells_);  // The spans stay valid.
    for (size_t i = 0; i < owners_.size(); ++i) columns_[i].cells = AddCells(owners_[i].ptr());
  }

  absl::Span<const TrajectoryWriter::ItemColumn> columns() const { return columns_; }

 private:
  absl::Span<const CellRef* const> AddCells(PyObject* references) {
    const Py_ssize_t size = PyTuple_GET_SIZE(references);
    const size_t first = cells_.size();
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* const reference = PyTuple_GET_ITEM(references, i);
      const CellRef* const cell = CellOf(reference);
      if (cell == nullptr) {
        throw py::type_error("A TrajectoryColumn refers to a " +
                             std::string(Py_TYPE(reference)->tp_name) + ", not to a WeakCellRef.");
      }
      cells_.push_back(cell);
    }
    return {cells_.data() + first, static_cast<size_t>(size)};
  }

  absl::InlinedVector<py::object, 8> owners_;
  absl::InlinedVector<const CellRef*, 32> cells_;
  absl::InlinedVector<TrajectoryWriter::ItemColumn, 8> columns_;
  size_t num_cells_ = 0;
};

// Of a str or bytes.
std::string TextOf(PyObject* object) {
  if (!PyUnicode_Check(object) && !PyBytes_Check(object)) {
    throw py::type_error("The table must be named by a str, not by a " +
                         std::string(Py_TYPE(object)->tp_name) + ".");
  }
  return py::cast<std::string>(py::handle(object));
}

// (table, priority, columns), the last a list of TrajectoryColumns.
PyObject* CreateItem(PyObject* self, PyObject* const* args, Py_ssize_t num_args) {
  return AsSlot([&] {
    CheckNumArguments("CreateItem", num_args, 3);
    TrajectoryWriter& core = CoreOf(self);
    const std::string table = TextOf(args[0]);
    const double priority = PyFloat_AsDouble(args[1]);
    if (priority == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    const BorrowedColumns borrowed(args[2]);
    WithoutGil([&] { return core.CreateItem(table, priority, borrowed.columns()); });
    return py::none().release().ptr();
  });
}

PyMethodDef fast_methods[] = {
    {"Append", Append<&TrajectoryWriter::Append>, METH_O, nullptr},
    {"AppendPartial", Append<&TrajectoryWriter::AppendPartial>, METH_O, nullptr},
    {"CreateItem", AsMethod(CreateItem), METH_FASTCALL, nullptr}};

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
  py::class_<TrajectoryWriter, TrajectoryWriterPtr> type(module, "TrajectoryWriter");
  type.def(
          "ConfigureChunker",
          [](TrajectoryWriter& self, int64_t column, const ChunkerOptions& options) {
            ThrowIfError(self.ConfigureChunker(column, options));
          },
          py::arg("column"), py::arg("options"))
      .def(
          "Flush",
          [](TrajectoryWriter& self, int64_t ignore_last_num_items, int64_t timeout_ms) {
            // As Reverb has it here, and only here.
            const absl::Time deadline =
                timeout_ms > 0 ? DeadlineOf(timeout_ms) : absl::InfiniteFuture();
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
  for (PyMethodDef& method : fast_methods) {
    type.attr(method.ml_name) = py::reinterpret_steal<py::object>(
        PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &method));
  }
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
      .def(
          "Flush",
          [](Writer& self, std::optional<int64_t> timeout_ms) {
            WithoutGil([&] { return self.Flush(DeadlineOf(timeout_ms)); });
          },
          py::arg("timeout_ms") = py::none())
      .def(
          "Close",
          [](Writer& self, bool retry_on_unavailable) {
            WithoutGil([&] { return self.Close(retry_on_unavailable); });
          },
          py::arg("retry_on_unavailable") = true);
}

}  // namespace

void Connect(const ClientPtr& client) {
  WithoutGil([&]() -> absl::Status {
    const absl::Status status = client->GetConnection().status();
    return absl::IsUnavailable(status) ? absl::OkStatus() : status;
  });
}

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
  DefineCellRefs(module);
  DefineNests(module);
  DefineColumnSteps(module);
  DefineHistory(module);
  DefineChunkerOptions(module);
  DefineTrajectoryWriter(module);
  DefineWriter(module);
}

}  // namespace gear_reverb::bindings
