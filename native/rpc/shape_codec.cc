#include "native/rpc/shape_codec.h"

#include <utility>

#include "native/base/status.h"
#include "native/rpc/fields.h"
#include "native/rpc/parse.h"

namespace gear_reverb::rpc {
namespace {

constexpr size_t kMaxAxes = 254;

int64_t ReadAxis(protozero::pbf_reader reader) {
  int64_t size = 0;
  while (reader.next()) {
    if (reader.tag() == field::axis::kSize) {
      size = reader.get_int64();
    } else {
      reader.skip();
    }
  }
  return size;
}

}  // namespace

MessageWriter EncodeShape(absl::Span<const int64_t> shape) {
  MessageWriter message;
  for (int64_t size : shape) {
    MessageWriter axis;
    if (size != 0) axis.AddInt64(field::axis::kSize, size);
    message.AddMessage(field::tensor_shape::kAxes, std::move(axis));
  }
  return message;
}

absl::StatusOr<ShapeMessage> ReadShape(protozero::pbf_reader reader) {
  ShapeMessage message;
  while (reader.next()) {
    switch (reader.tag()) {
      case field::tensor_shape::kAxes:
        if (message.shape.size() == kMaxAxes) {
          return base::InvalidArgument("Tensor has more than ", kMaxAxes, " axes.");
        }
        message.shape.push_back(ReadAxis(reader.get_message()));
        break;
      case field::tensor_shape::kUnknownRank: message.unknown_rank = ReadBool(reader); break;
      default: reader.skip();
    }
  }
  return message;
}

}  // namespace gear_reverb::rpc
