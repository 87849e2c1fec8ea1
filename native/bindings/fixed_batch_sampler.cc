// The sampler whose batches are always in the same memory.
#include <utility>

#include "native/bindings/arrays.h"
#include "native/bindings/definitions.h"
#include "native/bindings/device_options.h"
#include "native/bindings/errors.h"
#include "native/bindings/side_arrays.h"
#include "native/client/fork_guard.h"
#include "native/client/resident_batches.h"
#include "pybind11/stl.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

class PyFixedBatchSampler {
 public:
  explicit PyFixedBatchSampler(std::unique_ptr<client::FixedBatches> batches)
      : batches_(std::move(batches)) {}
  ~PyFixedBatchSampler() {
    // In the child of a fork its locks are as they happened to be.
    if (!client::CheckNotForked().ok()) {
      (void)batches_.release();
      return;
    }
    ReleaseGil release;
    batches_ = nullptr;
  }

  void Prepare(std::optional<double> timeout, uintptr_t stream) {
    const absl::Time deadline = DeadlineInSeconds(timeout);
    client::FixedBatches& batches = Open();
    WithoutGil([&] { return batches.Prepare(deadline, reinterpret_cast<void*>(stream)); });
  }

  void Enqueue(uintptr_t stream) {
    client::FixedBatches& batches = Open();
    WithoutGil([&] { return batches.Enqueue(reinterpret_cast<void*>(stream)); });
  }

  // As BatchSampler.Next; None before the first Prepare.
  py::object Arrays() {
    client::FixedBatches& batches = Open();
    std::shared_ptr<device::Output> output;
    {
      ReleaseGil release;
      output = batches.output();
    }
    if (output == nullptr) return py::none();
    const auto array = [&](const device::OutputArray& of) {
      return DeviceArrayOf(output, of, batches.gpu());
    };
    const device::DrawnArrays& arrays = batches.arrays();
    py::list columns;
    for (const device::OutputArray& column : arrays.columns) columns.append(array(column));
    const py::tuple info = py::make_tuple(array(arrays.keys), array(arrays.probabilities),
                                          py::none(), array(arrays.priorities), py::none());
    const py::tuple sides =
        DeviceSideArrays(output, arrays.sides, arrays.lengths_agree, batches.gpu());
    const py::object weights =
        arrays.weights.has_value() ? array(*arrays.weights) : py::object(py::none());
    return py::make_tuple(columns, py::make_tuple(info, sides[0], sides[1], sides[2], weights));
  }

  int64_t TableSize() {
    client::FixedBatches& batches = Open();
    ReleaseGil release;
    return batches.table_size();
  }

  void Close() {
    ReleaseGil release;
    if (client::CheckNotForked().ok()) batches_->Close();
  }

 private:
  client::FixedBatches& Open() {
    ThrowIfError(client::CheckNotForked());
    return *batches_;
  }

  std::unique_ptr<client::FixedBatches> batches_;
};

}  // namespace

py::object MakeFixedBatchSampler(const ClientPtr& client, const std::string& table,
                                 int64_t batch_size, const std::string& ragged,
                                 std::optional<int64_t> pad_to, std::optional<uint64_t> seed,
                                 int64_t max_bytes, const std::string& device_name,
                                 const std::string& float32_to, const std::string& uint8_to,
                                 std::optional<double> beta, bool top_k) {
  CheckBeta(beta);
  if (max_bytes < 1) {
    throw py::value_error("max_bytes (" + std::to_string(max_bytes) + ") must be >= 1.");
  }
  client::FixedBatches::Options options;
  const RaggedPolicy policy = RaggedOf(ragged, pad_to);
  options.table = {table, seed, nullptr, CastsOf(float32_to, uint8_to)};
  if (policy.ragged == batch::Ragged::kPad) options.table.padding = {policy.pad_to};
  if (top_k) options.table.choice = device::Choice::kTopK;
  options.size = batch_size;
  options.max_bytes = static_cast<size_t>(max_bytes);
  options.beta = beta;
  std::unique_ptr<client::FixedBatches> batches;
  WithoutGil([&]() -> absl::Status {
    GR_ASSIGN_OR_RETURN(options.table.device, OpenDevice(device_name));
    GR_ASSIGN_OR_RETURN(const auto connection, client->GetConnection());
    GR_ASSIGN_OR_RETURN(auto service, client::LocalServiceFor(connection, "fixed_batch_sampler"));
    GR_ASSIGN_OR_RETURN(batches, client::FixedBatches::Create(std::move(service), options));
    return absl::OkStatus();
  });
  return py::cast(std::make_unique<PyFixedBatchSampler>(std::move(batches)));
}

void DefineFixedBatchSampler(py::module_& module) {
  py::class_<PyFixedBatchSampler>(module, "FixedBatchSampler")
      .def("Prepare", &PyFixedBatchSampler::Prepare, py::arg("timeout"), py::arg("stream"))
      .def("Enqueue", &PyFixedBatchSampler::Enqueue, py::arg("stream"))
      .def("Arrays", &PyFixedBatchSampler::Arrays)
      .def("TableSize", &PyFixedBatchSampler::TableSize)
      .def("Close", &PyFixedBatchSampler::Close);
}

}  // namespace gear_reverb::bindings
