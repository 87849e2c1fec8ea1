// Samples as NumPy arrays, whole or step by step.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "native/bindings/arrays.h"
#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
#include "native/bindings/peer_delete.h"
#include "native/client/sampler.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

constexpr int kNumInfoFields = 5;

// key, probability, table_size, priority, times_sampled.
py::tuple InfoOf(const table::SampledItem& sample) {
  return py::make_tuple(sample.item.key, sample.probability, sample.table_size,
                        sample.item.priority, sample.item.times_sampled);
}

py::list Concatenate(const py::tuple& info, const py::sequence& data) {
  py::list out(info.size() + data.size());
  size_t i = 0;
  for (py::handle value : info) out[i++] = value;
  for (py::handle value : data) out[i++] = value;
  return out;
}

// Thread-compatible but for Close.
class PySampler {
 public:
  explicit PySampler(std::unique_ptr<client::Sampler> sampler)
      : sampler_(sampler.release(), PeerDelete()) {}

  py::list NextTrajectory() {
    const table::SampledItem sample = Next();
    return Concatenate(InfoOf(sample), ToArrays(*sample.item.trajectory));
  }

  py::tuple NextTimestep() {
    if (step_ == steps_) StartTrajectory();
    py::list data(columns_.size());
    // An index of () after the step keeps a scalar's array from becoming a NumPy scalar.
    const py::tuple index = py::make_tuple(step_, py::ellipsis());
    for (size_t i = 0; i < columns_.size(); ++i) {
      const py::object column = columns_[i];
      data[i] = (squeezed_[i] ? column : py::object(column[index])).attr("copy")();
    }
    const bool last = ++step_ == steps_;
    return py::make_tuple(Concatenate(info_, data), last);
  }

  // A call in another thread ends with an error.
  void Close() {
    if (const auto sampler = std::exchange(sampler_, nullptr)) sampler->Cancel();
  }

 private:
  table::SampledItem Next() {
    const std::shared_ptr<client::Sampler> sampler = sampler_;  // Close may come meanwhile.
    if (sampler == nullptr) throw py::value_error("The sampler has been closed.");
    auto sample = WithoutGil([&] { return sampler->Next(); });
    if (!sample.has_value()) throw py::stop_iteration();
    if (sample->item.trajectory == nullptr) throw py::value_error("The item has no data.");
    return *std::move(sample);
  }

  void StartTrajectory() {
    const table::SampledItem sample = Next();
    const storage::Trajectory& trajectory = *sample.item.trajectory;
    if (!storage::HasTimesteps(trajectory)) {
      throw py::value_error(
          "The item cannot be cut into timesteps: its columns have different lengths. Sample with "
          "emit_timesteps=False.");
    }
    info_ = InfoOf(sample);
    columns_ = ToArrays(trajectory);
    squeezed_.clear();
    for (const auto& column : trajectory.columns) squeezed_.push_back(column.squeeze);
    steps_ = trajectory.columns[0].length();
    step_ = 0;
  }

  std::shared_ptr<client::Sampler> sampler_;
  // The trajectory that is being given out.
  py::tuple info_;
  py::list columns_;
  std::vector<bool> squeezed_;  // Columns of one step, without its axis.
  int64_t step_ = 0;
  int64_t steps_ = 0;
};

}  // namespace

py::object MakeSampler(const ClientPtr& client, const std::string& table, int64_t max_samples,
                       int64_t buffer_size, int64_t timeout_ms) {
  if (max_samples < 1 && max_samples != -1) {
    throw py::value_error("max_samples (" + std::to_string(max_samples) + ") must be -1 or >= 1");
  }
  client::SamplerOptions options;
  options.table = table;
  options.max_samples = max_samples;
  options.max_in_flight = buffer_size;
  if (timeout_ms > 0) options.rate_limiter_timeout = absl::Milliseconds(timeout_ms);
  auto sampler = ValueOrThrow(client::Sampler::Create(
      [client](absl::Time deadline) { return client->GetConnection(deadline); }, options));
  return py::cast(std::make_unique<PySampler>(std::move(sampler)));
}

void DefineSampler(py::module_& module) {
  py::class_<PySampler>(module, "Sampler")
      .def_property_readonly_static("NUM_INFO_TENSORS",
                                    [](const py::object&) { return kNumInfoFields; })
      .def("GetNextTimestep", &PySampler::NextTimestep)
      .def("GetNextTrajectory", &PySampler::NextTrajectory)
      .def("Close", &PySampler::Close);
}

}  // namespace gear_reverb::bindings
