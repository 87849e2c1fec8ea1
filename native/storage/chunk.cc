#include "native/storage/chunk.h"

#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "native/base/status.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::storage {
namespace {

absl::Status CheckColumn(const ChunkColumn& column) {
  if (!tensor::IsKnown(static_cast<int32_t>(column.dtype()))) {
    return base::InvalidArgument("has unknown type ", tensor::Name(column.dtype()), ".");
  }
  if (column.shape().empty()) return base::InvalidArgument("has no axis of steps.");
  if (column.shape()[0] <= 0) {
    return base::InvalidArgument("has shape ", tensor::ShapeString(column.shape()),
                                 ", which is no step.");
  }
  if (column.dtype() == tensor::DType::kString) {
    GR_ASSIGN_OR_RETURN(const int64_t count, tensor::NumElements(column.shape()));
    return tensor::CheckPackedStrings(column.data.span(), count);
  }
  GR_ASSIGN_OR_RETURN(const int64_t bytes, tensor::NumBytes(column.dtype(), column.shape()));
  // Snappy, the wire's form, goes no further.
  if (bytes > std::numeric_limits<uint32_t>::max()) {
    return base::InvalidArgument("has ", bytes, " bytes; a column of a chunk takes 2^32 - 1.");
  }
  if (static_cast<uint64_t>(bytes) != column.data.size()) {
    return base::InvalidArgument("of ", tensor::Name(column.dtype()),
                                 tensor::ShapeString(column.shape()), " needs ", bytes,
                                 " bytes but has ", column.data.size(), ".");
  }
  return absl::OkStatus();
}

}  // namespace

Chunk::Chunk(uint64_t key, SequenceRange range, std::vector<ChunkColumn> columns)
    : num_columns_(static_cast<uint32_t>(columns.size())),
      sparse_(range.sparse),
      key_(key),
      episode_id_(range.episode_id),
      start_(range.start),
      end_(range.end) {
  static_assert(sizeof(Chunk) % alignof(ChunkColumn) == 0);
  std::uninitialized_move(columns.begin(), columns.end(), reinterpret_cast<ChunkColumn*>(this + 1));
}

Chunk::~Chunk() {
  const auto all = columns();
  std::destroy_n(const_cast<ChunkColumn*>(all.data()), all.size());
}

void Chunk::Release(uint32_t n) const {
  if (!references_.Drop(n)) return;
  this->~Chunk();
  ::operator delete(const_cast<Chunk*>(this));
}

int64_t Chunk::bytes() const {
  int64_t bytes = 0;
  for (const ChunkColumn& column : columns()) bytes += static_cast<int64_t>(column.data.size());
  return bytes;
}

absl::StatusOr<ChunkPtr> Chunk::Create(uint64_t key, SequenceRange range,
                                       std::vector<ChunkColumn> columns) {
  if (columns.empty()) return base::InvalidArgument("Chunk ", key, " has no column.");
  for (size_t i = 0; i < columns.size(); ++i) {
    const absl::Status status = CheckColumn(columns[i]);
    if (!status.ok()) {
      return base::InvalidArgument("Chunk ", key, ", column ", i, " ", status.message());
    }
    if (columns[i].steps() != columns[0].steps()) {
      return base::InvalidArgument("Chunk ", key, ", column ", i, " has ", columns[i].steps(),
                                   " steps but column 0 has ", columns[0].steps(), ".");
    }
  }
  void* const memory = ::operator new(sizeof(Chunk) + columns.size() * sizeof(ChunkColumn));
  return ChunkPtr::Adopt(new (memory) Chunk(key, range, std::move(columns)));
}

absl::StatusOr<ChunkPtr> CopyToChunk(memory::Arena& arena, uint64_t key, SequenceRange range,
                                     absl::Span<const tensor::TensorView> views) {
  std::vector<ChunkColumn> columns;
  columns.reserve(views.size());
  for (const tensor::TensorView& view : views) {
    GR_ASSIGN_OR_RETURN(memory::Block block, arena.Allocate(view.data.size()));
    block.Write(0, view.data);
    columns.push_back({view.dtype, view.shape, std::move(block)});
  }
  return Chunk::Create(key, range, std::move(columns));
}

}  // namespace gear_reverb::storage
