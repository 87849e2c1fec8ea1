// Blocks of samples as NumPy arrays: one call for many items, for tf.data and its like.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "native/bindings/arrays.h"
#include "native/bindings/block_memory.h"
#include "native/bindings/block_source.h"
#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
#include "native/tensor/packed_strings.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

using Items = std::vector<table::SampledItem>;
using tensor::DType;

constexpr int kInfoColumns = 5;

// One column of all items, as it will lie in memory.
struct BlockColumn {
  DType dtype = DType::kInvalid;
  tensor::Shape shape;
  size_t offset = 0;  // In the block's buffer; not for strings.
};

struct BlockLayout {
  std::vector<BlockColumn> columns;
  std::vector<int64_t> rows;  // By item: one, or its steps.
  int64_t total_rows = 0;
  size_t bytes = 0;
};

size_t Aligned(size_t bytes) {
  constexpr size_t a = BlockMemory::kAlignment;
  return (bytes + a - 1) / a * a;
}

// The items are alike.
absl::StatusOr<BlockLayout> LayOut(const Items& items, bool timesteps) {
  BlockLayout layout;
  for (const table::SampledItem& sample : items) {
    const storage::Trajectory& trajectory = *sample.item.trajectory;
    if (timesteps && !storage::HasTimesteps(trajectory)) {
      return absl::InvalidArgumentError(
          absl::StrCat("Item ", sample.item.key,
                       " cannot be cut into timesteps: its columns have different lengths or are "
                       "squeezed. Use a TrajectoryDataset."));
    }
    layout.rows.push_back(timesteps ? trajectory.columns[0].length() : 1);
    layout.total_rows += layout.rows.back();
  }
  for (const storage::TrajectoryColumn& source : items[0].item.trajectory->columns) {
    const storage::ColumnLayout one = storage::LayoutOf(source);
    BlockColumn column{one.dtype, {layout.total_rows}, layout.bytes};
    column.shape.insert(column.shape.end(), one.shape.begin() + (timesteps ? 1 : 0),
                        one.shape.end());
    if (one.dtype != DType::kString) {
      const auto bytes = tensor::NumBytes(one.dtype, column.shape);
      if (!bytes.ok()) return bytes.status();
      layout.bytes += Aligned(*bytes);
    }
    layout.columns.push_back(std::move(column));
  }
  return layout;
}

void GatherColumn(const Items& items, size_t index, std::byte* out) {
  for (size_t i = 0; i < items.size(); ++i) {
    const storage::TrajectoryColumn& column = items[i].item.trajectory->columns[index];
    storage::Gather(column, out);
    out += storage::LayoutOf(column).bytes;
  }
}

py::array StringColumn(const Items& items, size_t index, const BlockColumn& layout) {
  py::array array(ToNumpy(DType::kString),
                  std::vector<py::ssize_t>(layout.shape.begin(), layout.shape.end()));
  auto** elements = static_cast<PyObject**>(array.mutable_data());
  std::string packed;
  for (const table::SampledItem& sample : items) {
    const storage::TrajectoryColumn& column = sample.item.trajectory->columns[index];
    const storage::ColumnLayout one = storage::LayoutOf(column);
    packed.resize(one.bytes);
    storage::Gather(column, reinterpret_cast<std::byte*>(packed.data()));
    const int64_t count = *tensor::NumElements(one.shape);
    const absl::Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(packed.data()),
                                            packed.size());
    for (absl::string_view text : tensor::UnpackStrings(bytes, count, 0, count)) {
      PyObject* object = PyBytes_FromStringAndSize(text.data(), text.size());
      if (object == nullptr) throw py::error_already_set();
      Py_XDECREF(std::exchange(*elements++, object));
    }
  }
  return array;
}

// One value per row, by item.
template <typename T, typename Get>
py::array_t<T> InfoColumn(const Items& items, const BlockLayout& layout, Get get) {
  py::array_t<T> array(layout.total_rows);
  T* out = array.mutable_data();
  for (size_t i = 0; i < items.size(); ++i) {
    out = std::fill_n(out, layout.rows[i], static_cast<T>(get(items[i])));
  }
  return array;
}

py::list InfoColumns(const Items& items, const BlockLayout& layout) {
  using Sample = table::SampledItem;
  py::list out;
  out.append(InfoColumn<uint64_t>(items, layout, [](const Sample& s) { return s.item.key; }));
  out.append(InfoColumn<double>(items, layout, [](const Sample& s) { return s.probability; }));
  out.append(InfoColumn<int64_t>(items, layout, [](const Sample& s) { return s.table_size; }));
  out.append(InfoColumn<double>(items, layout, [](const Sample& s) { return s.item.priority; }));
  out.append(
      InfoColumn<int32_t>(items, layout, [](const Sample& s) { return s.item.times_sampled; }));
  return out;
}

// In the words of tf.data, whose `batch` refuses the same.
absl::Status CheckAlike(const Items& items) {
  const storage::Trajectory& first = *items[0].item.trajectory;
  for (size_t i = 1; i < items.size(); ++i) {
    const storage::Trajectory& other = *items[i].item.trajectory;
    const Difference difference = Compare(first, other, /*timesteps=*/false);
    if (difference.kind == Difference::Kind::kNone) continue;
    if (difference.kind == Difference::Kind::kColumns) {
      return absl::InvalidArgumentError(
          absl::StrCat("Cannot batch items with different numbers of columns: the first item has ",
                       first.columns.size(), " and item ", i, " has ", other.columns.size(), "."));
    }
    const size_t c = difference.column;
    const auto a = storage::LayoutOf(first.columns[c]);
    const auto b = storage::LayoutOf(other.columns[c]);
    if (difference.kind == Difference::Kind::kDtype) {
      return absl::InvalidArgumentError(
          absl::StrCat("Cannot batch tensors with different types in component ", c + kInfoColumns,
                       ". First element had type ", tensor::Name(a.dtype), " and element ", i,
                       " had type ", tensor::Name(b.dtype), "."));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("Cannot batch tensors with different shapes in component ", c + kInfoColumns,
                     ". First element had shape ", tensor::ShapeString(a.shape), " and element ", i,
                     " had shape ", tensor::ShapeString(b.shape), "."));
  }
  return absl::OkStatus();
}

class PyBlockSampler {
 public:
  PyBlockSampler(std::unique_ptr<BlockSource> source, bool timesteps)
      : source_(std::move(source)), timesteps_(timesteps) {}

  ~PyBlockSampler() { Close(); }

  // None: not yet.
  py::object Next(const BlockRequest& request) {
    auto items = WithoutGil([&] { return source_->Next(request, timesteps_); });
    if (!items.has_value()) throw py::stop_iteration();
    if (items->empty()) return py::none();
    if (request.whole) ThrowIfError(CheckAlike(*items));
    const BlockLayout layout = ValueOrThrow(LayOut(*items, timesteps_));

    py::list out = InfoColumns(*items, layout);
    const std::shared_ptr<std::byte> buffer = memory_->Allocate(layout.bytes);
    const py::capsule owner(new std::shared_ptr<std::byte>(buffer), [](void* owned) {
      delete static_cast<std::shared_ptr<std::byte>*>(owned);
    });
    {
      ReleaseGil release;
      for (size_t i = 0; i < layout.columns.size(); ++i) {
        if (layout.columns[i].dtype == DType::kString) continue;
        GatherColumn(*items, i, buffer.get() + layout.columns[i].offset);
      }
    }
    for (size_t i = 0; i < layout.columns.size(); ++i) {
      const BlockColumn& column = layout.columns[i];
      if (column.dtype == DType::kString) {
        out.append(StringColumn(*items, i, column));
      } else {
        out.append(py::array(ToNumpy(column.dtype),
                             std::vector<py::ssize_t>(column.shape.begin(), column.shape.end()),
                             buffer.get() + column.offset, owner));
      }
    }
    ReleaseGil release;
    items->clear();  // Large items take a while to free.
    return out;
  }

  void Close() {
    ReleaseGil release;
    source_->Close();
  }

 private:
  const std::unique_ptr<BlockSource> source_;
  const bool timesteps_;
  const std::shared_ptr<BlockMemory> memory_ = std::make_shared<BlockMemory>();
};

void CheckCount(const char* name, int64_t value) {
  if (value >= 1 || value == -1) return;
  throw py::value_error(absl::StrCat(name, " (", value, ") must be a positive integer or -1"));
}

std::unique_ptr<PyBlockSampler> MakeBlockSampler(const ClientPtr& client, const std::string& table,
                                                 int64_t max_samples, int64_t max_in_flight,
                                                 int64_t max_samples_per_stream,
                                                 int64_t rate_limiter_timeout_ms, bool timesteps) {
  CheckCount("max_samples", max_samples);
  CheckCount("max_samples_per_stream", max_samples_per_stream);
  BlockSourceOptions options;
  options.sampler.table = table;
  options.sampler.max_samples = max_samples;
  options.sampler.max_in_flight = max_in_flight;
  options.max_samples_per_stream = max_samples_per_stream;
  if (rate_limiter_timeout_ms >= 0) {
    // On the wire, as Reverb has it, 0 stands for no timeout.
    options.sampler.rate_limiter_timeout =
        absl::Milliseconds(std::max<int64_t>(1, rate_limiter_timeout_ms));
  }
  return std::make_unique<PyBlockSampler>(
      ValueOrThrow(BlockSource::Create(client, std::move(options))), timesteps);
}

}  // namespace

void DefineBlocks(py::module_& module) {
  py::class_<PyBlockSampler>(module, "BlockSampler")
      .def(py::init(&MakeBlockSampler), py::arg("client"), py::arg("table"), py::kw_only(),
           py::arg("max_samples"), py::arg("max_in_flight"), py::arg("max_samples_per_stream"),
           py::arg("rate_limiter_timeout_ms"), py::arg("timesteps"))
      .def(
          "next_block",
          [](PyBlockSampler& self, int64_t items, int64_t wait_ms, size_t max_bytes) {
            return self.Next({items, false, absl::Milliseconds(wait_ms), max_bytes});
          },
          py::arg("items"), py::arg("wait_ms"), py::arg("max_bytes"))
      .def(
          "next_batch",
          [](PyBlockSampler& self, int64_t items, int64_t wait_ms) {
            return self.Next({items, true, absl::Milliseconds(wait_ms), 0});
          },
          py::arg("items"), py::arg("wait_ms"))
      .def("close", &PyBlockSampler::Close);
}

}  // namespace gear_reverb::bindings
