#include "native/client/batch_insert.h"

#include <algorithm>
#include <utility>

#include "native/base/philox.h"
#include "native/base/status.h"
#include "native/service/replay_service.h"
#include "native/writer/item_sender.h"
#include "native/writer/pending_items.h"
#include "native/writer/signature_check.h"

namespace gear_reverb::client {
namespace {

using storage::StackedRows;

// What goes into the table at once: as many items, or so many bytes that the memory of those that
// they evict is soon used again.
constexpr size_t kItemsAtOnce = 1024;
constexpr int64_t kBytesAtOnce = 256 << 10;

// Of a remote insertion.
constexpr int64_t kMaxInFlightItems = 8192;
constexpr int64_t kMaxInFlightBytes = int64_t{64} << 20;

absl::Status Expired(int64_t confirmed, int64_t size) {
  return absl::DeadlineExceededError(absl::StrCat(table::kRateLimiterTimeout, " ", confirmed,
                                                  " of ", size, " items were confirmed."));
}

absl::Status CheckSignature(const std::string& table, const tensor::Signature* signature,
                            const StackedRows& rows) {
  if (signature == nullptr) return absl::OkStatus();
  std::vector<writer::ColumnSpec> specs;
  for (const tensor::TensorView& column : rows.columns()) {
    specs.push_back({column.dtype, tensor::Shape(column.shape.begin() + 1, column.shape.end())});
  }
  return writer::CheckTrajectorySignature(table, *signature, specs);
}

// Chunks of rows with random keys, of one episode.
class ChunkMaker {
 public:
  explicit ChunkMaker(const StackedRows& rows) : rows_(rows), random_(base::RandomUint64()) {
    random_.Fill(absl::MakeSpan(&episode_id_, 1));
  }
  absl::StatusOr<storage::ChunkPtr> Make(memory::Arena& arena, int64_t begin, int64_t end) {
    uint64_t key;
    random_.Fill(absl::MakeSpan(&key, 1));
    return rows_.Copy(arena, key, episode_id_, begin, end);
  }

 private:
  const StackedRows& rows_;
  base::Philox random_;
  uint64_t episode_id_;
};

// Inserts all of `items`; `inserted` counts them.
absl::Status InsertItems(table::Table& table, absl::Span<table::Item> items, absl::Time deadline,
                         int64_t* inserted) {
  while (!items.empty()) {
    absl::Status status;
    const int64_t count = table.InsertAtOnce(items, &status);
    *inserted += count;
    items.remove_prefix(count);
    GR_RETURN_IF_ERROR(status);
    if (items.empty()) break;
    GR_RETURN_IF_ERROR(table.InsertOrAssign(std::move(items[0]), deadline));
    ++*inserted;
    items.remove_prefix(1);
  }
  return absl::OkStatus();
}

absl::Status InsertHere(service::ReplayService& service, const StackedItems& stacked,
                        absl::Time deadline) {
  GR_ASSIGN_OR_RETURN(const auto table, service.FindTable(stacked.table));
  const StackedRows& rows = stacked.rows;
  ChunkMaker chunks(rows);
  std::vector<table::Item> items;
  items.reserve(std::min<size_t>(rows.size(), kItemsAtOnce + StackedRows::kMaxRows));
  std::vector<storage::TrajectoryPtr> trajectories;
  int64_t inserted = 0;
  int64_t bytes = 0;
  for (int64_t begin = 0; begin < rows.size();) {
    if (service.stopped()) return absl::UnavailableError("The server has been stopped.");
    const int64_t end = rows.ChunkEnd(begin);
    GR_ASSIGN_OR_RETURN(storage::ChunkPtr chunk, chunks.Make(service.arena(), begin, end));
    chunk = service.chunks().Insert(std::move(chunk));
    bytes += chunk->bytes();
    trajectories.resize(end - begin);
    rows.Rows(chunk, absl::MakeSpan(trajectories));
    for (int64_t row = begin; row < end; ++row) {
      table::Item& item = items.emplace_back();
      item.key = stacked.keys[row];
      item.priority = stacked.priorities[row];
      item.trajectory = std::move(trajectories[row - begin]);
    }
    begin = end;
    if (items.size() < kItemsAtOnce && bytes < kBytesAtOnce && begin < rows.size()) continue;
    absl::Status status = InsertItems(*table, absl::MakeSpan(items), deadline, &inserted);
    if (absl::IsDeadlineExceeded(status)) return Expired(inserted, rows.size());
    if (!status.ok()) return service.Explain(std::move(status));
    items.clear();
    bytes = 0;
  }
  return absl::OkStatus();
}

// Sends what is not confirmed; `sent` counts that.
absl::Status SendRest(writer::ItemSender& sender, const StackedItems& items,
                      const std::vector<bool>& confirmed, absl::Time deadline, int64_t* sent) {
  const StackedRows& rows = items.rows;
  ChunkMaker chunks(rows);
  for (int64_t begin = 0; begin < rows.size();) {
    const int64_t end = rows.ChunkEnd(begin);
    storage::ChunkPtr chunk;
    auto user = std::make_shared<const int>();  // Until the chunk's last row.
    for (int64_t row = begin; row < end; ++row) {
      if (confirmed[row]) continue;
      GR_RETURN_IF_ERROR(sender.WaitForRoom(deadline));
      if (chunk == nullptr) {
        GR_ASSIGN_OR_RETURN(chunk, chunks.Make(*memory::ProcessArena(), begin, end));
      }
      writer::OutgoingItem outgoing;
      outgoing.item = {items.keys[row], items.table, items.priorities[row],
                       rows.Row(chunk, row - begin)};
      outgoing.uses.push_back({chunk, row + 1 < end ? user : std::move(user)});
      GR_RETURN_IF_ERROR(sender.Submit(std::move(outgoing)));
      ++*sent;
    }
    begin = end;
  }
  return sender.WaitUntilAtMost(0, 0, deadline);
}

absl::Status InsertRemotely(const std::shared_ptr<Client>& client, Connection& connection,
                            const StackedItems& items, absl::Time deadline) {
  ConfirmedItems confirmed(items.size());
  absl::Status status = connection.InsertStacked(items, deadline, &confirmed);
  int64_t count = confirmed.count;
  if (absl::IsUnavailable(status)) {
    writer::SenderOptions options;
    options.max_in_flight_items = kMaxInFlightItems;
    options.max_in_flight_bytes = kMaxInFlightBytes;
    options.max_unavailable = ConnectPatience();
    writer::ItemSender sender(client, options);
    int64_t sent = 0;
    status = SendRest(sender, items, confirmed.rows, deadline, &sent);
    count += sent - sender.stats().in_flight_items;
  }
  return absl::IsDeadlineExceeded(status) ? Expired(count, items.size()) : status;
}

}  // namespace

absl::Status InsertBatch(const std::shared_ptr<Client>& client, const std::string& table,
                         const StackedRows& rows, absl::Span<const uint64_t> keys,
                         absl::Span<const double> priorities, absl::Time deadline) {
  const auto size = static_cast<size_t>(rows.size());
  if (keys.size() != size || priorities.size() != size) {
    return base::InvalidArgument(size, " items came with ", keys.size(), " keys and ",
                                 priorities.size(), " priorities.");
  }
  for (const double priority : priorities) GR_RETURN_IF_ERROR(writer::CheckPriority(priority));
  GR_ASSIGN_OR_RETURN(const auto connection, client->GetConnection(deadline));
  GR_ASSIGN_OR_RETURN(const auto signature, client->GetSignature(table));
  if (!client->TakesNegative(table)) {
    const auto negative =
        std::find_if(priorities.begin(), priorities.end(), [](double p) { return p < 0; });
    if (negative != priorities.end()) {
      return base::InvalidArgument("Priority must not be negative. Item ",
                                   negative - priorities.begin(), " was given ", *negative, ".");
    }
  }
  GR_RETURN_IF_ERROR(CheckSignature(table, signature.get(), rows));
  const StackedItems items{table, rows, keys, priorities};
  if (const auto service = connection->local_service()) return InsertHere(*service, items, deadline);
  return InsertRemotely(client, *connection, items, deadline);
}

}  // namespace gear_reverb::client
