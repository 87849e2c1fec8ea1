// Blocks of samples as NumPy arrays: one call for many items, for tf.data and its like.
#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "native/base/status.h"
#include "native/bindings/arrays.h"
#include "native/bindings/batch_arrays.h"
#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
#include "native/client/batch_sampler.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

// What becomes of items in a block.
enum class Form {
  kItems,    // [items, T, ...]; [sum of T, ...] where T differs.
  kSteps,    // [sum of T, ...].
  kStacked,  // [items, T, ...], or an error.
  kPadded,   // [items, longest T, ...].
};

Form FormOf(const std::string& name) {
  if (name == "items") return Form::kItems;
  if (name == "steps") return Form::kSteps;
  if (name == "stacked") return Form::kStacked;
  if (name == "padded") return Form::kPadded;
  throw py::value_error("form must be 'items', 'steps', 'stacked' or 'padded', but is '" + name +
                        "'.");
}

// The first item whose length is not that of the first; none is their number.
size_t FirstOfOtherLength(const batch::DrawnColumn& column) {
  const auto& lengths = column.lengths;
  if (column.squeezed) return lengths.size();
  return std::find_if(lengths.begin(), lengths.end(),
                      [&](int32_t length) { return length != lengths[0]; }) -
         lengths.begin();
}

// [sum of T, ...] to [items, T, ...].
void Stack(const batch::DrawnColumn& drawn, batch::CollatedColumn* column) {
  if (drawn.squeezed) return;
  column->shape[0] = drawn.lengths[0];
  column->shape.insert(column->shape.begin(), drawn.lengths.size());
}

// In the words of tf.data, whose `batch` refuses the same.
absl::Status Refusal(const batch::DrawnColumn& column, size_t index, size_t item) {
  constexpr size_t kInfoColumns = 5;
  const auto shape = [&](size_t i) {
    tensor::Shape of_item{column.lengths[i]};
    of_item.insert(of_item.end(), column.step_shape.begin(), column.step_shape.end());
    return tensor::ShapeString(of_item);
  };
  return base::InvalidArgument("Cannot batch tensors with different shapes in component ",
                               index + kInfoColumns, ". First element had shape ", shape(0),
                               " and element ", item, " had shape ", shape(item), ".");
}

absl::Status CheckSteps(const batch::DrawnBatch& drawn) {
  for (size_t item = 0; item < drawn.size(); ++item) {
    for (const batch::DrawnColumn& column : drawn.columns) {
      if (column.lengths[item] == drawn.columns[0].lengths[item]) continue;
      return base::InvalidArgument(
          "Item ", drawn.keys[item],
          " cannot be cut into timesteps: its columns have different lengths. Use a "
          "TrajectoryDataset.");
    }
  }
  return absl::OkStatus();
}

class PyBlockSampler {
 public:
  PyBlockSampler(client::BatchSampler::Pointer sampler, Form form)
      : sampler_(std::move(sampler)), form_(form) {}

  ~PyBlockSampler() {
    ReleaseGil release;  // It may have to tell the server.
    sampler_ = nullptr;
  }

  // None: not yet. Otherwise (info, columns, lengths), the last by column and None where all items
  // have one length.
  py::object Next(int64_t wait_ms) {
    client::BatchPtr batch;
    BatchSides sides;
    const absl::Status status = Gather(wait_ms, &batch, &sides);
    if (absl::IsOutOfRange(status) || (!status.ok() && closed_)) throw py::stop_iteration();
    if (absl::IsDeadlineExceeded(status)) return py::none();
    ThrowIfError(status);
    const auto& columns = batch->drawn.columns;
    py::list lengths(columns.size());
    for (size_t i = 0; i < columns.size(); ++i) {
      const batch::DrawnColumn& column = columns[i];
      const bool differ =
          form_ == Form::kSteps ||
          (form_ == Form::kItems && FirstOfOtherLength(column) < batch->drawn.size());
      lengths[i] = py::none();
      if (differ) lengths[i] = py::array_t<int32_t>(column.lengths.size(), column.lengths.data());
    }
    return py::make_tuple(sides.ToPython()[0], ColumnArrays(*batch), lengths);
  }

  void Close() {
    closed_ = true;
    ReleaseGil release;
    sampler_->Close();
  }

 private:
  absl::Status Gather(int64_t wait_ms, client::BatchPtr* batch, BatchSides* sides) {
    ReleaseGil release;
    GR_ASSIGN_OR_RETURN(*batch, sampler_->Next(absl::Now() + absl::Milliseconds(wait_ms)));
    GR_RETURN_IF_ERROR(Shape(batch->get()));
    GR_ASSIGN_OR_RETURN(*sides,
                        BatchSides::Create(**batch, *side_buffers_, std::nullopt, nullptr, false));
    return absl::OkStatus();
  }

  absl::Status Shape(client::Batch* batch) const {
    if (form_ == Form::kPadded) return absl::OkStatus();
    if (form_ == Form::kSteps) return CheckSteps(batch->drawn);
    for (size_t i = 0; i < batch->drawn.columns.size(); ++i) {
      const batch::DrawnColumn& column = batch->drawn.columns[i];
      const size_t other = FirstOfOtherLength(column);
      if (other == batch->drawn.size()) {
        Stack(column, &batch->layout.columns[i]);
      } else if (form_ == Form::kStacked) {
        return Refusal(column, i, other);
      }
    }
    return absl::OkStatus();
  }

  client::BatchSampler::Pointer sampler_;
  const Form form_;
  const std::shared_ptr<batch::BufferPool> side_buffers_ = batch::BufferPool::Create(/*kept=*/4);
  std::atomic<bool> closed_{false};
};

void CheckCount(const char* name, int64_t value) {
  if (value >= 1 || value == -1) return;
  throw py::value_error(absl::StrCat(name, " (", value, ") must be a positive integer or -1"));
}

std::unique_ptr<PyBlockSampler> MakeBlockSampler(const ClientPtr& client, const std::string& table,
                                                 const std::string& form, int64_t size,
                                                 int64_t block_bytes, int64_t prefetch,
                                                 int64_t ahead, int64_t max_samples,
                                                 int64_t max_samples_per_stream,
                                                 int64_t rate_limiter_timeout_ms) {
  CheckCount("max_samples", max_samples);
  CheckCount("max_samples_per_stream", max_samples_per_stream);
  const Form of = FormOf(form);
  const bool block = of == Form::kItems || of == Form::kSteps;
  client::BatchSamplerOptions options;
  options.table = table;
  options.request.size = size;
  options.request.ragged = of == Form::kPadded ? batch::Ragged::kPad : batch::Ragged::kPack;
  options.request.max_bytes = std::numeric_limits<size_t>::max() - 1;
  if (block) options.request.block_bytes = static_cast<size_t>(block_bytes);
  options.prefetch = prefetch;
  options.ahead = std::max<int64_t>(0, ahead);
  options.polled = true;
  options.limits.max_items = max_samples;
  options.limits.max_items_per_stream = max_samples_per_stream;
  if (rate_limiter_timeout_ms >= 0) {
    // On the wire, as Reverb has it, 0 stands for no timeout.
    options.limits.rate_limiter_timeout =
        absl::Milliseconds(std::max<int64_t>(1, rate_limiter_timeout_ms));
  }
  auto sampler = ValueOrThrow(client::BatchSampler::Create(
      [client](absl::Time deadline) { return client->GetConnection(deadline); }, options));
  return std::make_unique<PyBlockSampler>(std::move(sampler), of);
}

}  // namespace

void DefineBlocks(py::module_& module) {
  py::class_<PyBlockSampler>(module, "BlockSampler")
      .def(py::init(&MakeBlockSampler), py::arg("client"), py::arg("table"), py::kw_only(),
           py::arg("form"), py::arg("size"), py::arg("block_bytes"), py::arg("prefetch"),
           py::arg("ahead"), py::arg("max_samples"), py::arg("max_samples_per_stream"),
           py::arg("rate_limiter_timeout_ms"))
      .def("next", &PyBlockSampler::Next, py::arg("wait_ms"))
      .def("close", &PyBlockSampler::Close);
}

}  // namespace gear_reverb::bindings
