// What gear_reverb.cuda tells about kernels and GPUs.
#include "native/cuda/cuda.h"

#include "native/bindings/definitions.h"
#include "native/bindings/device_stats.h"
#include "native/bindings/errors.h"
#include "native/cuda/gpu.h"
#include "pybind11/stl.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

std::string WhyNot() {
  absl::Status status;
  {
    ReleaseGil release;  // The driver starts.
    status = cuda::Availability();
  }
  return std::string(status.message());
}

py::list Gpus() {
  std::vector<cuda::GpuInfo> gpus;
  WithoutGil([&]() -> absl::Status {
    GR_ASSIGN_OR_RETURN(gpus, cuda::Gpus());
    return absl::OkStatus();
  });
  py::list list;
  for (const cuda::GpuInfo& gpu : gpus) {
    py::dict entry;
    entry["index"] = gpu.index;
    entry["name"] = gpu.name;
    entry["compute_capability"] = py::make_tuple(gpu.major, gpu.minor);
    entry["multiprocessors"] = gpu.multiprocessors;
    entry["memory_bytes"] = gpu.memory_bytes;
    entry["numa_node"] = gpu.numa_node;
    entry["registers_read_only"] = gpu.registers_read_only;
    list.append(entry);
  }
  return list;
}

py::tuple Versions() {
  const cuda::Versions versions = ValueOrThrow(cuda::InstalledVersions());
  return py::make_tuple(versions.driver, versions.runtime);
}

py::list OpenGpus() {
  std::vector<device::DeviceStats> stats_of_gpus;
  {
    ReleaseGil release;  // A GPU may be being opened, which takes seconds.
    stats_of_gpus = cuda::StatsOfOpenGpus();
  }
  py::list list;
  for (const device::DeviceStats& stats : stats_of_gpus) list.append(ToPython(stats));
  return list;
}

std::vector<std::string> SelfTest(int gpu, uint64_t seed, int rounds, bool large) {
  return WithoutGil([&] { return cuda::SelfTest(gpu, seed, rounds, large); });
}

// `columns`: (pieces, bytes of a piece).
double MeasureGather(int gpu, const std::string& way, const std::string& place, uint64_t items,
                     const std::vector<std::pair<uint64_t, uint64_t>>& columns, double least,
                     int repeats) {
  cuda::GatherShape shape{items, {}, least};
  for (const auto& [pieces, bytes] : columns) shape.columns.push_back({pieces, bytes});
  return WithoutGil([&] { return cuda::MeasureGather(gpu, way, place, shape, repeats); });
}

double MeasureCopy(int gpu, const std::string& place, uint64_t bytes, int repeats) {
  return WithoutGil([&] { return cuda::MeasureCopy(gpu, place, bytes, repeats); });
}

}  // namespace

void DefineCuda(py::module_& module) {
  module.def("cuda_is_built", &cuda::IsBuilt);
  module.def("cuda_why_not", &WhyNot);
  module.def("cuda_gpus", &Gpus);
  module.def("cuda_versions", &Versions);
  module.def("cuda_open_gpus", &OpenGpus);
  module.def("cuda_self_test", &SelfTest, py::arg("gpu"), py::arg("seed"), py::arg("rounds"),
             py::arg("large") = true);
  module.def("cuda_measure_gather", &MeasureGather, py::arg("gpu"), py::arg("way"),
             py::arg("place"), py::arg("items"), py::arg("columns"), py::arg("least"),
             py::arg("repeats"));
  module.def("cuda_measure_copy", &MeasureCopy, py::arg("gpu"), py::arg("place"), py::arg("bytes"),
             py::arg("repeats"));
}

}  // namespace gear_reverb::bindings
