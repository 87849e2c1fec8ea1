#include "native/client/batch_insert.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "native/base/finite.h"
#include "native/base/philox.h"
#include "native/base/status.h"
#include "native/client/row_copier.h"
#include "native/service/replay_service.h"
#include "native/writer/item_sender.h"
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

absl::Status CheckFinite(absl::Span<const double> priorities) {
  const auto bad = std::find_if(priorities.begin(), priorities.end(),
                                [](double priority) { return !std::isfinite(priority); });
  if (bad == priorities.end()) return absl::OkStatus();
  return base::InvalidArgument("priorities[", bad - priorities.begin(), "] is ", *bad,
                               ": priorities must be finite");
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

// Items on their way into a table of this process.
class LocalInsertion {
 public:
  LocalInsertion(service::ReplayService& service, table::Table& table, const StackedItems& stacked)
      : service_(service),
        table_(table),
        stacked_(stacked),
        copier_(stacked.rows, service.arena()) {
    items_.reserve(std::min<size_t>(stacked.size(), kItemsAtOnce + StackedRows::kMaxRows));
  }

  absl::Status InsertAll(absl::Time deadline) {
    // Helpers are not kept from others while this thread waits.
    absl::Status status;
    copier_.WithHelp([&] { status = InsertWithoutWaiting(); });
    while (status.ok() && (!left_.empty() || !copier_.done())) {
      if (left_.empty()) {
        status = InsertWithoutWaiting();
        continue;
      }
      status = table_.InsertOrAssign(std::move(left_[0]), deadline);
      if (!status.ok()) break;
      ++inserted_;
      left_.remove_prefix(1);
      status = InsertAtOnce();
    }
    if (absl::IsDeadlineExceeded(status)) return Expired(inserted_, stacked_.size());
    return service_.Explain(std::move(status));
  }

 private:
  // Group by group, until all are in or the first that is left has to wait.
  absl::Status InsertWithoutWaiting() {
    while (left_.empty() && !copier_.done()) {
      if (service_.stopped()) return absl::UnavailableError("The server has been stopped.");
      GR_RETURN_IF_ERROR(TakeGroup());
      left_ = absl::MakeSpan(items_);
      GR_RETURN_IF_ERROR(InsertAtOnce());
    }
    return absl::OkStatus();
  }

  absl::Status InsertAtOnce() {
    if (left_.empty()) return absl::OkStatus();
    absl::Status status;
    const int64_t count = table_.InsertAtOnce(left_, &status);
    inserted_ += count;
    left_.remove_prefix(count);
    return status;
  }

  absl::Status TakeGroup() {
    items_.clear();
    for (int64_t bytes = 0;
         items_.size() < kItemsAtOnce && bytes < kBytesAtOnce && !copier_.done();) {
      GR_ASSIGN_OR_RETURN(const RowCopier::Part part, copier_.Next());
      bytes += part.chunk->bytes();
      const size_t before = items_.size();
      for (int64_t row = part.begin; row < part.end; ++row) {
        table::Item& item = items_.emplace_back();
        item.key = stacked_.keys[row];
        item.priority = stacked_.priorities[row];
      }
      table::SetRows(stacked_.rows.Row(part.chunk, 0), absl::MakeSpan(items_).subspan(before));
    }
    return absl::OkStatus();
  }

  service::ReplayService& service_;
  table::Table& table_;
  const StackedItems& stacked_;
  RowCopier copier_;
  std::vector<table::Item> items_;  // The group,
  absl::Span<table::Item> left_;    // and what of it is not inserted.
  int64_t inserted_ = 0;
};

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
  const bool plain = base::AreFiniteNotNegative(priorities);
  if (!plain) GR_RETURN_IF_ERROR(CheckFinite(priorities));
  GR_ASSIGN_OR_RETURN(const auto connection, client->GetConnection(deadline));
  GR_ASSIGN_OR_RETURN(const auto signature, client->GetSignature(table, deadline));
  if (!plain && !client->TakesNegative(table)) {
    const auto negative =
        std::find_if(priorities.begin(), priorities.end(), [](double p) { return p < 0; });
    if (negative != priorities.end()) {
      return base::InvalidArgument("Priority must not be negative. Item ",
                                   negative - priorities.begin(), " was given ", *negative, ".");
    }
  }
  GR_RETURN_IF_ERROR(CheckSignature(table, signature.get(), rows));
  const StackedItems items{table, rows, keys, priorities};
  if (const auto service = connection->local_service()) {
    GR_ASSIGN_OR_RETURN(const auto destination, service->FindTable(table));
    return LocalInsertion(*service, *destination, items).InsertAll(deadline);
  }
  return InsertRemotely(client, *connection, items, deadline);
}

}  // namespace gear_reverb::client
