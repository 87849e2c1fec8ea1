#include "native/writer/signature_check.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "native/base/status.h"

namespace gear_reverb::writer {
namespace {

// "[?,2]".
std::string AxesText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[",
                      absl::StrJoin(shape, ",",
                                    [](std::string* out, int64_t axis) {
                                      absl::StrAppend(
                                          out, axis < 0 ? std::string("?") : absl::StrCat(axis));
                                    }),
                      "]");
}

std::string ShapeText(const tensor::TensorSpec& spec) {
  return spec.unknown_rank ? "<unknown>" : AxesText(spec.shape);
}

std::string TensorText(const std::string& name, tensor::DType dtype, const std::string& shape) {
  return absl::StrCat("Tensor<name: '", name, "', dtype: ", tensor::Name(dtype), ", shape: ", shape,
                      ">");
}

std::string SignatureText(const tensor::Signature& signature) {
  std::vector<std::string> parts;
  for (const tensor::TensorSpec& spec : signature) {
    parts.push_back(absl::StrCat(
        parts.size(), ": ",
        TensorText(spec.path.empty() ? spec.name : spec.path, spec.dtype, ShapeText(spec))));
  }
  return absl::StrJoin(parts, ", ");
}

std::string ColumnsText(absl::Span<const ColumnSpec> columns) {
  std::vector<std::string> parts;
  for (const ColumnSpec& column : columns) {
    parts.push_back(
        absl::StrCat(parts.size(), ": ",
                     TensorText(absl::StrCat(parts.size()), column.dtype, AxesText(column.shape))));
  }
  return absl::StrJoin(parts, ", ");
}

// The first column that does not fit.
std::optional<size_t> FirstMisfit(const tensor::Signature& signature,
                                  absl::Span<const ColumnSpec> columns) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!tensor::Fits(signature[i], columns[i].dtype, columns[i].shape)) return i;
  }
  return std::nullopt;
}

std::optional<size_t> FirstStepMisfit(const tensor::Signature& signature, int64_t num_timesteps,
                                      absl::Span<const ColumnSpec> columns) {
  for (size_t i = 0; i < columns.size(); ++i) {
    tensor::Shape whole = columns[i].shape;
    whole.insert(whole.begin(), num_timesteps);
    if (!tensor::Fits(signature[i], columns[i].dtype, columns[i].shape) &&
        !tensor::Fits(signature[i], columns[i].dtype, whole)) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace

absl::Status CheckTrajectorySignature(const std::string& table, const tensor::Signature& signature,
                                      absl::Span<const ColumnSpec> columns) {
  std::string what;
  if (columns.size() != signature.size()) {
    what = absl::StrCat("The trajectory has ", columns.size(),
                        " columns but the table signature has ", signature.size(), " columns.");
  } else if (const auto misfit = FirstMisfit(signature, columns); misfit.has_value()) {
    const tensor::TensorSpec& spec = signature[*misfit];
    const ColumnSpec& column = columns[*misfit];
    what = absl::StrCat("The table expects column ", *misfit,
                        spec.path.empty() ? "" : absl::StrCat(" ('", spec.path, "')"), " to be a ",
                        tensor::Name(spec.dtype), " ", ShapeText(spec), " tensor but got a ",
                        tensor::Name(column.dtype), " ", AxesText(column.shape), " tensor.");
  } else {
    return absl::OkStatus();
  }
  return base::InvalidArgument(
      "Unable to create item in table '", table,
      "' since the provided trajectory is inconsistent with the table signature. ", what,
      "\n\nThe table signature is:\n\t", SignatureText(signature),
      "\n\nThe provided trajectory signature is:\n\t", ColumnsText(columns), ".\n");
}

absl::Status CheckStepSignature(const std::string& table, const tensor::Signature& signature,
                                int64_t offset, int64_t num_timesteps,
                                absl::Span<const ColumnSpec> columns) {
  std::string what;
  if (columns.size() != signature.size()) {
    what = absl::StrCat("saw ", columns.size(), " tensors, but the table requires ",
                        signature.size(), " tensors per step.");
  } else if (const auto misfit = FirstStepMisfit(signature, num_timesteps, columns);
             misfit.has_value()) {
    const tensor::TensorSpec& spec = signature[*misfit];
    const ColumnSpec& column = columns[*misfit];
    what = absl::StrCat("flattened index ", *misfit, ", saw a tensor of dtype ",
                        tensor::Name(column.dtype), ", shape ", AxesText(column.shape),
                        ", but expected tensor '", spec.path.empty() ? spec.name : spec.path,
                        "' of dtype ", tensor::Name(spec.dtype), " and shape compatible with ",
                        ShapeText(spec), ".");
  } else {
    return absl::OkStatus();
  }
  return base::InvalidArgument(
      "Unable to CreateItem in table '", table,
      "' because Append was called with a tensor signature inconsistent with the table "
      "signature. At timestep offset ",
      offset, ", ", what, "  (Flattened) table signature: ", SignatureText(signature),
      ", data signature: ", ColumnsText(columns), ".");
}

}  // namespace gear_reverb::writer
