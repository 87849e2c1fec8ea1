// Items against the signatures of the tables they are meant for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/tensor/spec.h"

namespace gear_reverb::writer {

// A table's signature, null where it has none. NOT_FOUND for an unknown table, with a text that
// names the known ones; other errors mean that the server could not be asked. May block; caching
// is up to the provider. An empty function: nothing is checked.
using SignatureProvider = std::function<absl::StatusOr<std::shared_ptr<const tensor::Signature>>(
    const std::string& table)>;

struct ColumnSpec {
  tensor::DType dtype = tensor::DType::kInvalid;
  tensor::Shape shape;
};

// What an item of a TrajectoryWriter must be: `columns` are its whole columns ([T, ...], or
// squeezed). INVALID_ARGUMENT with the column, its path and both specs.
absl::Status CheckTrajectorySignature(const std::string& table, const tensor::Signature& signature,
                                      absl::Span<const ColumnSpec> columns);

// What every step of an item of a Writer must be, `offset` being its place in the item: each spec
// fits the column's step, or the column of all `num_timesteps` steps.
absl::Status CheckStepSignature(const std::string& table, const tensor::Signature& signature,
                                int64_t offset, int64_t num_timesteps,
                                absl::Span<const ColumnSpec> columns);

}  // namespace gear_reverb::writer
