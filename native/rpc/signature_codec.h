// Table signatures on Reverb's wire: TensorFlow's StructuredValue.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "native/tensor/spec.h"

namespace gear_reverb::rpc {

// The leaves in flattening order (dicts by sorted key), with their paths. INVALID_ARGUMENT for
// malformed bytes, for anything but tensor specs and nests of them, or for nests 64 deep.
absl::StatusOr<tensor::Signature> DecodeSignature(absl::string_view structured_value);

}  // namespace gear_reverb::rpc
