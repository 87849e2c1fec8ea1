#include "native/rpc/item_codec.h"

#include <memory>
#include <utility>

#include "native/rpc/fields.h"
#include "native/rpc/parse.h"

namespace gear_reverb::rpc {
namespace {

MessageWriter EncodeSlice(const storage::ChunkSlice& slice) {
  MessageWriter message;
  message.AddUint64(field::slice::kChunkKey, slice.chunk->key());
  if (slice.offset != 0) message.AddInt64(field::slice::kOffset, slice.offset);
  message.AddInt64(field::slice::kLength, slice.length);
  if (slice.column != 0) message.AddInt64(field::slice::kIndex, slice.column);
  return message;
}

MessageWriter EncodeTrajectory(const storage::Trajectory& trajectory) {
  MessageWriter message;
  for (const storage::TrajectoryColumn& column : trajectory.columns) {
    MessageWriter column_message;
    for (const storage::ChunkSlice& slice : column.slices) {
      column_message.AddMessage(field::column::kSlices, EncodeSlice(slice));
    }
    if (column.squeeze) column_message.AddBool(field::column::kSqueeze, true);
    message.AddMessage(field::trajectory::kColumns, std::move(column_message));
  }
  return message;
}

MessageWriter EncodeTime(absl::Time time) {
  const absl::Duration since = time - absl::UnixEpoch();
  absl::Duration rest;
  const int64_t seconds = absl::IDivDuration(since, absl::Seconds(1), &rest);
  MessageWriter message;
  message.AddInt64(field::timestamp::kSeconds, seconds);
  message.AddInt64(field::timestamp::kNanos, absl::ToInt64Nanoseconds(rest));
  return message;
}

absl::Time ReadTime(protozero::pbf_reader reader) {
  int64_t seconds = 0;
  int32_t nanos = 0;
  while (reader.next()) {
    switch (reader.tag()) {
      case field::timestamp::kSeconds: seconds = reader.get_int64(); break;
      case field::timestamp::kNanos: nanos = reader.get_int32(); break;
      default: reader.skip();
    }
  }
  return absl::FromUnixSeconds(seconds) + absl::Nanoseconds(nanos);
}

ItemMessage::Slice ReadSlice(protozero::pbf_reader reader) {
  ItemMessage::Slice slice;
  while (reader.next()) {
    switch (reader.tag()) {
      case field::slice::kChunkKey: slice.chunk_key = reader.get_uint64(); break;
      case field::slice::kOffset: slice.offset = reader.get_int32(); break;
      case field::slice::kLength: slice.length = reader.get_int32(); break;
      case field::slice::kIndex: slice.index = reader.get_int32(); break;
      default: reader.skip();
    }
  }
  return slice;
}

ItemMessage::Column ReadColumn(protozero::pbf_reader reader) {
  ItemMessage::Column column;
  while (reader.next()) {
    switch (reader.tag()) {
      case field::column::kSlices: column.slices.push_back(ReadSlice(reader.get_message())); break;
      case field::column::kSqueeze: column.squeeze = ReadBool(reader); break;
      default: reader.skip();
    }
  }
  return column;
}

void ReadTrajectory(protozero::pbf_reader reader, std::vector<ItemMessage::Column>* columns) {
  while (reader.next()) {
    if (reader.tag() == field::trajectory::kColumns) {
      columns->push_back(ReadColumn(reader.get_message()));
    } else {
      reader.skip();
    }
  }
}

ItemMessage ReadItem(protozero::pbf_reader reader) {
  ItemMessage item;
  while (reader.next()) {
    switch (reader.tag()) {
      case field::item::kKey: item.key = reader.get_uint64(); break;
      case field::item::kTable: item.table = reader.get_string(); break;
      case field::item::kPriority: item.priority = reader.get_double(); break;
      case field::item::kTimesSampled: item.times_sampled = reader.get_int32(); break;
      case field::item::kInsertedAt: item.inserted_at = ReadTime(reader.get_message()); break;
      case field::item::kTrajectory: ReadTrajectory(reader.get_message(), &item.columns); break;
      default: reader.skip();
    }
  }
  return item;
}

}  // namespace

MessageWriter EncodeItem(const table::Item& item, const std::string& table) {
  MessageWriter message;
  message.AddUint64(field::item::kKey, item.key);
  message.AddBytes(field::item::kTable, table);
  message.AddDouble(field::item::kPriority, item.priority);
  if (item.times_sampled != 0) message.AddInt64(field::item::kTimesSampled, item.times_sampled);
  if (item.inserted_at != absl::InfinitePast()) {
    message.AddMessage(field::item::kInsertedAt, EncodeTime(item.inserted_at));
  }
  if (item.trajectory != nullptr) {
    message.AddMessage(field::item::kTrajectory, EncodeTrajectory(*item.trajectory));
  }
  return message;
}

absl::StatusOr<ItemMessage> DecodeItem(absl::string_view bytes) {
  ItemMessage item;
  GR_RETURN_IF_ERROR(Guarded("PrioritizedItem", [&] {
    item = ReadItem(protozero::pbf_reader(ToDataView(bytes)));
    return absl::OkStatus();
  }));
  return item;
}

MessageWriter EncodeSampleInfo(const table::SampledItem& sample, const std::string& table) {
  MessageWriter message;
  message.AddMessage(field::sample_info::kItem, EncodeItem(sample.item, table));
  message.AddDouble(field::sample_info::kProbability, sample.probability);
  message.AddInt64(field::sample_info::kTableSize, sample.table_size);
  if (sample.rate_limited) message.AddBool(field::sample_info::kRateLimited, true);
  return message;
}

absl::StatusOr<SampleInfoMessage> DecodeSampleInfo(absl::string_view bytes) {
  SampleInfoMessage info;
  GR_RETURN_IF_ERROR(Guarded("SampleInfo", [&] {
    protozero::pbf_reader reader(ToDataView(bytes));
    while (reader.next()) {
      switch (reader.tag()) {
        case field::sample_info::kItem: info.item = ReadItem(reader.get_message()); break;
        case field::sample_info::kProbability: info.probability = reader.get_double(); break;
        case field::sample_info::kTableSize: info.table_size = reader.get_int64(); break;
        case field::sample_info::kRateLimited: info.rate_limited = ReadBool(reader); break;
        default: reader.skip();
      }
    }
    return absl::OkStatus();
  }));
  return info;
}

absl::StatusOr<storage::TrajectoryPtr> ResolveTrajectory(
    const ItemMessage& item, absl::FunctionRef<storage::ChunkPtr(uint64_t key)> find) {
  storage::TrajectoryBuilder builder;
  builder.columns.reserve(item.columns.size());
  for (const ItemMessage::Column& column : item.columns) {
    storage::TrajectoryBuilder::Column& out = builder.columns.emplace_back();
    out.squeeze = column.squeeze;
    out.slices.reserve(column.slices.size());
    for (const ItemMessage::Slice& slice : column.slices) {
      storage::ChunkPtr chunk = find(slice.chunk_key);
      if (chunk == nullptr) {
        return base::Internal("Could not find sequence chunk ", slice.chunk_key, " of item ",
                              item.key, ".");
      }
      out.slices.push_back({std::move(chunk), slice.offset, slice.length, slice.index});
    }
  }
  storage::TrajectoryPtr trajectory = std::move(builder).Build();
  if (absl::Status status = storage::CheckTrajectory(*trajectory); !status.ok()) {
    return base::InvalidArgument("Item ", item.key, ": ", status.message());
  }
  return trajectory;
}

}  // namespace gear_reverb::rpc
