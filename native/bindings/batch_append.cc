// Consecutive steps of a TrajectoryWriter, stacked.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "native/bindings/arrays.h"
#include "native/bindings/cell_refs.h"
#include "native/bindings/definitions.h"
#include "native/bindings/errors.h"
#include "native/tensor/packed_strings.h"
#include "native/writer/trajectory_writer.h"
#include "pybind11/stl.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

using writer::TrajectoryWriter;

// One column's steps, one after another.
class StackedColumn {
 public:
  explicit StackedColumn(tensor::TensorView stacked) : stacked_(std::move(stacked)) {
    step_.dtype = stacked_.dtype;
    step_.shape.assign(stacked_.shape.begin() + 1, stacked_.shape.end());
    elements_ = *tensor::NumElements(step_.shape);
    if (stacked_.dtype != tensor::DType::kString) {
      bytes_ = elements_ * static_cast<int64_t>(tensor::ByteSize(stacked_.dtype));
    }
  }
  // Valid until the next call.
  const tensor::TensorView& Step(int64_t index) {
    if (stacked_.dtype == tensor::DType::kString) {
      packed_ = tensor::PackStrings(tensor::UnpackStrings(
          stacked_.data, elements_ * stacked_.shape[0], index * elements_, elements_));
      step_.data = {reinterpret_cast<const std::byte*>(packed_.data()), packed_.size()};
    } else {
      step_.data = stacked_.data.subspan(index * bytes_, bytes_);
    }
    return step_;
  }

 private:
  const tensor::TensorView stacked_;
  tensor::TensorView step_;
  int64_t elements_ = 0;  // Of a step.
  int64_t bytes_ = 0;
  std::string packed_;
};

// Appends `num_steps` steps; the cells of each, of which only the last `keep` are returned.
py::list AppendBatch(TrajectoryWriter& self, const py::sequence& data, int64_t num_steps,
                     int64_t keep) {
  const BorrowedStep borrowed(data);
  std::vector<std::optional<StackedColumn>> columns;
  for (const auto& view : borrowed.optional_views()) {
    if (!view.has_value()) {
      columns.emplace_back();
    } else if (view->shape.empty() || view->shape[0] != num_steps) {
      throw py::value_error(
          absl::StrCat("Data for column ", columns.size(), " is not ", num_steps, " steps."));
    } else if (num_steps > 0) {
      columns.emplace_back(std::in_place, *view);
    }
  }
  std::vector<TrajectoryWriter::Cells> steps;
  absl::Status status;
  {
    ReleaseGil release;
    TrajectoryWriter::Step step(columns.size());
    for (int64_t i = 0; i < num_steps && status.ok(); ++i) {
      for (size_t c = 0; c < columns.size(); ++c) {
        if (columns[c].has_value()) step[c] = columns[c]->Step(i);
      }
      auto cells = self.Append(step);
      status = cells.status();
      if (status.ok() && i >= num_steps - keep) steps.push_back(*std::move(cells));
    }
  }
  ThrowIfError(status);
  py::list references;
  for (TrajectoryWriter::Cells& cells : steps) references.append(ToPython(std::move(cells)));
  return references;
}

}  // namespace

void DefineBatchAppend(py::module_& module) {
  module.def("append_batch", &AppendBatch, py::arg("writer"), py::arg("data"), py::arg("num_steps"),
             py::arg("keep"),
             "Appends [num_steps, ...] columns; returns the cells of the last `keep` steps.");
}

}  // namespace gear_reverb::bindings
