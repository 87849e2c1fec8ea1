// Selectors, rate limiters, table extensions and tables.
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
#include "native/rpc/table_info_codec.h"
#include "native/table/table.h"
#include "pybind11/numpy.h"
#include "pybind11/stl.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

// Python's selector classes are descriptions; the table makes the working parts.
struct ItemSelector {
  selectors::SelectorOptions options;
};
struct FifoSelector : ItemSelector {};
struct LifoSelector : ItemSelector {};
struct UniformSelector : ItemSelector {};
struct PrioritizedSelector : ItemSelector {};
struct HeapSelector : ItemSelector {};

template <typename T>
T Checked(selectors::SelectorOptions options) {
  ThrowIfError(selectors::MakeSelector(options).status());
  return T{{options}};
}

void DefineSelectors(py::module_& module) {
  py::class_<ItemSelector>(module, "ItemSelector", "A strategy that selects items.")
      .def("__repr__", [](const ItemSelector& self) { return selectors::ToString(self.options); });
  py::class_<FifoSelector, ItemSelector>(module, "FifoSelector", "The oldest item.")
      .def(py::init([] { return FifoSelector{{selectors::FifoOptions{}}}; }));
  py::class_<LifoSelector, ItemSelector>(module, "LifoSelector", "The newest item.")
      .def(py::init([] { return LifoSelector{{selectors::LifoOptions{}}}; }));
  py::class_<UniformSelector, ItemSelector>(module, "UniformSelector",
                                            "Every item with the same probability.")
      .def(py::init([] { return UniformSelector{{selectors::UniformOptions{}}}; }));
  py::class_<PrioritizedSelector, ItemSelector>(
      module, "PrioritizedSelector",
      "An item with probability proportional to `priority ** priority_exponent`.")
      .def(py::init([](double exponent) {
             return Checked<PrioritizedSelector>(selectors::PrioritizedOptions{exponent});
           }),
           py::arg("priority_exponent"));
  py::class_<HeapSelector, ItemSelector>(
      module, "HeapSelector",
      "The item with the lowest priority, or with the highest; of equals, the least recently\n"
      "inserted or updated.")
      .def(py::init([](bool min_heap) { return HeapSelector{{selectors::HeapOptions{min_heap}}}; }),
           py::arg("min_heap"));
  module.def(
      "selector_from_proto",
      [](const py::bytes& serialized) {
        const auto options = ValueOrThrow(rpc::DecodeSelectorOptions(std::string(serialized)));
        return Checked<ItemSelector>(options);
      },
      py::arg("serialized_key_distribution_options"),
      "The selector that a serialised KeyDistributionOptions describes.");
}

void DefineRateLimiter(py::module_& module) {
  using rate_limiter::RateLimiterOptions;
  py::class_<RateLimiterOptions>(module, "RateLimiter",
                                 "When a table lets items in and out; see "
                                 "`gear_reverb.rate_limiters`.")
      .def(py::init([](double samples_per_insert, int64_t min_size_to_sample, double min_diff,
                       double max_diff) {
             const RateLimiterOptions options{samples_per_insert, min_size_to_sample, min_diff,
                                              max_diff};
             ThrowIfError(rate_limiter::RateLimiter::Create(options).status());
             return options;
           }),
           py::arg("samples_per_insert"), py::arg("min_size_to_sample"), py::arg("min_diff"),
           py::arg("max_diff"))
      .def("__repr__", [](const RateLimiterOptions& self) {
        return absl::StrCat("RateLimiter(samples_per_insert=", self.samples_per_insert,
                            ", min_diff_=", self.min_diff, ", max_diff=", self.max_diff,
                            ", min_size_to_sample=", self.min_size_to_sample, ")");
      });
}

int64_t PositiveCount(int64_t n, const char* name) {
  if (n <= 0) throw py::value_error(absl::StrCat(name, " must be > 0, but is ", n, "."));
  return n;
}

// Lengths that must agree, and be C-order (pybind11 converts).
template <typename T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

std::shared_ptr<table::Table> MakeTable(
    const std::string& name, const ItemSelector& sampler, const ItemSelector& remover,
    int64_t max_size, int64_t max_times_sampled,
    const rate_limiter::RateLimiterOptions& rate_limiter,
    const std::vector<std::shared_ptr<table::Extension>>& extensions,
    const std::optional<py::bytes>& signature, const std::optional<uint64_t>& seed, bool on_device,
    uint64_t device_bytes) {
  if (max_times_sampled != static_cast<int32_t>(max_times_sampled)) {
    throw py::value_error(absl::StrCat("max_times_sampled (", max_times_sampled, ") is too large"));
  }
  table::TableOptions options;
  options.name = name;
  options.sampler = sampler.options;
  options.remover = remover.options;
  options.max_size = max_size;
  options.max_times_sampled = static_cast<int32_t>(max_times_sampled);
  options.rate_limiter = rate_limiter;
  options.extensions = extensions;
  if (signature.has_value()) options.signature = std::string(*signature);
  options.has_seed = seed.has_value();
  options.seed = seed.value_or(0);
  options.placement = {on_device, device_bytes};
  return ValueOrThrow(table::Table::Create(std::move(options)));
}

std::string Describe(const table::Table& table) {
  const table::TableInfo info = table.info();
  return absl::StrCat("Table(name=", info.name, ", sampler=", selectors::ToString(info.sampler),
                      ", remover=", selectors::ToString(info.remover), ", max_size=", info.max_size,
                      ", max_times_sampled=", info.max_times_sampled,
                      ", current_size=", info.current_size, ")");
}

py::tuple SampleKeys(table::Table& table, int64_t n) {
  PositiveCount(n, "num_samples");
  py::array_t<uint64_t> keys(n);
  py::array_t<double> probabilities(n);
  ThrowIfError(table.DrawKeys({keys.mutable_data(), static_cast<size_t>(n)},
                              {probabilities.mutable_data(), static_cast<size_t>(n)}));
  return py::make_tuple(keys, probabilities);
}

void InsertKeys(table::Table& table, const Array<uint64_t>& keys, const Array<double>& priorities) {
  if (keys.size() != priorities.size()) {
    throw py::value_error(
        absl::StrCat("There are ", keys.size(), " keys but ", priorities.size(), " priorities."));
  }
  WithoutGil([&] {
    return table.InsertKeys({keys.data(), static_cast<size_t>(keys.size())},
                            {priorities.data(), static_cast<size_t>(priorities.size())});
  });
}

void DefineTable(py::module_& module) {
  using table::Table;
  py::class_<table::Extension, std::shared_ptr<table::Extension>>(
      module, "TableExtension", "What observes a table's changes.")
      .def("__repr__", &table::Extension::DebugString);
  py::class_<Table, std::shared_ptr<Table>>(
      module, "Table", "Items, their selectors and rate limiter; see `gear_reverb.Table`.")
      .def(py::init(&MakeTable), py::arg("name"), py::arg("sampler").none(false),
           py::arg("remover").none(false), py::arg("max_size"), py::arg("max_times_sampled"),
           py::arg("rate_limiter").none(false),
           py::arg("extensions") = std::vector<std::shared_ptr<table::Extension>>(),
           py::arg("signature") = py::none(), py::arg("seed") = py::none(),
           py::arg("on_device") = false, py::arg("device_bytes") = 0)
      .def("name", &Table::name)
      .def(
          "can_sample",
          [](const Table& self, int64_t n) {
            return self.CanSample(PositiveCount(n, "num_samples"));
          },
          py::arg("num_samples"))
      .def(
          "can_insert",
          [](const Table& self, int64_t n) {
            return self.CanInsert(PositiveCount(n, "num_inserts"));
          },
          py::arg("num_inserts"))
      .def("info",
           [](const Table& self) {
             return py::bytes(rpc::EncodeTableInfo(self.info()).TakeString());
           })
      .def("sample_keys", &SampleKeys, py::arg("num_samples"))
      .def("insert_keys", &InsertKeys, py::arg("keys"), py::arg("priorities"))
      .def("__repr__", &Describe);
}

}  // namespace

void DefineTables(py::module_& module) {
  DefineSelectors(module);
  DefineRateLimiter(module);
  DefineTable(module);
}

}  // namespace gear_reverb::bindings
