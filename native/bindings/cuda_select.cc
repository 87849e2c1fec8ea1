// Checks and timings of selection, for scripts that run on a GPU machine.
#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
#include "native/cuda/select_backend.h"
#include "native/device/select_check.h"
#include "pybind11/stl.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

using Backend = std::shared_ptr<device::SelectBackend>;

absl::StatusOr<Backend> BackendOf(std::optional<int> gpu) {
  if (!gpu.has_value()) return device::MakeSelectTwin();
  return cuda::MakeSelectBackend(*gpu);
}

std::vector<std::string> Check(std::optional<int> gpu, uint64_t seed, uint32_t slots) {
  return WithoutGil([&]() -> absl::StatusOr<std::vector<std::string>> {
    GR_ASSIGN_OR_RETURN(Backend backend, BackendOf(gpu));
    return device::CheckSelection(std::move(backend), seed, slots);
  });
}

template <auto kMeasure>
double Measure(std::optional<int> gpu, uint64_t items, uint32_t count, int repeats) {
  return WithoutGil([&]() -> absl::StatusOr<double> {
    GR_ASSIGN_OR_RETURN(Backend backend, BackendOf(gpu));
    return kMeasure(std::move(backend), items, count, repeats);
  });
}

}  // namespace

void DefineCudaSelect(py::module_& module) {
  module.def("cuda_check_selection", &Check, py::arg("gpu"), py::arg("seed"), py::arg("slots"));
  module.def("cuda_measure_draw", &Measure<device::MeasureDraw>, py::arg("gpu"), py::arg("items"),
             py::arg("draws"), py::arg("repeats"));
  module.def("cuda_measure_update", &Measure<device::MeasureUpdate>, py::arg("gpu"),
             py::arg("items"), py::arg("updates"), py::arg("repeats"));
}

}  // namespace gear_reverb::bindings
