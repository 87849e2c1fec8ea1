#include "native/rpc/signature_codec.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "native/rpc/parse.h"
#include "native/rpc/shape_codec.h"

namespace gear_reverb::rpc {
namespace {

// Fields of StructuredValue (tensorflow/core/protobuf/struct.proto) that a signature may use.
constexpr uint32_t kTensorSpec = 33, kBoundedTensorSpec = 35;
constexpr uint32_t kList = 51, kTuple = 52, kDict = 53, kNamedTuple = 54;
// Of TensorSpecProto and BoundedTensorSpecProto.
constexpr uint32_t kSpecName = 1, kSpecShape = 2, kSpecDtype = 3;

constexpr int kMaxDepth = 64;

std::string Join(const std::string& path, const std::string& part) {
  return path.empty() ? part : absl::StrCat(path, "/", part);
}

class SignatureReader {
 public:
  absl::Status ReadValue(protozero::pbf_reader reader, const std::string& path, int depth) {
    if (depth > kMaxDepth) return base::InvalidArgument("Signature is nested too deeply.");
    if (!reader.next()) return base::InvalidArgument("Signature has an empty value at ", path);
    switch (reader.tag()) {
      case kTensorSpec:
      case kBoundedTensorSpec: return ReadSpec(reader.get_message(), path);
      case kList:
      case kTuple: return ReadSequence(reader.get_message(), path, depth);
      case kDict: return ReadPairs(reader.get_message(), 1, path, depth, /*sorted=*/true);
      case kNamedTuple: return ReadPairs(reader.get_message(), 2, path, depth, /*sorted=*/false);
      default:
        return base::InvalidArgument("Signature has a value of kind ", reader.tag(), " at '", path,
                                     "', which is neither a tensor spec nor a nest.");
    }
  }

  tensor::Signature Take() { return std::move(leaves_); }

 private:
  absl::Status ReadSpec(protozero::pbf_reader reader, const std::string& path) {
    tensor::TensorSpec spec;
    spec.path = path;
    while (reader.next()) {
      switch (reader.tag()) {
        case kSpecName: spec.name = reader.get_string(); break;
        case kSpecShape: {
          GR_ASSIGN_OR_RETURN(ShapeMessage shape, ReadShape(reader.get_message()));
          spec.shape = std::move(shape.shape);
          spec.unknown_rank = shape.unknown_rank;
          break;
        }
        case kSpecDtype: spec.dtype = static_cast<tensor::DType>(reader.get_int32()); break;
        default: reader.skip();
      }
    }
    leaves_.push_back(std::move(spec));
    return absl::OkStatus();
  }

  absl::Status ReadSequence(protozero::pbf_reader reader, const std::string& path, int depth) {
    int index = 0;
    while (reader.next()) {
      if (reader.tag() != 1) {
        reader.skip();
        continue;
      }
      GR_RETURN_IF_ERROR(
          ReadValue(reader.get_message(), Join(path, absl::StrCat(index++)), depth + 1));
    }
    return absl::OkStatus();
  }

  // Pairs {1: name, 2: value} in the repeated field `pair_field`.
  absl::Status ReadPairs(protozero::pbf_reader reader, uint32_t pair_field, const std::string& path,
                         int depth, bool sorted) {
    std::vector<std::pair<std::string, protozero::data_view>> pairs;
    while (reader.next()) {
      if (reader.tag() != pair_field) {
        reader.skip();
        continue;
      }
      auto& [name, value] = pairs.emplace_back();
      protozero::pbf_reader pair = reader.get_message();
      while (pair.next()) {
        switch (pair.tag()) {
          case 1: name = pair.get_string(); break;
          case 2: value = pair.get_view(); break;
          default: pair.skip();
        }
      }
    }
    if (sorted) {
      std::stable_sort(pairs.begin(), pairs.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
    }
    for (const auto& [name, value] : pairs) {
      GR_RETURN_IF_ERROR(ReadValue(protozero::pbf_reader(value), Join(path, name), depth + 1));
    }
    return absl::OkStatus();
  }

  tensor::Signature leaves_;
};

}  // namespace

absl::StatusOr<tensor::Signature> DecodeSignature(absl::string_view bytes) {
  SignatureReader reader;
  GR_RETURN_IF_ERROR(Guarded("StructuredValue", [&] {
    return reader.ReadValue(protozero::pbf_reader(ToDataView(bytes)), "", 0);
  }));
  return reader.Take();
}

}  // namespace gear_reverb::rpc
