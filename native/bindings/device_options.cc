#include "native/bindings/device_options.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "native/base/status.h"
#include "native/cuda/gpu.h"
#include "pybind11/pybind11.h"

namespace py = pybind11;

namespace gear_reverb::bindings {

// The twin is one for all, and GPUs are shared as cuda::OpenGpu says.
absl::StatusOr<std::shared_ptr<device::Device>> OpenDevice(const std::string& name) {
  if (name == "cpu") {
    static const auto& cpu = *new std::shared_ptr<device::Device>(device::NewCpuDevice());
    return cpu;
  }
  int index = 0;
  if (name != "cuda" &&
      !(absl::StartsWith(name, "cuda:") && absl::SimpleAtoi(name.substr(5), &index))) {
    return base::InvalidArgument("device must be 'cpu' or 'cuda:N', but is '", name, "'.");
  }
  absl::StatusOr<std::shared_ptr<device::Device>> gpu = cuda::OpenGpu(index);
  if (gpu.ok()) return gpu;
  return absl::Status(gpu.status().code(),
                      absl::StrCat("Device '", name, "' cannot be used: ", gpu.status().message(),
                                   " device='cpu' does the same without a GPU."));
}

device::Casts CastsOf(const std::string& float32, const std::string& uint8) {
  const auto check = [](const char* from, const std::string& to,
                        std::initializer_list<const char*> names) {
    if (to.empty()) return tensor::DType::kInvalid;
    for (const char* name : names) {
      if (to == name) return tensor::FromName(name);
    }
    throw py::value_error("Columns of " + std::string(from) + " cannot be cast to '" + to + "'.");
  };
  return {check("float32", float32, {"bfloat16", "float16"}), check("uint8", uint8, {"float16"})};
}

RaggedPolicy RaggedOf(const std::string& name, std::optional<int64_t> pad_to) {
  if (pad_to.has_value() && name != "pad") {
    throw py::value_error("pad_to (" + std::to_string(*pad_to) + ") needs ragged='pad'.");
  }
  if (pad_to.has_value() && (*pad_to < 1 || *pad_to > INT32_MAX)) {
    throw py::value_error("pad_to (" + std::to_string(*pad_to) + ") must be in [1, 2**31).");
  }
  if (name == "error") return {batch::Ragged::kError};
  if (name == "pad") return {batch::Ragged::kPad, pad_to.value_or(0)};
  if (name == "pack") return {batch::Ragged::kPack};
  throw py::value_error("ragged must be 'error', 'pad' or 'pack', but is '" + name + "'.");
}

absl::Time DeadlineInSeconds(std::optional<double> timeout) {
  if (!timeout.has_value()) return absl::InfiniteFuture();
  if (!(*timeout >= 0)) {
    throw py::value_error("timeout (" + std::to_string(*timeout) + ") must be >= 0 seconds.");
  }
  return absl::Now() + absl::Seconds(*timeout);
}

void CheckBeta(std::optional<double> beta) {
  if (beta.has_value() && !(std::isfinite(*beta) && *beta >= 0)) {
    throw py::value_error("beta (" + std::to_string(*beta) + ") must be finite and >= 0.");
  }
}

}  // namespace gear_reverb::bindings
