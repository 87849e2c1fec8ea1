// What gear_reverb.cuda tells about kernels and GPUs.
#include "native/cuda/cuda.h"

#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
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
    entry["registers_read_only"] = gpu.registers_read_only;
    list.append(entry);
  }
  return list;
}

py::tuple Versions() {
  const cuda::Versions versions = ValueOrThrow(cuda::InstalledVersions());
  return py::make_tuple(versions.driver, versions.runtime);
}

}  // namespace

void DefineCuda(py::module_& module) {
  module.def("cuda_is_built", &cuda::IsBuilt);
  module.def("cuda_why_not", &WhyNot);
  module.def("cuda_gpus", &Gpus);
  module.def("cuda_versions", &Versions);
}

}  // namespace gear_reverb::bindings
