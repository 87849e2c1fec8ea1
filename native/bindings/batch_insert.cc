// Items by the thousand, from stacked arrays.
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "native/base/philox.h"
#include "native/bindings/arrays.h"
#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
#include "native/client/batch_insert.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

using Priorities = py::array_t<double, py::array::c_style | py::array::forcecast>;

py::array_t<uint64_t> InsertBatch(const ClientPtr& client, const std::string& table,
                                  const py::sequence& columns, const Priorities& priorities,
                                  int64_t timeout_ms) {
  const BorrowedStep stacked(columns);
  const absl::Time deadline =
      timeout_ms < 0 ? absl::InfiniteFuture() : absl::Now() + absl::Milliseconds(timeout_ms);
  if (priorities.ndim() != 1) throw py::value_error("priorities must be one-dimensional.");
  py::array_t<uint64_t> keys(priorities.size());
  const size_t size = priorities.size();
  const absl::Span<uint64_t> new_keys(keys.mutable_data(), size);
  const absl::Span<const double> given(priorities.data(), size);
  WithoutGil([&]() -> absl::Status {
    auto rows = storage::StackedRows::Create(stacked.views());
    if (!rows.ok()) return rows.status();
    // A run of keys, which a table finds together.
    std::iota(new_keys.begin(), new_keys.end(), base::RandomUint64());
    return client::InsertBatch(client, table, *rows, new_keys, given, deadline);
  });
  return keys;
}

}  // namespace

void DefineBatchInsert(py::module_& module) {
  module.def("insert_batch", &InsertBatch, py::arg("client"), py::arg("table"), py::arg("columns"),
             py::arg("priorities"), py::arg("timeout_ms") = -1,
             "Inserts row i of [N, ...] columns as item i; returns the keys, uint64[N].");
}

}  // namespace gear_reverb::bindings
