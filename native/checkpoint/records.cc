#include "native/checkpoint/records.h"

#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "native/base/status.h"

namespace gear_reverb::checkpoint {
namespace {

using selectors::SelectorOptions;

void EncodeSelector(const SelectorOptions& selector, Encoder& to) {
  uint8_t type = static_cast<uint8_t>(selector.index() + 1);
  double exponent = 0;
  if (const auto* prioritized = std::get_if<selectors::PrioritizedOptions>(&selector)) {
    exponent = prioritized->exponent;
  }
  if (const auto* heap = std::get_if<selectors::HeapOptions>(&selector)) {
    type = heap->min_heap ? 6 : 5;
  }
  to.Put(type);
  to.Put(exponent);
}

// The types are those of the variant's order, up to the fifth's two; a sixth needs one from 7 on.
static_assert(std::variant_size_v<SelectorOptions> == 5);
static_assert(
    std::is_same_v<std::variant_alternative_t<0, SelectorOptions>, selectors::FifoOptions>);
static_assert(
    std::is_same_v<std::variant_alternative_t<1, SelectorOptions>, selectors::LifoOptions>);
static_assert(
    std::is_same_v<std::variant_alternative_t<2, SelectorOptions>, selectors::UniformOptions>);
static_assert(
    std::is_same_v<std::variant_alternative_t<3, SelectorOptions>, selectors::PrioritizedOptions>);

absl::Status DecodeSelector(Decoder& from, SelectorOptions& selector) {
  const auto type = from.Get<uint8_t>();
  const auto exponent = from.Get<double>();
  switch (type) {
    case 1: selector = selectors::FifoOptions{}; break;
    case 2: selector = selectors::LifoOptions{}; break;
    case 3: selector = selectors::UniformOptions{}; break;
    case 4: selector = selectors::PrioritizedOptions{exponent}; break;
    case 5: selector = selectors::HeapOptions{/*min_heap=*/false}; break;
    case 6: selector = selectors::HeapOptions{/*min_heap=*/true}; break;
    default: return base::InvalidArgument("selector ", type, " is unknown");
  }
  return absl::OkStatus();
}

absl::Status TooShort() { return base::InvalidArgument("its payload is too short"); }

}  // namespace

void EncodeTable(const table::TableSnapshot& snapshot, Encoder& to) {
  const table::TableInfo& info = snapshot.info;
  to.PutBytes(info.name);
  EncodeSelector(info.sampler, to);
  EncodeSelector(info.remover, to);
  to.Put(info.max_size);
  to.Put(info.max_times_sampled);
  to.Put(info.rate_limiter.samples_per_insert);
  to.Put(info.rate_limiter.min_size_to_sample);
  to.Put(info.rate_limiter.min_diff);
  to.Put(info.rate_limiter.max_diff);
  to.Put(info.counts.inserts);
  to.Put(info.counts.samples);
  to.Put(info.counts.deletes);
  to.Put(info.num_deleted_episodes);
  to.Put(info.num_unique_samples);
  to.Put(snapshot.seed);
  to.Put(snapshot.random_position);
  to.PutBytes(info.signature);
  to.Put<uint64_t>(snapshot.items.size());
}

absl::StatusOr<TableRecord> DecodeTable(absl::string_view payload) {
  Decoder from(payload);
  TableRecord record;
  table::TableInfo& info = record.snapshot.info;
  info.name = std::string(from.GetBytes());
  GR_RETURN_IF_ERROR(DecodeSelector(from, info.sampler));
  GR_RETURN_IF_ERROR(DecodeSelector(from, info.remover));
  info.max_size = from.Get<int64_t>();
  info.max_times_sampled = from.Get<int32_t>();
  info.rate_limiter.samples_per_insert = from.Get<double>();
  info.rate_limiter.min_size_to_sample = from.Get<int64_t>();
  info.rate_limiter.min_diff = from.Get<double>();
  info.rate_limiter.max_diff = from.Get<double>();
  info.counts.inserts = from.Get<int64_t>();
  info.counts.samples = from.Get<int64_t>();
  info.counts.deletes = from.Get<int64_t>();
  info.num_deleted_episodes = from.Get<int64_t>();
  info.num_unique_samples = from.Get<int64_t>();
  record.snapshot.seed = from.Get<uint64_t>();
  record.snapshot.random_position = from.Get<uint64_t>();
  info.signature = std::string(from.GetBytes());
  record.num_items = from.Get<uint64_t>();
  if (!from.done()) return base::InvalidArgument("its payload has a wrong length");
  if (info.num_deleted_episodes < 0 || info.num_unique_samples < 0) {
    return base::InvalidArgument("it holds a negative count");
  }
  return record;
}

void EncodeChunkHead(const storage::Chunk& chunk, Encoder& to) {
  to.Put(chunk.key());
  to.Put(chunk.range().episode_id);
  to.Put(chunk.range().start);
  to.Put(chunk.range().end);
  to.Put<uint8_t>(chunk.range().sparse);
  to.Put<uint32_t>(chunk.columns().size());
  for (const storage::ChunkColumn& column : chunk.columns()) {
    to.Put(static_cast<int32_t>(column.dtype()));
    to.Put<uint32_t>(column.shape().size());
    for (const int64_t axis : column.shape()) to.Put(axis);
    to.Put<uint64_t>(column.data.size());
  }
}

absl::StatusOr<storage::ChunkPtr> DecodeChunk(absl::string_view payload, memory::Arena& arena) {
  Decoder from(payload);
  const auto key = from.Get<uint64_t>();
  storage::SequenceRange range;
  range.episode_id = from.Get<uint64_t>();
  range.start = from.Get<int32_t>();
  range.end = from.Get<int32_t>();
  range.sparse = from.Get<uint8_t>() != 0;
  const auto num_columns = from.Get<uint32_t>();
  std::vector<storage::ChunkColumn> columns;
  std::vector<uint64_t> lengths;
  for (uint32_t i = 0; i < num_columns && from.ok(); ++i) {
    const auto dtype = static_cast<tensor::DType>(from.Get<int32_t>());
    const auto rank = from.Get<uint32_t>();
    tensor::Shape shape;
    for (uint32_t axis = 0; axis < rank && from.ok(); ++axis) {
      shape.push_back(from.Get<int64_t>());
    }
    lengths.push_back(from.Get<uint64_t>());
    columns.emplace_back(dtype, shape);
  }
  for (size_t i = 0; i < columns.size() && from.ok(); ++i) {
    const absl::string_view data = from.Raw(lengths[i]);
    if (!from.ok()) break;
    GR_ASSIGN_OR_RETURN(columns[i].data, arena.Allocate(data.size()));
    if (!data.empty()) std::memcpy(columns[i].data.data(), data.data(), data.size());
  }
  if (!from.done()) return base::InvalidArgument("its payload has a wrong length");
  return storage::Chunk::Create(key, range, std::move(columns));
}

void EncodeItem(const table::Item& item,
                const std::function<uint64_t(const storage::ChunkPtr&)>& number_of, Encoder& to) {
  to.Put(item.key);
  to.Put(item.priority);
  to.Put(item.times_sampled);
  to.Put(absl::ToUnixNanos(item.inserted_at));
  to.Put<uint8_t>(item.trajectory != nullptr);
  if (item.trajectory == nullptr) return;
  to.Put<uint32_t>(item.trajectory->columns.size());
  for (const storage::TrajectoryColumn& column : item.trajectory->columns) {
    to.Put<uint8_t>(column.squeeze);
    to.Put<uint32_t>(column.slices.size());
    for (const storage::ChunkSlice& slice : column.slices) {
      to.Put(number_of(slice.chunk));
      to.Put(slice.offset);
      to.Put(slice.length);
      to.Put(slice.column);
    }
  }
}

absl::Status DecodeItems(absl::string_view payload, absl::Span<const storage::ChunkPtr> chunks,
                         std::vector<table::Item>& to) {
  Decoder from(payload);
  while (!from.done()) {
    table::Item item;
    item.key = from.Get<uint64_t>();
    item.priority = from.Get<double>();
    item.times_sampled = from.Get<int32_t>();
    item.inserted_at = absl::FromUnixNanos(from.Get<int64_t>());
    if (from.Get<uint8_t>() != 0) {
      storage::TrajectoryBuilder builder;
      const auto num_columns = from.Get<uint32_t>();
      for (uint32_t c = 0; c < num_columns && from.ok(); ++c) {
        storage::TrajectoryBuilder::Column& column = builder.columns.emplace_back();
        column.squeeze = from.Get<uint8_t>() != 0;
        const auto num_slices = from.Get<uint32_t>();
        for (uint32_t s = 0; s < num_slices && from.ok(); ++s) {
          storage::ChunkSlice& slice = column.slices.emplace_back();
          const auto number = from.Get<uint64_t>();
          slice.offset = from.Get<int32_t>();
          slice.length = from.Get<int32_t>();
          slice.column = from.Get<int32_t>();
          if (!from.ok()) return TooShort();
          if (number >= chunks.size()) {
            return base::InvalidArgument("item ", item.key, " refers to chunk ", number, " of ",
                                         chunks.size());
          }
          slice.chunk = chunks[number];
        }
      }
      if (!from.ok()) return TooShort();
      item.trajectory = std::move(builder).Build();
      if (const absl::Status status = storage::CheckTrajectory(*item.trajectory); !status.ok()) {
        return base::InvalidArgument("item ", item.key, ": ", status.message());
      }
    }
    if (!from.ok()) return TooShort();
    to.push_back(std::move(item));
  }
  return absl::OkStatus();
}

}  // namespace gear_reverb::checkpoint
