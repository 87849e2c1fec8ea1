#include "native/rpc/chunk_codec.h"

#include <utility>
#include <vector>

#include "native/codec/delta.h"
#include "native/codec/snappy.h"
#include "native/codec/wire_strings.h"
#include "native/rpc/fields.h"
#include "native/rpc/parse.h"
#include "native/rpc/shape_codec.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::rpc {
namespace {

using storage::ChunkColumn;
using tensor::DType;

// Snappy's densest element makes 64 bytes from 3; anything beyond is a lie about the size.
constexpr int64_t kMaxSnappyRatio = 22;

struct TensorMessage {
  DType dtype = DType::kInvalid;
  tensor::Shape shape;
  absl::string_view content;
  std::vector<absl::string_view> strings;
};

MessageWriter EncodeTensor(const storage::ChunkPtr& chunk, const ChunkColumn& column,
                           Compression compression) {
  MessageWriter message;
  message.AddInt64(field::tensor_proto::kDtype, static_cast<int64_t>(column.dtype()));
  message.AddMessage(field::tensor_proto::kShape, EncodeShape(column.shape()));
  const auto bytes = column.data.span();
  if (column.dtype() == DType::kString) {
    const int64_t count = *tensor::NumElements(column.shape());
    message.AddBytes(field::tensor_proto::kContent, codec::WireFromPacked(bytes, count));
  } else if (compression == Compression::kSnappy || bytes.size() > UINT32_MAX) {
    message.AddBytes(field::tensor_proto::kContent, codec::Compress(bytes));
  } else {
    message.AddSharedBytes(field::tensor_proto::kContent, codec::LiteralHeader(bytes.size()), bytes,
                           std::make_shared<storage::ChunkPtr>(chunk));
  }
  return message;
}

absl::StatusOr<TensorMessage> ReadTensor(protozero::pbf_reader reader) {
  TensorMessage tensor;
  while (reader.next()) {
    switch (reader.tag()) {
      case field::tensor_proto::kDtype: {
        const int32_t number = reader.get_int32();
        if (!tensor::IsKnown(number)) {
          return base::InvalidArgument("Tensor has unsupported type number ", number, ".");
        }
        tensor.dtype = static_cast<DType>(number);
        break;
      }
      case field::tensor_proto::kShape: {
        GR_ASSIGN_OR_RETURN(ShapeMessage shape, ReadShape(reader.get_message()));
        tensor.shape = std::move(shape.shape);
        break;
      }
      case field::tensor_proto::kContent: tensor.content = ToStringView(reader.get_view()); break;
      case field::tensor_proto::kStringValues:
        tensor.strings.push_back(ToStringView(reader.get_view()));
        break;
      default: reader.skip();
    }
  }
  if (tensor.dtype == DType::kInvalid) return base::InvalidArgument("Tensor has no type.");
  return tensor;
}

absl::StatusOr<memory::Block> CopyToBlock(memory::Arena& arena, absl::string_view bytes) {
  GR_ASSIGN_OR_RETURN(memory::Block block, arena.Allocate(bytes.size()));
  block.Write(0, ToBytes(bytes));
  return block;
}

absl::StatusOr<memory::Block> DecodeStrings(const TensorMessage& tensor, memory::Arena& arena) {
  GR_ASSIGN_OR_RETURN(const int64_t count, tensor::NumElements(tensor.shape));
  if (!tensor.strings.empty()) {
    if (static_cast<int64_t>(tensor.strings.size()) != count) {
      return base::InvalidArgument("String tensor of ", count, " elements has ",
                                   tensor.strings.size(), " values.");
    }
    return CopyToBlock(arena, tensor::PackStrings(tensor.strings));
  }
  GR_ASSIGN_OR_RETURN(const std::string packed,
                      codec::PackedFromWire(ToBytes(tensor.content), count));
  return CopyToBlock(arena, packed);
}

absl::StatusOr<memory::Block> DecodeNumbers(const TensorMessage& tensor, bool delta_encoded,
                                            memory::Arena& arena) {
  GR_ASSIGN_OR_RETURN(const int64_t bytes, tensor::NumBytes(tensor.dtype, tensor.shape));
  const absl::Span<const std::byte> content = ToBytes(tensor.content);
  if (bytes == 0 && content.empty()) return arena.Allocate(0);
  GR_ASSIGN_OR_RETURN(const size_t declared, codec::UncompressedLength(content));
  if (static_cast<uint64_t>(bytes) != declared) {
    return base::InvalidArgument("Tensor ", tensor::Name(tensor.dtype),
                                 tensor::ShapeString(tensor.shape), " needs ", bytes,
                                 " bytes but its content declares ", declared, ".");
  }
  if (bytes / kMaxSnappyRatio > static_cast<int64_t>(content.size())) {
    return base::InvalidArgument("Tensor content of ", content.size(), " bytes cannot hold ", bytes,
                                 " bytes.");
  }
  GR_ASSIGN_OR_RETURN(memory::Block block, arena.Allocate(bytes));
  if (const auto literal = codec::AsLiteral(content)) {
    block.Write(0, *literal);
  } else {
    GR_RETURN_IF_ERROR(codec::Decompress(content, block.mutable_span()));
  }
  if (delta_encoded) codec::DeltaDecode(tensor.dtype, tensor.shape, block.mutable_span());
  return block;
}

absl::StatusOr<ChunkColumn> DecodeColumn(const TensorMessage& tensor, bool delta_encoded,
                                         memory::Arena& arena) {
  ChunkColumn column(tensor.dtype, tensor.shape);
  if (tensor.dtype == DType::kString) {
    GR_ASSIGN_OR_RETURN(column.data, DecodeStrings(tensor, arena));
  } else {
    GR_ASSIGN_OR_RETURN(column.data, DecodeNumbers(tensor, delta_encoded, arena));
  }
  return column;
}

storage::SequenceRange ReadRange(protozero::pbf_reader reader) {
  storage::SequenceRange range;
  while (reader.next()) {
    switch (reader.tag()) {
      case field::sequence_range::kEpisodeId: range.episode_id = reader.get_uint64(); break;
      case field::sequence_range::kStart: range.start = reader.get_int32(); break;
      case field::sequence_range::kEnd: range.end = reader.get_int32(); break;
      case field::sequence_range::kSparse: range.sparse = ReadBool(reader); break;
      default: reader.skip();
    }
  }
  return range;
}

absl::Status ReadTensors(protozero::pbf_reader reader, std::vector<TensorMessage>* tensors) {
  while (reader.next()) {
    if (reader.tag() == field::chunk_tensors::kTensors) {
      GR_ASSIGN_OR_RETURN(TensorMessage tensor, ReadTensor(reader.get_message()));
      tensors->push_back(std::move(tensor));
    } else {
      reader.skip();
    }
  }
  return absl::OkStatus();
}

}  // namespace

MessageWriter EncodeChunk(const storage::ChunkPtr& chunk, Compression compression) {
  MessageWriter message;
  message.AddUint64(field::chunk_data::kChunkKey, chunk->key());
  MessageWriter range;
  range.AddUint64(field::sequence_range::kEpisodeId, chunk->range().episode_id);
  range.AddInt64(field::sequence_range::kStart, chunk->range().start);
  range.AddInt64(field::sequence_range::kEnd, chunk->range().end);
  if (chunk->range().sparse) range.AddBool(field::sequence_range::kSparse, true);
  message.AddMessage(field::chunk_data::kSequenceRange, std::move(range));
  MessageWriter tensors;
  for (const ChunkColumn& column : chunk->columns()) {
    tensors.AddMessage(field::chunk_tensors::kTensors, EncodeTensor(chunk, column, compression));
  }
  message.AddMessage(field::chunk_data::kData, std::move(tensors));
  message.AddInt64(field::chunk_data::kTensorsLen, chunk->columns().size());
  message.AddInt64(field::chunk_data::kUncompressedSize, chunk->bytes());
  return message;
}

absl::StatusOr<storage::ChunkPtr> DecodeChunk(absl::string_view bytes, memory::Arena& arena) {
  uint64_t key = 0;
  bool delta_encoded = false;
  storage::SequenceRange range;
  std::vector<TensorMessage> tensors;
  const absl::Status read = Guarded("ChunkData", [&]() -> absl::Status {
    protozero::pbf_reader reader(ToDataView(bytes));
    while (reader.next()) {
      switch (reader.tag()) {
        case field::chunk_data::kChunkKey: key = reader.get_uint64(); break;
        case field::chunk_data::kSequenceRange: range = ReadRange(reader.get_message()); break;
        case field::chunk_data::kDeltaEncoded: delta_encoded = ReadBool(reader); break;
        case field::chunk_data::kData:
          GR_RETURN_IF_ERROR(ReadTensors(reader.get_message(), &tensors));
          break;
        case field::chunk_data::kDeprecatedTensors: {
          GR_ASSIGN_OR_RETURN(TensorMessage tensor, ReadTensor(reader.get_message()));
          tensors.push_back(std::move(tensor));
          break;
        }
        default: reader.skip();
      }
    }
    return absl::OkStatus();
  });
  GR_RETURN_IF_ERROR(read);
  std::vector<ChunkColumn> columns;
  columns.reserve(tensors.size());
  for (const TensorMessage& tensor : tensors) {
    absl::StatusOr<ChunkColumn> column = DecodeColumn(tensor, delta_encoded, arena);
    if (!column.ok()) {
      return absl::Status(column.status().code(),
                          absl::StrCat("Chunk ", key, ", column ", columns.size(), ": ",
                                       column.status().message()));
    }
    columns.push_back(*std::move(column));
  }
  return storage::Chunk::Create(key, range, std::move(columns));
}

}  // namespace gear_reverb::rpc
