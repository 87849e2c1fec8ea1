// The server and its checkpointer.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "native/base/interrupt.h"
#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
#include "native/bindings/peer_delete.h"
#include "native/checkpoint/checkpointer.h"
#include "native/client/data_plane.h"
#include "native/client/fork_guard.h"
#include "native/dm_checkpoint/dm_checkpoint.h"
#include "native/server/grpc_server.h"
#include "pybind11/stl.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

using checkpoint::Checkpointer;
using server::GrpcServer;

std::unique_ptr<GrpcServer> MakeServer(std::vector<std::shared_ptr<table::Table>> tables, int port,
                                       std::shared_ptr<Checkpointer> checkpointer) {
  ThrowIfError(client::CheckNotForked());
  client::NoteGrpcUse();
  const client::DataPlane plane = ValueOrThrow(client::DataPlaneOfEnvironment());
  return WithoutGil([&]() -> absl::StatusOr<std::unique_ptr<GrpcServer>> {
    auto service = service::ReplayService::Create(std::move(tables), std::move(checkpointer));
    if (!service.ok()) return service.status();
    return GrpcServer::Create(*std::move(service), {port, "", plane != client::DataPlane::kGrpc});
  });
}

// The newest, and one to fall back on if that is damaged.
constexpr int kKeepLatest = 2;

// In slices, so that Python's signal handlers run.
bool Wait(GrpcServer& server) {
  while (true) {
    {
      ReleaseGil release;
      if (server.Wait(absl::Milliseconds(100))) return false;
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

}  // namespace

void DefineServer(py::module_& module) {
  py::class_<Checkpointer, std::shared_ptr<Checkpointer>>(module, "Checkpointer")
      .def("__repr__", &Checkpointer::DebugString);
  module.def(
      "create_default_checkpointer",
      [](const std::string& path, const std::string& group,
         const std::optional<std::string>& fallback_checkpoint_path) {
        return ValueOrThrow(Checkpointer::Create(path, group, fallback_checkpoint_path, kKeepLatest,
                                                 {dm_checkpoint::Format()}));
      },
      py::arg("path"), py::arg("group"), py::arg("fallback_checkpoint_path"));
  module.def(
      "export_checkpoint",
      [](const std::string& path, const std::string& directory) {
        return WithoutGil([&] { return dm_checkpoint::Export(path, directory); });
      },
      py::arg("path"), py::arg("directory"));

  py::class_<GrpcServer, std::unique_ptr<GrpcServer, PeerDelete>>(module, "Server")
      .def(py::init([](std::vector<std::shared_ptr<table::Table>> tables, int port,
                       std::shared_ptr<Checkpointer> checkpointer) {
             return std::unique_ptr<GrpcServer, PeerDelete>(
                 MakeServer(std::move(tables), port, std::move(checkpointer)).release());
           }),
           py::arg("priority_tables"), py::arg("port"), py::arg("checkpointer") = py::none())
      .def_property_readonly("port", &GrpcServer::port)
      .def("Stop", &GrpcServer::Stop, py::call_guard<ReleaseGil>())
      .def("Wait", &Wait)
      .def("__repr__", [](const GrpcServer& self) {
        return "Server(port=" + std::to_string(self.port()) + ")";
      });
}

}  // namespace gear_reverb::bindings
