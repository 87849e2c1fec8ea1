// The client.
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "native/base/status.h"
#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
#include "native/bindings/peer_delete.h"
#include "native/bindings/writer_calls.h"
#include "native/client/fork_guard.h"
#include "pybind11/numpy.h"
#include "pybind11/stl.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

using client::Client;

template <typename T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

void MutatePriorities(const ClientPtr& client, const std::string& table,
                      const Array<uint64_t>& update_keys, const Array<double>& update_priorities,
                      const Array<uint64_t>& delete_keys, std::optional<int64_t> timeout_ms) {
  if (update_keys.ndim() != 1 || update_priorities.ndim() != 1 || delete_keys.ndim() != 1) {
    throw py::value_error("Keys and priorities must be one-dimensional.");
  }
  if (update_keys.size() != update_priorities.size()) {
    throw py::value_error(absl::StrCat("There are ", update_keys.size(), " keys to update but ",
                                       update_priorities.size(), " priorities."));
  }
  std::vector<table::KeyWithPriority> updates(update_keys.size());
  for (size_t i = 0; i < updates.size(); ++i) {
    updates[i] = {update_keys.data()[i], update_priorities.data()[i]};
  }
  WithoutGil([&]() -> absl::Status {
    const absl::Time deadline = DeadlineOf(timeout_ms);
    GR_ASSIGN_OR_RETURN(const auto connection, client->GetConnection(deadline));
    return connection->MutatePriorities(
        table, updates, {delete_keys.data(), static_cast<size_t>(delete_keys.size())}, deadline);
  });
}

py::list ServerInfo(const ClientPtr& client, int64_t timeout_ms) {
  const absl::Time deadline =
      timeout_ms > 0 ? absl::Now() + absl::Milliseconds(timeout_ms) : absl::InfiniteFuture();
  const auto infos = WithoutGil([&]() -> absl::StatusOr<std::vector<std::string>> {
    const auto connection = client->GetConnection(deadline);
    if (!connection.ok()) return connection.status();
    return (*connection)->ServerInfo(deadline);
  });
  py::list out;
  for (const std::string& info : infos) out.append(py::bytes(info));
  return out;
}

}  // namespace

void DefineClient(py::module_& module) {
  py::class_<Client, ClientPtr>(module, "Client")
      .def(py::init([](const std::string& server_address) {
             ThrowIfError(client::CheckNotForked());
             return ClientPtr(new Client(server_address), PeerDelete());
           }),
           py::arg("server_address"))
      .def("data_plane",
           [](const ClientPtr& self) {
             return WithoutGil([&] { return self->GetConnection(); })->data_plane();
           })
      .def("known_data_plane", &Client::KnownDataPlane, py::call_guard<ReleaseGil>())
      .def("NewWriter", &MakeWriter, py::arg("chunk_length"), py::arg("max_timesteps"),
           py::arg("delta_encoded") = false, py::arg("max_in_flight_items") = 25)
      .def("NewTrajectoryWriter", &MakeTrajectoryWriter, py::arg("chunker_options"),
           py::arg("validate_items"), py::arg("max_in_flight_bytes") = int64_t{1} << 30)
      .def("NewStructuredWriter", &MakeStructuredWriter, py::arg("configs"))
      .def("NewSampler", &MakeSampler, py::arg("table"), py::arg("max_samples"),
           py::arg("buffer_size"), py::arg("timeout_ms") = -1)
      .def("NewBatchSampler", &MakeBatchSampler, py::arg("table"), py::arg("batch_size"),
           py::arg("prefetch"), py::arg("ragged"), py::arg("pad_to"), py::arg("seed"),
           py::arg("max_bytes"), py::arg("device"), py::arg("float32_to"), py::arg("uint8_to"),
           py::arg("draw"))
      .def("NewFixedBatchSampler", &MakeFixedBatchSampler, py::arg("table"), py::arg("batch_size"),
           py::arg("ragged"), py::arg("pad_to"), py::arg("seed"), py::arg("max_bytes"),
           py::arg("device"), py::arg("float32_to"), py::arg("uint8_to"), py::arg("beta"),
           py::arg("top_k"))
      .def("SampleBatch", &SampleBatch, py::arg("table"), py::arg("batch_size"), py::arg("ragged"),
           py::arg("pad_to"), py::arg("max_bytes"), py::arg("timeout"), py::arg("beta"))
      .def("MutatePriorities", &MutatePriorities, py::arg("table"), py::arg("update_keys"),
           py::arg("update_priorities"), py::arg("delete_keys"), py::arg("timeout_ms") = py::none())
      .def(
          "Reset",
          [](const ClientPtr& self, const std::string& table, std::optional<int64_t> timeout_ms) {
            WithoutGil([&]() -> absl::Status {
              const absl::Time deadline = DeadlineOf(timeout_ms);
              GR_ASSIGN_OR_RETURN(const auto connection, self->GetConnection(deadline));
              return connection->Reset(table, deadline);
            });
          },
          py::arg("table"), py::arg("timeout_ms") = py::none())
      .def(
          "Checkpoint",
          [](const ClientPtr& self, std::optional<int64_t> timeout_ms) {
            return WithoutGil([&]() -> absl::StatusOr<std::string> {
              const absl::Time deadline = DeadlineOf(timeout_ms);
              GR_ASSIGN_OR_RETURN(const auto connection, self->GetConnection(deadline));
              return connection->Checkpoint(deadline);
            });
          },
          py::arg("timeout_ms") = py::none())
      .def(
          "FetchSignature",
          [](const ClientPtr& self, const std::string& table, std::optional<int64_t> timeout_ms) {
            WithoutGil([&] {
              const absl::Status status =
                  self->GetSignature(table, DeadlineOf(timeout_ms)).status();
              return absl::IsNotFound(status) ? absl::OkStatus() : status;  // Its use will tell.
            });
          },
          py::arg("table"), py::arg("timeout_ms"))
      .def("ServerInfo", &ServerInfo, py::arg("timeout_ms"));
}

}  // namespace gear_reverb::bindings
