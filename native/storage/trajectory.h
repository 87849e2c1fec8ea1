// A trajectory: what an item refers to, as slices of chunks, column by column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "native/storage/chunk.h"

namespace gear_reverb::storage {

// Steps [offset, offset + length) of column `column` of `chunk`.
struct ChunkSlice {
  ChunkPtr chunk;
  int32_t offset = 0;
  int32_t length = 0;
  int32_t column = 0;

  const ChunkColumn& source() const { return chunk->columns()[column]; }
};

// A column as its trajectory, or a TrajectoryBuilder, shows it: the slices in order make one tensor
// [sum of lengths, ...]; `squeeze` drops the first axis, which is then 1.
struct TrajectoryColumn {
  absl::Span<const ChunkSlice> slices;
  bool squeeze = false;

  int64_t length() const;
};

class Trajectory;
using TrajectoryPtr = base::RefPtr<const Trajectory>;

// Immutable, and one allocation with a count of its own, since there may be one per item: 16 bytes,
// 24 per slice and 8 per two further columns. Made by TrajectoryBuilder.
class Trajectory {
 public:
  // Read like a vector of TrajectoryColumn, whose elements are made when asked for.
  class Columns {
   public:
    class Iterator {
     public:
      using difference_type = std::ptrdiff_t;
      using value_type = TrajectoryColumn;
      using reference = TrajectoryColumn;
      using pointer = void;
      using iterator_category = std::input_iterator_tag;

      Iterator(const Columns* columns, size_t index) : columns_(columns), index_(index) {}
      TrajectoryColumn operator*() const { return (*columns_)[index_]; }
      Iterator& operator++() {
        ++index_;
        return *this;
      }
      bool operator==(const Iterator&) const = default;

     private:
      const Columns* columns_;
      size_t index_;
    };

    Columns(const Columns&) = delete;
    Columns& operator=(const Columns&) = delete;

    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    TrajectoryColumn operator[](size_t index) const {
      const Entry* const entries = this->entries();
      const size_t begin = index == 0 ? 0 : entries[index - 1].end;
      return {{slices() + begin, entries[index].end - begin}, entries[index].squeeze != 0};
    }
    Iterator begin() const { return {this, 0}; }
    Iterator end() const { return {this, size_}; }

   private:
    friend class Trajectory;
    friend struct TrajectoryBuilder;

    struct Entry {
      uint32_t end : 31;  // One past the column's last slice, of all.
      uint32_t squeeze : 1;
    };
    explicit Columns(size_t size) : size_(static_cast<uint32_t>(size)) {}
    // They follow the trajectory's fields, of which this is the last.
    const Entry* entries() const { return reinterpret_cast<const Entry*>(this + 1); }
    const ChunkSlice* slices() const {
      return reinterpret_cast<const ChunkSlice*>(entries() + EntriesOf(size_));
    }
    // An even number, which leaves the slices aligned.
    static constexpr size_t EntriesOf(size_t columns) { return (columns + 1) & ~size_t{1}; }

    uint32_t size_;
  };

  // Distinct chunks, in order of first use.
  std::vector<ChunkPtr> chunks() const;

  // For TrajectoryPtr, and for many of them at once.
  void AddRef(uint32_t n = 1) const { references_.Add(n); }
  void Release() const;
  // All become null. Cheaper than one by one where they are the same or share chunks.
  static void ReleaseAll(absl::Span<TrajectoryPtr> trajectories);

 private:
  friend struct TrajectoryBuilder;
  class ChunkDrops;
  explicit Trajectory(size_t num_columns) : columns(num_columns) {}
  static size_t BytesOf(size_t num_columns, size_t num_slices);
  ~Trajectory() = default;
  // Of one without references.
  void Free(ChunkDrops& drops) const;

  mutable base::RefCount references_;

 public:
  const Columns columns;
};
static_assert(sizeof(Trajectory) == 8);

// What a trajectory is put together in.
struct TrajectoryBuilder {
  struct Column {
    absl::InlinedVector<ChunkSlice, 2> slices;
    bool squeeze = false;

    operator TrajectoryColumn() const { return {slices, squeeze}; }
  };
  absl::InlinedVector<Column, 1> columns;

  // Takes the slices. Nothing is checked; std::bad_alloc for 2^31 of them.
  TrajectoryPtr Build() &&;
  // One slice per column of one chunk, the same steps of each.
  static TrajectoryPtr SliceOf(const ChunkPtr& chunk, int32_t offset, int32_t length, bool squeeze);
  // Row `row` of the rows that `first` is the first of: its slices, each moved on by `row` times
  // its length, which their chunks must have room for. `first` itself, which may be null, for row
  // 0.
  static TrajectoryPtr RowOf(const TrajectoryPtr& first, uint32_t row);

 private:
  using Entry = Trajectory::Columns::Entry;
  // Uninitialised entries and slices.
  static Trajectory* New(size_t num_columns, size_t num_slices);
  static Entry* EntriesIn(Trajectory* trajectory) {
    return const_cast<Entry*>(trajectory->columns.entries());
  }
  static ChunkSlice* SlicesIn(Trajectory* trajectory) {
    return const_cast<ChunkSlice*>(trajectory->columns.slices());
  }
};

// INVALID_ARGUMENT naming the column and slice unless: there is a column; every column has a slice;
// every slice lies within its chunk and has a positive length; the slices of a column agree in
// dtype and step shape, and their tensor's size fits 64 bits; a squeezed column has exactly one
// step.
absl::Status CheckTrajectory(const Trajectory& trajectory);

// dtype, shape (squeezed if so) and byte count of a checked column's tensor.
struct ColumnLayout {
  tensor::DType dtype;
  tensor::Shape shape;
  int64_t bytes;  // Of the packed form for strings.
};
ColumnLayout LayoutOf(const TrajectoryColumn& column);

// Copies a checked column's tensor to `out`, which has LayoutOf(column).bytes bytes.
void Gather(const TrajectoryColumn& column, std::byte* out);

// Whether the trajectory can be cut into single steps, step t of every column (Reverb's
// "timesteps"): there is a column, and all are equally long.
bool HasTimesteps(const Trajectory& trajectory);

}  // namespace gear_reverb::storage
