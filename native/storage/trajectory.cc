#include "native/storage/trajectory.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include "absl/container/flat_hash_set.h"
#include "native/base/status.h"
#include "native/storage/free_blocks.h"

namespace gear_reverb::storage {
namespace {

using tensor::DType;

absl::Span<const int64_t> StepShape(const ChunkColumn& column) { return column.shape().subspan(1); }

// Elements of one step. The chunk was checked, so there is no overflow.
int64_t StepElements(const ChunkColumn& column) {
  int64_t count = 1;
  for (int64_t axis : StepShape(column)) count *= axis;
  return count;
}

// A slice of a packed string column: its elements' offsets and text.
struct StringSlice {
  int64_t count;
  const std::byte* offsets;  // count + 1 of them.
  const std::byte* text;     // Where the first element's text starts.
  uint64_t begin;            // That element's offset.
  uint64_t text_bytes;
};

uint64_t OffsetAt(const std::byte* offsets, int64_t i) {
  uint64_t offset;
  std::memcpy(&offset, offsets + i * sizeof(offset), sizeof(offset));
  return offset;
}

StringSlice StringsOf(const ChunkSlice& slice) {
  const ChunkColumn& source = slice.source();
  const int64_t per_step = StepElements(source);
  const int64_t total = per_step * source.steps();
  StringSlice strings;
  strings.count = per_step * slice.length;
  strings.offsets = source.data.data() + per_step * slice.offset * sizeof(uint64_t);
  strings.begin = OffsetAt(strings.offsets, 0);
  strings.text = source.data.data() + (total + 1) * sizeof(uint64_t) + strings.begin;
  strings.text_bytes = OffsetAt(strings.offsets, strings.count) - strings.begin;
  return strings;
}

absl::Status CheckSlice(const TrajectoryColumn& column, size_t index) {
  const ChunkSlice& slice = column.slices[index];
  if (slice.chunk == nullptr) return base::InvalidArgument("has no chunk.");
  if (slice.column < 0 || static_cast<size_t>(slice.column) >= slice.chunk->columns().size()) {
    return base::InvalidArgument("refers to column ", slice.column, " of chunk ",
                                 slice.chunk->key(), ", which has ", slice.chunk->columns().size(),
                                 ".");
  }
  const int64_t end = int64_t{slice.offset} + slice.length;
  if (slice.offset < 0 || slice.length <= 0 || end > slice.chunk->steps()) {
    return base::InvalidArgument("has offset ", slice.offset, " and length ", slice.length,
                                 ", which is not within the ", slice.chunk->steps(),
                                 " steps of chunk ", slice.chunk->key(), ".");
  }
  const ChunkColumn& source = slice.source();
  const ChunkColumn& first = column.slices[0].source();
  if (source.dtype() != first.dtype() || StepShape(source) != StepShape(first)) {
    return base::InvalidArgument("has steps of ", tensor::Name(source.dtype()),
                                 tensor::ShapeString(StepShape(source)), " but slice 0 of ",
                                 tensor::Name(first.dtype()), tensor::ShapeString(StepShape(first)),
                                 ".");
  }
  return absl::OkStatus();
}

// Bytes of the column's tensor; false on overflow. The slices must have been checked.
bool SumBytes(const TrajectoryColumn& column, int64_t* bytes) {
  const ChunkColumn& first = column.slices[0].source();
  const int64_t step_elements = StepElements(first);
  const bool strings = first.dtype() == DType::kString;
  // The packed form has one offset more than it has elements.
  int64_t elements = strings ? 1 : 0;
  int64_t text_bytes = 0;
  for (const ChunkSlice& slice : column.slices) {
    int64_t added;
    if (__builtin_mul_overflow(step_elements, slice.length, &added) ||
        __builtin_add_overflow(elements, added, &elements)) {
      return false;
    }
    if (strings &&
        __builtin_add_overflow(text_bytes, static_cast<int64_t>(StringsOf(slice).text_bytes),
                               &text_bytes)) {
      return false;
    }
  }
  const int64_t width =
      static_cast<int64_t>(strings ? sizeof(uint64_t) : tensor::ByteSize(first.dtype()));
  return !__builtin_mul_overflow(elements, width, bytes) &&
         !__builtin_add_overflow(*bytes, text_bytes, bytes);
}

void GatherStrings(const TrajectoryColumn& column, std::byte* out) {
  int64_t count = 0;
  for (const ChunkSlice& slice : column.slices) count += StringsOf(slice).count;
  std::byte* offsets = out;
  std::byte* text = out + (count + 1) * sizeof(uint64_t);
  uint64_t end = 0;
  const auto put_offset = [&offsets](uint64_t offset) {
    std::memcpy(offsets, &offset, sizeof(offset));
    offsets += sizeof(offset);
  };
  put_offset(0);
  for (const ChunkSlice& slice : column.slices) {
    const StringSlice strings = StringsOf(slice);
    for (int64_t i = 1; i <= strings.count; ++i) {
      put_offset(OffsetAt(strings.offsets, i) - strings.begin + end);
    }
    std::memcpy(text + end, strings.text, strings.text_bytes);
    end += strings.text_bytes;
  }
}

}  // namespace

int64_t TrajectoryColumn::length() const {
  int64_t length = 0;
  for (const ChunkSlice& slice : slices) length += slice.length;
  return length;
}

// References to chunks that are to be given back, those to one chunk together.
class Trajectory::ChunkDrops {
 public:
  ~ChunkDrops() { Flush(); }
  void Add(ChunkPtr dropped) {
    const Chunk* const chunk = dropped.Detach();
    if (chunk == nullptr) return;
    if (chunk != chunk_) Flush();
    chunk_ = chunk;
    ++count_;
  }

 private:
  void Flush() {
    if (count_ > 0) chunk_->Release(std::exchange(count_, 0));
  }

  const Chunk* chunk_ = nullptr;
  uint32_t count_ = 0;
};

void Trajectory::Free(ChunkDrops& drops) const {
  const size_t num_slices = columns.empty() ? 0 : columns.entries()[columns.size() - 1].end;
  const size_t bytes = BytesOf(columns.size(), num_slices);
  auto* const slices = const_cast<ChunkSlice*>(columns.slices());
  for (size_t i = 0; i < num_slices; ++i) drops.Add(std::move(slices[i].chunk));
  this->~Trajectory();
  FreeBlocks::Of().Put(const_cast<Trajectory*>(this), bytes);
}

void Trajectory::Release() const {
  if (!references_.Drop()) return;
  ChunkDrops drops;
  Free(drops);
}

void Trajectory::ReleaseAll(absl::Span<TrajectoryPtr> trajectories) {
  ChunkDrops drops;
  const Trajectory* last = nullptr;
  uint32_t count = 0;  // References to `last`.
  const auto drop_last = [&] {
    if (last != nullptr && last->references_.Drop(count)) last->Free(drops);
    count = 0;
  };
  for (TrajectoryPtr& pointer : trajectories) {
    const Trajectory* const trajectory = pointer.Detach();
    if (trajectory != last) drop_last();
    last = trajectory;
    ++count;
  }
  drop_last();
}

size_t Trajectory::BytesOf(size_t num_columns, size_t num_slices) {
  return sizeof(Trajectory) + Columns::EntriesOf(num_columns) * sizeof(Columns::Entry) +
         num_slices * sizeof(ChunkSlice);
}

std::vector<ChunkPtr> Trajectory::chunks() const {
  std::vector<ChunkPtr> chunks;
  // Most have few: then a search is faster than a set.
  constexpr size_t kFew = 8;
  absl::flat_hash_set<const Chunk*> seen;
  for (const TrajectoryColumn& column : columns) {
    for (const ChunkSlice& slice : column.slices) {
      if (!chunks.empty() && chunks.back() == slice.chunk) continue;
      if (chunks.size() < kFew) {
        if (std::find(chunks.begin(), chunks.end(), slice.chunk) != chunks.end()) continue;
      } else {
        if (seen.empty()) {
          for (const ChunkPtr& chunk : chunks) seen.insert(chunk.get());
        }
        if (!seen.insert(slice.chunk.get()).second) continue;
      }
      chunks.push_back(slice.chunk);
    }
  }
  return chunks;
}

Trajectory* TrajectoryBuilder::New(size_t num_columns, size_t num_slices) {
  if (num_slices >= size_t{1} << 31 || num_columns >= size_t{1} << 31) throw std::bad_alloc();
  void* const memory = FreeBlocks::Of().Take(Trajectory::BytesOf(num_columns, num_slices));
  return new (memory) Trajectory(num_columns);
}

TrajectoryPtr TrajectoryBuilder::Build() && {
  size_t num_slices = 0;
  for (const Column& column : columns) num_slices += column.slices.size();
  Trajectory* const made = New(columns.size(), num_slices);
  ChunkSlice* slice = SlicesIn(made);
  uint32_t end = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    for (ChunkSlice& from : columns[i].slices) new (slice++) ChunkSlice(std::move(from));
    end += static_cast<uint32_t>(columns[i].slices.size());
    new (EntriesIn(made) + i) Entry{end, columns[i].squeeze};
  }
  columns.clear();
  return TrajectoryPtr::Adopt(made);
}

TrajectoryPtr TrajectoryBuilder::SliceOf(const ChunkPtr& chunk, int32_t offset, int32_t length,
                                         bool squeeze) {
  const uint32_t count = static_cast<uint32_t>(chunk->columns().size());
  Trajectory* const made = New(count, count);
  for (uint32_t i = 0; i < count; ++i) {
    new (SlicesIn(made) + i) ChunkSlice{chunk, offset, length, static_cast<int32_t>(i)};
    new (EntriesIn(made) + i) Entry{i + 1, squeeze};
  }
  return TrajectoryPtr::Adopt(made);
}

TrajectoryPtr TrajectoryBuilder::RowOf(const TrajectoryPtr& first, uint32_t row) {
  if (row == 0) return first;
  const Trajectory::Columns& from = first->columns;
  const size_t num_slices = from.entries()[from.size() - 1].end;
  Trajectory* const made = New(from.size(), num_slices);
  std::uninitialized_copy_n(from.entries(), from.size(), EntriesIn(made));
  for (size_t i = 0; i < num_slices; ++i) {
    const ChunkSlice& slice = from.slices()[i];
    const auto offset = static_cast<int32_t>(slice.offset + int64_t{row} * slice.length);
    new (SlicesIn(made) + i) ChunkSlice{slice.chunk, offset, slice.length, slice.column};
  }
  return TrajectoryPtr::Adopt(made);
}

absl::Status CheckTrajectory(const Trajectory& trajectory) {
  if (trajectory.columns.empty()) return base::InvalidArgument("Trajectory has no column.");
  for (size_t i = 0; i < trajectory.columns.size(); ++i) {
    const TrajectoryColumn& column = trajectory.columns[i];
    if (column.slices.empty()) return base::InvalidArgument("Column ", i, " has no slice.");
    for (size_t j = 0; j < column.slices.size(); ++j) {
      const absl::Status status = CheckSlice(column, j);
      if (!status.ok()) {
        return base::InvalidArgument("Column ", i, ", slice ", j, " ", status.message());
      }
    }
    if (column.length() > std::numeric_limits<int32_t>::max()) {
      return base::InvalidArgument("Column ", i, " has ", column.length(),
                                   " steps; at most 2^31 - 1 can be sampled.");
    }
    if (column.squeeze && column.length() != 1) {
      return base::InvalidArgument("Column ", i, " is squeezed but has ", column.length(),
                                   " steps.");
    }
    int64_t bytes;
    if (!SumBytes(column, &bytes)) {
      return base::InvalidArgument("Column ", i, " has too many bytes.");
    }
  }
  return absl::OkStatus();
}

ColumnLayout LayoutOf(const TrajectoryColumn& column) {
  const ChunkColumn& first = column.slices[0].source();
  ColumnLayout layout{first.dtype(), {}, 0};
  if (!column.squeeze) layout.shape.push_back(column.length());
  const auto step_shape = StepShape(first);
  layout.shape.insert(layout.shape.end(), step_shape.begin(), step_shape.end());
  SumBytes(column, &layout.bytes);
  return layout;
}

void Gather(const TrajectoryColumn& column, std::byte* out) {
  const ChunkColumn& first = column.slices[0].source();
  if (first.dtype() == DType::kString) return GatherStrings(column, out);
  const size_t step_bytes = StepElements(first) * tensor::ByteSize(first.dtype());
  if (step_bytes == 0) return;
  for (const ChunkSlice& slice : column.slices) {
    const size_t bytes = slice.length * step_bytes;
    std::memcpy(out, slice.source().data.data() + slice.offset * step_bytes, bytes);
    out += bytes;
  }
}

bool HasTimesteps(const Trajectory& trajectory) {
  if (trajectory.columns.empty()) return false;
  const int64_t length = trajectory.columns[0].length();
  for (const TrajectoryColumn& column : trajectory.columns) {
    if (column.length() != length) return false;
  }
  return true;
}

}  // namespace gear_reverb::storage
