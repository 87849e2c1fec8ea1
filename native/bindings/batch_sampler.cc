// The batch sampler: one native call per batch.
#include "native/client/batch_sampler.h"

#include <cmath>
#include <utility>

#include "native/base/status.h"
#include "native/bindings/batch_arrays.h"
#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
#include "pybind11/stl.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

batch::Ragged RaggedOf(const std::string& name) {
  if (name == "error") return batch::Ragged::kError;
  if (name == "pad") return batch::Ragged::kPad;
  if (name == "pack") return batch::Ragged::kPack;
  throw py::value_error("ragged must be 'error', 'pad' or 'pack', but is '" + name + "'.");
}

client::BatchRequest RequestOf(int64_t batch_size, const std::string& ragged, int64_t max_bytes) {
  if (max_bytes < 1) {
    throw py::value_error("max_bytes (" + std::to_string(max_bytes) + ") must be >= 1.");
  }
  return {batch_size, RaggedOf(ragged), static_cast<size_t>(max_bytes), std::nullopt};
}

// In seconds from now; none: for ever.
absl::Time DeadlineOf(std::optional<double> timeout) {
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

// Of `next`'s batch. Both work without the GIL.
template <typename Next>
py::tuple TakeBatch(std::optional<double> beta, batch::BufferPool& side_buffers, Next next) {
  client::BatchPtr batch;
  BatchSides sides;
  WithoutGil([&]() -> absl::Status {
    GR_ASSIGN_OR_RETURN(batch, next());
    GR_ASSIGN_OR_RETURN(sides, BatchSides::Create(*batch, side_buffers, beta));
    return absl::OkStatus();
  });
  return py::make_tuple(ColumnArrays(*batch), sides.ToPython());
}

class PyBatchSampler {
 public:
  explicit PyBatchSampler(client::BatchSampler::Pointer sampler) : sampler_(std::move(sampler)) {}
  ~PyBatchSampler() {
    ReleaseGil release;  // It may have to tell the server.
    sampler_ = nullptr;
  }

  py::tuple Next(std::optional<double> timeout, std::optional<double> beta) {
    CheckBeta(beta);
    const absl::Time deadline = DeadlineOf(timeout);
    return TakeBatch(beta, *side_buffers_, [&] { return sampler_->Next(deadline); });
  }

  void Close() {
    ReleaseGil release;
    sampler_->Close();
  }

 private:
  client::BatchSampler::Pointer sampler_;
  const std::shared_ptr<batch::BufferPool> side_buffers_ = batch::BufferPool::Create(/*kept=*/4);
};

}  // namespace

py::object MakeBatchSampler(const ClientPtr& client, const std::string& table, int64_t batch_size,
                            int64_t prefetch, const std::string& ragged,
                            std::optional<uint64_t> seed, int64_t max_bytes) {
  client::BatchSamplerOptions options;
  options.table = table;
  options.request = RequestOf(batch_size, ragged, max_bytes);
  options.prefetch = prefetch;
  options.seed = seed;
  auto sampler = ValueOrThrow(
      client::BatchSampler::Create([client] { return client->GetConnection(); }, options));
  return py::cast(std::make_unique<PyBatchSampler>(std::move(sampler)));
}

py::tuple SampleBatch(const ClientPtr& client, const std::string& table, int64_t batch_size,
                      const std::string& ragged, int64_t max_bytes, std::optional<double> timeout,
                      std::optional<double> beta) {
  CheckBeta(beta);
  const client::BatchRequest request = RequestOf(batch_size, ragged, max_bytes);
  const absl::Time deadline = DeadlineOf(timeout);
  return TakeBatch(beta, client->side_buffers(),
                   [&] { return client->SampleBatch(table, request, deadline); });
}

void DefineBatchSampler(py::module_& module) {
  py::class_<PyBatchSampler>(module, "BatchSampler")
      .def("Next", &PyBatchSampler::Next, py::arg("timeout"), py::arg("beta"))
      .def("Close", &PyBatchSampler::Close);
}

}  // namespace gear_reverb::bindings
