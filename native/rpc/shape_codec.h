// Tensor shapes on Reverb's wire (TensorFlow's TensorShapeProto).
#pragma once

#include "absl/status/statusor.h"
#include "native/rpc/message_writer.h"
#include "native/tensor/shape.h"
#include "protozero/pbf_reader.hpp"

namespace gear_reverb::rpc {

struct ShapeMessage {
  tensor::Shape shape;  // -1: an axis of unknown size.
  bool unknown_rank = false;
};

MessageWriter EncodeShape(absl::Span<const int64_t> shape);
// INVALID_ARGUMENT for more axes than TensorFlow allows. Axes are not checked otherwise.
absl::StatusOr<ShapeMessage> ReadShape(protozero::pbf_reader reader);

}  // namespace gear_reverb::rpc
