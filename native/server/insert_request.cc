#include "native/server/insert_request.h"

#include <utility>

#include "native/base/status.h"
#include "native/rpc/chunk_codec.h"
#include "native/rpc/item_codec.h"
#include "native/rpc/requests.h"

namespace gear_reverb::server {
namespace {

using NewItem = service::InsertSession::NewItem;

absl::StatusOr<NewItem> ReadItem(absl::string_view item_message, service::InsertSession& session) {
  GR_ASSIGN_OR_RETURN(const rpc::ItemMessage message, rpc::DecodeItem(item_message));
  NewItem item;
  GR_ASSIGN_OR_RETURN(item.table, session.FindTable(message.table));
  item.insertion.item.key = message.key;
  item.insertion.item.priority = message.priority;
  GR_ASSIGN_OR_RETURN(
      item.insertion.item.trajectory,
      rpc::ResolveTrajectory(message, [&](uint64_t key) { return session.FindChunk(key); }));
  return item;
}

}  // namespace

absl::StatusOr<std::vector<NewItem>> ReadInsertRequest(absl::string_view message,
                                                       service::InsertSession& session) {
  GR_ASSIGN_OR_RETURN(const rpc::InsertRequest request, rpc::DecodeInsertRequest(message));
  if (request.chunks.empty() && request.items.empty()) {
    return base::InvalidArgument("InsertStreamRequest has neither chunks nor items.");
  }
  for (absl::string_view chunk_message : request.chunks) {
    GR_ASSIGN_OR_RETURN(storage::ChunkPtr chunk,
                        rpc::DecodeChunk(chunk_message, session.service().arena()));
    session.AddChunk(std::move(chunk));
  }
  std::vector<NewItem> items;
  if (request.items.empty()) return items;
  items.reserve(request.items.size());
  for (absl::string_view item_message : request.items) {
    GR_ASSIGN_OR_RETURN(NewItem item, ReadItem(item_message, session));
    items.push_back(std::move(item));
  }
  GR_RETURN_IF_ERROR(session.KeepOnly(request.keep_chunk_keys));
  return items;
}

}  // namespace gear_reverb::server
