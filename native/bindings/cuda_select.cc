// Checks and timings of selection, for scripts that run on a GPU machine.
#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
#include "native/cuda/gpu.h"
#include "native/cuda/select_backend.h"
#include "native/device/draw_check.h"
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

absl::StatusOr<std::unique_ptr<device::DrawBackend>> DrawBackendOf(std::optional<int> gpu) {
  if (!gpu.has_value()) return device::MakeDrawTwin();
  GR_ASSIGN_OR_RETURN(const auto device, cuda::OpenGpu(*gpu));
  return device->NewDrawBackend(nullptr);
}

std::vector<std::string> Check(std::optional<int> gpu, uint64_t seed, uint32_t slots) {
  return WithoutGil([&]() -> absl::StatusOr<std::vector<std::string>> {
    GR_ASSIGN_OR_RETURN(Backend backend, BackendOf(gpu));
    return device::CheckSelection(std::move(backend), seed, slots);
  });
}

std::vector<std::string> CheckDraws(std::optional<int> gpu, uint64_t seed, int rounds) {
  return WithoutGil([&]() -> absl::StatusOr<std::vector<std::string>> {
    GR_ASSIGN_OR_RETURN(const auto backend, DrawBackendOf(gpu));
    return device::CheckDraws(*backend, seed, rounds);
  });
}

// By its name among the selectors.
absl::StatusOr<selectors::SelectorOptions> StrategyOf(const std::string& name) {
  if (name == "Uniform") return selectors::UniformOptions{};
  if (name == "Prioritized") return selectors::PrioritizedOptions{0.6};
  if (name == "Fifo") return selectors::FifoOptions{};
  if (name == "Lifo") return selectors::LifoOptions{};
  if (name == "MinHeap") return selectors::HeapOptions{true};
  if (name == "MaxHeap") return selectors::HeapOptions{false};
  return base::InvalidArgument("There is no strategy called '", name, "'.");
}

template <auto kMeasure>
double Measure(std::optional<int> gpu, const std::string& strategy, uint64_t items, uint32_t count,
               int repeats) {
  return WithoutGil([&]() -> absl::StatusOr<double> {
    GR_ASSIGN_OR_RETURN(const selectors::SelectorOptions options, StrategyOf(strategy));
    GR_ASSIGN_OR_RETURN(Backend backend, BackendOf(gpu));
    return kMeasure(std::move(backend), options, items, count, repeats);
  });
}

double MeasureUpdate(std::optional<int> gpu, uint64_t items, uint32_t updates, int repeats) {
  return WithoutGil([&]() -> absl::StatusOr<double> {
    GR_ASSIGN_OR_RETURN(const auto backend, DrawBackendOf(gpu));
    return device::MeasureUpdate(*backend, items, updates, repeats);
  });
}

}  // namespace

void DefineCudaSelect(py::module_& module) {
  module.def("cuda_check_selection", &Check, py::arg("gpu"), py::arg("seed"), py::arg("slots"));
  module.def("cuda_check_draws", &CheckDraws, py::arg("gpu"), py::arg("seed"), py::arg("rounds"));
  module.def("cuda_measure_draw", &Measure<device::MeasureDraw>, py::arg("gpu"),
             py::arg("strategy"), py::arg("items"), py::arg("draws"), py::arg("repeats"));
  module.def("cuda_measure_top", &Measure<device::MeasureTop>, py::arg("gpu"), py::arg("strategy"),
             py::arg("items"), py::arg("k"), py::arg("repeats"));
  module.def("cuda_measure_update", &MeasureUpdate, py::arg("gpu"), py::arg("items"),
             py::arg("updates"), py::arg("repeats"));
}

}  // namespace gear_reverb::bindings
