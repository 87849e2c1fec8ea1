#include "native/shm/drawn_record.h"

#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "native/base/status.h"
#include "native/shm/encoding.h"

namespace gear_reverb::shm {
namespace {

using tensor::DType;

// Where a piece lies, as it is sent.
struct Place {
  uint64_t offset;
  uint64_t bytes;
  uint32_t segment;
  uint32_t reserved;
};

absl::Span<const int64_t> StepShape(const storage::ChunkColumn& column) {
  return column.shape().subspan(1);
}

int64_t Elements(absl::Span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t axis : shape) count *= axis;
  return count;
}

// Makes places, and collects the segments that they lie in.
class PlaceMaker {
 public:
  explicit PlaceMaker(absl::flat_hash_set<uint32_t>* segments) : segments_(*segments) {}

  Place Make(const memory::Block& block, uint64_t offset, uint64_t bytes) {
    const uint32_t segment = block.segment();
    if (bytes > 0 && segment != last_) {
      last_ = segment;
      segments_.insert(segment);
    }
    return {block.offset() + offset, bytes, segment, 0};
  }

 private:
  absl::flat_hash_set<uint32_t>& segments_;
  uint32_t last_ = UINT32_MAX;
};

uint64_t StringOffset(const storage::ChunkColumn& column, int64_t element) {
  uint64_t offset;
  std::memcpy(&offset, column.data.data() + element * sizeof(offset), sizeof(offset));
  return offset;
}

using Items = absl::Span<const table::SampledItem>;

// Of an item without its places, if it has a column.
constexpr size_t kItemBytes = 4 * sizeof(uint64_t) + 3 * sizeof(int32_t) + sizeof(uint8_t);

// Places that an item takes: of strings each is one, of numbers each slice.
uint64_t NumPieces(const storage::Trajectory* trajectory) {
  if (trajectory == nullptr) return 0;
  uint64_t pieces = 0;
  for (const storage::TrajectoryColumn& column : trajectory->columns) {
    const storage::ChunkColumn& first = column.slices[0].source();
    pieces += first.dtype() == DType::kString
                  ? static_cast<uint64_t>(column.length()) * Elements(StepShape(first))
                  : column.slices.size();
  }
  return pieces;
}

void EncodeColumn(Items items, size_t index, std::string* out,
                  absl::flat_hash_set<uint32_t>* segments) {
  Encoder encoder(out);
  const auto column_of = [index](const table::SampledItem& item) {
    return item.item.trajectory->columns[index];
  };
  const storage::ChunkColumn& first = column_of(items[0]).slices[0].source();
  const bool strings = first.dtype() == DType::kString;
  const int64_t step_elements = Elements(StepShape(first));
  const uint64_t step_bytes = step_elements * tensor::ByteSize(first.dtype());
  encoder.PutEach<int32_t>(
      items, [&](const auto& item) { return static_cast<int32_t>(column_of(item).length()); });
  uint32_t pieces = 0;
  encoder.PutEach<uint32_t>(items, [&](const auto& item) {
    const storage::TrajectoryColumn column = column_of(item);
    return pieces += static_cast<uint32_t>(strings ? column.length() * step_elements
                                                   : static_cast<int64_t>(column.slices.size()));
  });
  PlaceMaker places(segments);
  char* to = encoder.Extend(size_t{pieces} * sizeof(Place));
  const auto put_place = [&](const memory::Block& block, uint64_t offset, uint64_t bytes) {
    const Place place = places.Make(block, offset, bytes);
    std::memcpy(to, &place, sizeof(place));
    to += sizeof(place);
  };
  for (const table::SampledItem& item : items) {
    for (const storage::ChunkSlice& slice : column_of(item).slices) {
      const storage::ChunkColumn& source = slice.source();
      if (!strings) {
        put_place(source.data, slice.offset * step_bytes, slice.length * step_bytes);
        continue;
      }
      const uint64_t text = (source.steps() * step_elements + 1) * sizeof(uint64_t);
      const int64_t begin = slice.offset * step_elements;
      uint64_t from = StringOffset(source, begin);
      for (int64_t i = 1; i <= slice.length * step_elements; ++i) {
        const uint64_t end = StringOffset(source, begin + i);
        put_place(source.data, text + from, end - from);
        from = end;
      }
    }
  }
}

void EncodeGroup(Items items, std::string* out, absl::flat_hash_set<uint32_t>* segments) {
  const storage::TrajectoryPtr& first = items[0].item.trajectory;  // All are like it.
  const size_t num_columns = first == nullptr ? 0 : first->columns.size();
  Encoder encoder(out);
  encoder.Put(static_cast<uint32_t>(items.size()));
  encoder.Put(static_cast<uint32_t>(num_columns));
  encoder.PutEach<uint64_t>(items, [](const auto& item) { return item.item.key; });
  encoder.PutEach<double>(items, [](const auto& item) { return item.probability; });
  encoder.PutEach<double>(items, [](const auto& item) { return item.item.priority; });
  encoder.PutEach<int64_t>(items, [](const auto& item) { return item.table_size; });
  encoder.PutEach<int32_t>(items, [](const auto& item) { return item.item.times_sampled; });
  encoder.PutEach<uint8_t>(items, [](const auto& item) { return item.rate_limited; });
  for (size_t i = 0; i < num_columns; ++i) {
    const storage::ChunkColumn& column = first->columns[i].slices[0].source();
    encoder.Put(static_cast<int32_t>(column.dtype()));
    encoder.Put<uint8_t>(first->columns[i].squeeze ? 1 : 0);
    encoder.PutArray(StepShape(column));
    EncodeColumn(items, i, out, segments);
  }
}

// Looks places up; remembers what it found.
class PlaceFinder {
 public:
  PlaceFinder(absl::FunctionRef<std::shared_ptr<const MappedSegment>(uint32_t)> find,
              std::vector<std::shared_ptr<const MappedSegment>>* used)
      : find_(find), used_(*used) {}

  // Null if there is no such place.
  const std::byte* Find(const Place& place) {
    if (!has_last_ || place.segment != last_id_) {
      const auto [known, added] = known_.try_emplace(place.segment, nullptr);
      if (added) {
        std::shared_ptr<const MappedSegment> found = find_(place.segment);
        known->second = found.get();
        if (found != nullptr) used_.push_back(std::move(found));
      }
      last_ = known->second;
      last_id_ = place.segment;
      has_last_ = true;
    }
    return last_ == nullptr ? nullptr : last_->At(place.offset, place.bytes);
  }

 private:
  const absl::FunctionRef<std::shared_ptr<const MappedSegment>(uint32_t)> find_;
  std::vector<std::shared_ptr<const MappedSegment>>& used_;
  absl::flat_hash_map<uint32_t, const MappedSegment*> known_;
  const MappedSegment* last_ = nullptr;
  uint32_t last_id_ = 0;
  bool has_last_ = false;
};

absl::Status Malformed() {
  return base::InvalidArgument("The record of drawn items is malformed.");
}

// Whether the pieces of every item are as many, or have as many bytes, as its length says.
bool PiecesFit(const batch::DrawnColumn& column) {
  int64_t step_elements;
  if (const auto elements = tensor::NumElements(column.step_shape); elements.ok()) {
    step_elements = *elements;
  } else {
    return false;
  }
  const bool strings = column.dtype == DType::kString;
  const int64_t width = strings ? 1 : static_cast<int64_t>(tensor::ByteSize(column.dtype));
  size_t piece = 0;
  for (size_t i = 0; i < column.lengths.size(); ++i) {
    const size_t end = column.piece_ends[i];
    if (column.lengths[i] < 1 || (column.squeezed && column.lengths[i] != 1)) return false;
    if (end < piece || end > column.pieces.size()) return false;
    int64_t expected;
    if (__builtin_mul_overflow(step_elements, int64_t{column.lengths[i]}, &expected) ||
        __builtin_mul_overflow(expected, width, &expected)) {
      return false;
    }
    uint64_t actual = strings ? end - piece : 0;
    // No overflow: every piece lies in a mapping, and there are fewer than 2^32.
    for (; piece < end; ++piece) {
      if (!strings) actual += column.pieces[piece].bytes;
    }
    if (actual != static_cast<uint64_t>(expected)) return false;
  }
  return piece == column.pieces.size();
}

absl::Status DecodeColumn(Decoder& decoder, size_t items, PlaceFinder& places,
                          batch::DrawnColumn* column) {
  column->dtype = static_cast<DType>(decoder.Get<int32_t>());
  column->squeezed = decoder.Get<uint8_t>() != 0;
  column->step_shape.resize(decoder.GetCount(sizeof(int64_t)));
  for (int64_t& axis : column->step_shape) axis = decoder.Get<int64_t>();
  column->lengths = decoder.GetValues<int32_t>(items);
  column->piece_ends = decoder.GetValues<uint32_t>(items);
  if (!decoder.ok() || !tensor::IsKnown(static_cast<int32_t>(column->dtype))) return Malformed();
  const size_t pieces = column->piece_ends.back();
  if (!decoder.Has(pieces, sizeof(Place))) return Malformed();
  column->pieces.reserve(pieces);
  for (size_t i = 0; i < pieces; ++i) {
    const auto place = decoder.Get<Place>();
    const std::byte* data = nullptr;
    if (place.bytes > 0 && (data = places.Find(place)) == nullptr) {
      return base::InvalidArgument("A piece lies outside of segment ", place.segment, ".");
    }
    column->pieces.push_back({data, place.bytes});
  }
  return PiecesFit(*column) ? absl::OkStatus() : Malformed();
}

absl::Status DecodeGroup(Decoder& decoder, PlaceFinder& places, batch::DrawnBatch* group) {
  const auto items = decoder.Get<uint32_t>();
  const auto columns = decoder.Get<uint32_t>();
  if (items == 0) return Malformed();
  group->keys = decoder.GetValues<uint64_t>(items);
  group->probabilities = decoder.GetValues<double>(items);
  group->priorities = decoder.GetValues<double>(items);
  group->table_sizes = decoder.GetValues<int64_t>(items);
  group->times_sampled = decoder.GetValues<int32_t>(items);
  group->rate_limited = decoder.GetValues<uint8_t>(items);
  // A column has more bytes than this.
  if (!decoder.Has(columns, 2 * sizeof(int32_t) * items)) return Malformed();
  group->columns.resize(columns);
  for (batch::DrawnColumn& column : group->columns) {
    GR_RETURN_IF_ERROR(DecodeColumn(decoder, items, places, &column));
  }
  return decoder.ok() ? absl::OkStatus() : Malformed();
}

}  // namespace

absl::Status EncodeDrawn(uint64_t lease, Items items, size_t max_bytes, std::string* out,
                         absl::flat_hash_set<uint32_t>* segments) {
  // A short item can be of many pieces: they are counted before there is memory for them.
  uint64_t pieces = 0;
  for (const table::SampledItem& item : items) {
    pieces += NumPieces(item.item.trajectory.get());
    if (pieces > max_bytes / sizeof(Place)) {
      return absl::ResourceExhaustedError("The description of the items is too long.");
    }
  }
  out->reserve(out->size() + sizeof(lease) + items.size() * kItemBytes + pieces * sizeof(Place));
  Encoder(out).Put(lease);
  while (!items.empty()) {
    const storage::Trajectory* first = items[0].item.trajectory.get();
    size_t alike = 1;
    for (; alike < items.size(); ++alike) {
      const storage::Trajectory* next = items[alike].item.trajectory.get();
      if (first == nullptr || next == nullptr ? first != next : !batch::AreAlike(*first, *next))
        break;
    }
    EncodeGroup(items.subspan(0, alike), out, segments);
    items.remove_prefix(alike);
  }
  return out->size() <= max_bytes
             ? absl::OkStatus()
             : absl::ResourceExhaustedError("The description of the items is too long.");
}

absl::StatusOr<Drawn> DecodeDrawn(
    absl::string_view body,
    absl::FunctionRef<std::shared_ptr<const MappedSegment>(uint32_t segment)> find) {
  Decoder decoder(body);
  Drawn drawn;
  PlaceFinder places(find, &drawn.segments);
  drawn.lease = decoder.Get<uint64_t>();
  while (decoder.ok() && !decoder.done()) {
    GR_RETURN_IF_ERROR(DecodeGroup(decoder, places, &drawn.groups.emplace_back()));
  }
  if (!decoder.done()) return Malformed();
  return drawn;
}

}  // namespace gear_reverb::shm
