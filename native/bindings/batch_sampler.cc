// The batch sampler: one native call per batch.
#include "native/client/batch_sampler.h"

#include <utility>

#include "native/base/status.h"
#include "native/bindings/batch_arrays.h"
#include "native/bindings/definitions.h"
#include "native/bindings/device_options.h"
#include "native/bindings/device_stats.h"
#include "native/bindings/errors.h"
#include "pybind11/stl.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

client::BatchRequest RequestOf(int64_t batch_size, const std::string& ragged,
                               std::optional<int64_t> pad_to, int64_t max_bytes) {
  if (max_bytes < 1) {
    throw py::value_error("max_bytes (" + std::to_string(max_bytes) + ") must be >= 1.");
  }
  const RaggedPolicy policy = RaggedOf(ragged, pad_to);
  return {batch_size, policy.ragged, static_cast<size_t>(max_bytes), std::nullopt, policy.pad_to};
}

// Of `next`'s batch. Both work without the GIL.
template <typename Next>
py::tuple TakeBatch(std::optional<double> beta, batch::BufferPool& side_buffers,
                    device::GatherStream* side_gathers, Next next) {
  client::BatchPtr batch;
  BatchSides sides;
  WithoutGil([&]() -> absl::Status {
    GR_ASSIGN_OR_RETURN(batch, next());
    GR_ASSIGN_OR_RETURN(sides, BatchSides::Create(*batch, side_buffers, beta, side_gathers));
    return absl::OkStatus();
  });
  return py::make_tuple(ColumnArrays(*batch), sides.ToPython());
}

// For threads that take batches at the same time.
class LockedGathers final : public device::GatherStream {
 public:
  explicit LockedGathers(std::unique_ptr<device::GatherStream> gathers)
      : gathers_(std::move(gathers)) {}
  void SetSources(std::shared_ptr<device::SegmentSource> memory,
                  std::shared_ptr<device::DeviceTier> tier) override {
    base::MutexLock lock(&mutex_);
    gathers_->SetSources(std::move(memory), std::move(tier));
  }
  absl::StatusOr<std::shared_ptr<device::Output>> Gather(
      device::GatherPlan plan, uint64_t bytes, std::shared_ptr<const void> lease) override {
    base::MutexLock lock(&mutex_);
    return gathers_->Gather(std::move(plan), bytes, std::move(lease));
  }
  device::Stream stream() const override { return gathers_->stream(); }
  absl::StatusOr<std::shared_ptr<device::Output>> Write(
      uint64_t bytes, uint64_t source_bytes, std::shared_ptr<const void> lease,
      absl::FunctionRef<absl::Status(std::byte*)> write) override {
    base::MutexLock lock(&mutex_);
    return gathers_->Write(bytes, source_bytes, std::move(lease), write);
  }

 private:
  base::Mutex mutex_;
  const std::unique_ptr<device::GatherStream> gathers_;
};

class PyBatchSampler {
 public:
  PyBatchSampler(client::BatchSampler::Pointer sampler, std::shared_ptr<device::Device> device,
                 std::unique_ptr<device::GatherStream> side_gathers)
      : sampler_(std::move(sampler)),
        device_(std::move(device)),
        side_gathers_(std::move(side_gathers)) {}
  ~PyBatchSampler() {
    ReleaseGil release;  // It may have to tell the server.
    sampler_ = nullptr;
    side_gathers_ = nullptr;
  }

  py::tuple Next(std::optional<double> timeout, std::optional<double> beta) {
    CheckBeta(beta);
    const absl::Time deadline = DeadlineInSeconds(timeout);
    return TakeBatch(beta, *side_buffers_, side_gathers_.get(),
                     [&] { return sampler_->Next(deadline); });
  }

  py::object DeviceStats() const {
    return device_ == nullptr ? py::object(py::none()) : ToPython(device_->stats());
  }

  std::string WhyHostDraws() const { return sampler_->why_host_draws(); }

  void Close() {
    ReleaseGil release;
    sampler_->Close();
  }

 private:
  client::BatchSampler::Pointer sampler_;
  const std::shared_ptr<device::Device> device_;  // Null: none.
  std::unique_ptr<device::GatherStream> side_gathers_;
  const std::shared_ptr<batch::BufferPool> side_buffers_ = batch::BufferPool::Create(/*kept=*/4);
};

// Null: the host draws.
std::optional<device::Choice> DeviceDraws(const std::string& draw) {
  if (draw == "device") return device::Choice::kDraws;
  if (draw == "top_k") return device::Choice::kTopK;
  return std::nullopt;
}

}  // namespace

py::object MakeBatchSampler(const ClientPtr& client, const std::string& table, int64_t batch_size,
                            int64_t prefetch, const std::string& ragged,
                            std::optional<int64_t> pad_to, std::optional<uint64_t> seed,
                            int64_t max_bytes, const std::optional<std::string>& device_name,
                            const std::string& float32_to, const std::string& uint8_to,
                            const std::string& draw) {
  client::BatchSamplerOptions options;
  options.table = table;
  options.request = RequestOf(batch_size, ragged, pad_to, max_bytes);
  options.prefetch = prefetch;
  options.seed = seed;
  options.casts = CastsOf(float32_to, uint8_to);
  options.device_draws = DeviceDraws(draw);
  std::unique_ptr<device::GatherStream> side_gathers;
  if (device_name.has_value()) {
    WithoutGil([&]() -> absl::Status {
      GR_ASSIGN_OR_RETURN(options.device, OpenDevice(*device_name));
      if (options.device->gpu() < 0 && !options.device_draws.has_value()) return absl::OkStatus();
      GR_ASSIGN_OR_RETURN(auto stream, options.device->NewStream(/*kept=*/4));
      side_gathers = std::make_unique<LockedGathers>(std::move(stream));
      return absl::OkStatus();
    });
  }
  auto sampler = ValueOrThrow(client::BatchSampler::Create(
      [client](absl::Time deadline) { return client->GetConnection(deadline); }, options));
  return py::cast(std::make_unique<PyBatchSampler>(std::move(sampler), options.device,
                                                   std::move(side_gathers)));
}

py::tuple SampleBatch(const ClientPtr& client, const std::string& table, int64_t batch_size,
                      const std::string& ragged, std::optional<int64_t> pad_to, int64_t max_bytes,
                      std::optional<double> timeout, std::optional<double> beta) {
  CheckBeta(beta);
  const client::BatchRequest request = RequestOf(batch_size, ragged, pad_to, max_bytes);
  const absl::Time deadline = DeadlineInSeconds(timeout);
  return TakeBatch(beta, client->side_buffers(), nullptr,
                   [&] { return client->SampleBatch(table, request, deadline); });
}

void DefineBatchSampler(py::module_& module) {
  py::class_<PyBatchSampler>(module, "BatchSampler")
      .def("Next", &PyBatchSampler::Next, py::arg("timeout"), py::arg("beta"))
      .def("DeviceStats", &PyBatchSampler::DeviceStats)
      .def("WhyHostDraws", &PyBatchSampler::WhyHostDraws)
      .def("Close", &PyBatchSampler::Close);
}

}  // namespace gear_reverb::bindings
