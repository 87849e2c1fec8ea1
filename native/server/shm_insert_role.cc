// An insert stream over a ring: chunks and items in, keys of inserted items out.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "native/base/pause.h"
#include "native/base/status.h"
#include "native/base/timer.h"
#include "native/server/limits.h"
#include "native/server/shm_record_reader.h"
#include "native/server/shm_session.h"
#include "native/service/insert_session.h"
#include "native/shm/insert_records.h"
#include "native/shm/key_runs.h"
#include "native/shm/ring.h"

namespace gear_reverb::server {
namespace {

// Items that go to their table together at most.
constexpr size_t kItemsAtOnce = 64;
// The same for rows, or so many bytes that the memory of those that they evict is soon used again.
constexpr size_t kRowsAtOnce = 256;
constexpr int64_t kRowBytesAtOnce = 256 << 10;
// After so many bytes another session has its turn.
constexpr size_t kTurnBytes = size_t{4} << 20;
// Room is given back to the writer after so many bytes at least.
constexpr size_t kPublishBytes = size_t{256} << 10;
// A confirmation is sent at once if the last was so long ago; else it waits for company. Of rows
// many are on their way, and their writer waits for the last one only.
constexpr auto kConfirmEvery = std::chrono::microseconds(50);
constexpr auto kConfirmRowsEvery = std::chrono::microseconds(500);
// How long to look out for more before going to sleep: a share of how long there was something to
// do, since who sends much at a time does so again; within these limits.
constexpr auto kPollFor = std::chrono::microseconds(50);
constexpr auto kMostPollFor = std::chrono::microseconds(500);
constexpr int kPollShare = 10;

class InsertRole final : public ShmRole {
 public:
  InsertRole(ShmSession* session, std::shared_ptr<service::ReplayService> service,
             std::unique_ptr<shm::RingConsumer> ring)
      : session_(*session),
        inserts_(std::move(service)),
        ring_(std::move(ring)),
        records_(&inserts_) {}

  absl::Status OnMessage(const shm::Frame& frame) override {
    if (frame.type == shm::MessageType::kDoorbell) return absl::OkStatus();  // Work follows.
    return base::InvalidArgument("Unexpected message ", static_cast<uint32_t>(frame.type), ".");
  }

  absl::StatusOr<bool> Work() override {
    {
      base::MutexLock lock(&mutex_);
      working_ = true;
    }
    absl::StatusOr<bool> more = Drain();
    if (absl::Status inserted = InsertAll(); !inserted.ok() && more.ok()) more = inserted;
    bool over, resume;
    shm::KeyRuns confirmed;
    {
      base::MutexLock lock(&mutex_);
      working_ = false;
      confirmed = std::exchange(confirmed_, {});
      over = closing_ && pending_items_ == 0;
      resume = TakeResume();
    }
    Confirm(confirmed);
    if (over && more.ok()) session_.End(absl::OkStatus());
    if (more.ok() && resume) return true;
    return more;
  }

 private:
  // Until there is nothing more, or the turn is over (true).
  absl::StatusOr<bool> Drain() {
    size_t turn = 0;
    while (turn < kTurnBytes) {
      if (session_.ended() || session_.congested() || Full()) {
        busy_since_.reset();
        return false;
      }
      GR_ASSIGN_OR_RETURN(const size_t readable, ring_->Readable());
      if (readable > 0) {
        if (!busy_since_.has_value()) busy_since_ = base::SteadyNow();
        GR_RETURN_IF_ERROR(Consume(readable));
        turn += readable;
        continue;
      }
      GR_RETURN_IF_ERROR(InsertAll());
      ConfirmIfDue();
      if (!closed_ && Poll()) continue;
      if (ring_->Sleep()) return false;
    }
    return true;
  }

  // Takes `readable` bytes from the ring, or fewer where too many items wait.
  absl::Status Consume(size_t readable) {
    bool full = false;
    while (readable > 0 && !full) {
      if (closed_) return base::InvalidArgument("A record follows the last.");
      size_t part = 0;
      while (part < std::min(readable, kPublishBytes) && !closed_ && !full) {
        size_t consumed;
        GR_ASSIGN_OR_RETURN(
            const RecordReader::Event event,
            records_.Step(ring_->data(), std::min(readable - part, kPublishBytes), &consumed));
        ring_->Advance(consumed);
        part += consumed;
        if (event == RecordReader::Event::kItem || event == RecordReader::Event::kRows) {
          GR_RETURN_IF_ERROR(event == RecordReader::Event::kItem ? AddItem() : AddRows());
          full = items_.empty() && Full();
        }
        closed_ = event == RecordReader::Event::kClose;
      }
      readable -= part;
      if (ring_->Publish()) session_.Send(shm::MakeFrame(shm::MessageType::kDoorbell));
    }
    if (!closed_) return absl::OkStatus();
    GR_RETURN_IF_ERROR(InsertAll());
    base::MutexLock lock(&mutex_);
    closing_ = true;
    return absl::OkStatus();
  }

  absl::Status AddItem() {
    GR_ASSIGN_OR_RETURN(
        shm::ItemRecord record,
        shm::DecodeItem(records_.body(), [this](uint64_t key) { return inserts_.FindChunk(key); }));
    table::Item item;
    item.key = record.key;
    item.priority = record.priority;
    item.trajectory = std::move(record.trajectory);
    GR_ASSIGN_OR_RETURN(auto table, inserts_.FindTable(std::string(record.table)));
    GR_RETURN_IF_ERROR(inserts_.KeepOnly(record.keep_chunk_keys));
    if (!rows_.empty()) GR_RETURN_IF_ERROR(InsertAll());
    Add(std::move(table), std::move(item));
    if (items_.size() >= kItemsAtOnce) {
      AddItems();
      ConfirmIfDue();
    }
    return absl::OkStatus();
  }

  absl::Status AddRows() {
    const shm::RowsRecord& rows = records_.rows();
    GR_ASSIGN_OR_RETURN(auto table, inserts_.FindTable(std::string(rows.table)));
    if (table != rows_table_ || !items_.empty()) GR_RETURN_IF_ERROR(InsertAll());
    rows_table_ = std::move(table);
    const storage::ChunkPtr chunk = records_.TakeChunk();
    const auto first = storage::TrajectoryBuilder::SliceOf(chunk, 0, rows.row_steps, rows.squeeze);
    const size_t before = rows_.size();
    rows_.resize(before + rows.keys.size());
    for (size_t i = 0; i < rows.keys.size(); ++i) {
      rows_[before + i].key = rows.keys[i];
      rows_[before + i].priority = rows.priorities[i];
    }
    table::SetRows(first, absl::MakeSpan(rows_).subspan(before));
    row_bytes_ += chunk->bytes();
    if (rows_.size() < kRowsAtOnce && row_bytes_ < kRowBytesAtOnce) return absl::OkStatus();
    GR_RETURN_IF_ERROR(InsertAll());
    ConfirmIfDue(kConfirmRowsEvery);
    return absl::OkStatus();
  }

  // Rows go in at once, as far as they may; the rest as other items do.
  absl::Status InsertAll() {
    if (!rows_.empty()) {
      absl::Status status;
      const int64_t done = rows_table_->InsertAtOnce(absl::MakeSpan(rows_), &status);
      {
        base::MutexLock lock(&mutex_);
        for (int64_t i = 0; i < done; ++i) confirmed_.Add(rows_[i].key);
      }
      if (status.ok()) {
        for (size_t i = done; i < rows_.size(); ++i) Add(rows_table_, std::move(rows_[i]));
      }
      rows_.clear();
      if (rows_.capacity() > 4 * kRowsAtOnce) rows_ = {};  // A record may have 2^20.
      row_bytes_ = 0;
      if (!status.ok()) return inserts_.service().Explain(std::move(status));
    }
    AddItems();
    return absl::OkStatus();
  }

  void Add(std::shared_ptr<table::Table> table, table::Item item) {
    const auto done = [this, weak = session_.weak_from_this(),
                       key = item.key](absl::Status status) {
      if (const auto session = weak.lock()) OnItemDone(key, std::move(status));
    };
    items_.push_back({std::move(table), {std::move(item), done}});
  }

  void AddItems() {
    if (items_.empty()) return;
    {
      base::MutexLock lock(&mutex_);
      pending_items_ += static_cast<int>(items_.size());
    }
    inserts_.AddItems(std::exchange(items_, {}));
  }

  void OnItemDone(uint64_t key, absl::Status status) {
    if (!status.ok()) return session_.End(inserts_.service().Explain(std::move(status)));
    shm::KeyRuns confirmed;
    bool over, resume;
    {
      base::MutexLock lock(&mutex_);
      --pending_items_;
      confirmed_.Add(key);
      if (working_) return;  // Work sends it.
      confirmed = std::exchange(confirmed_, {});
      over = closing_ && pending_items_ == 0;
      resume = TakeResume();
    }
    Confirm(confirmed);
    if (over) session_.End(absl::OkStatus());
    if (resume) session_.Schedule();
  }

  void Confirm(const shm::KeyRuns& keys) {
    if (!keys.empty()) session_.Send(shm::MakeFrame(shm::MessageType::kConfirmed, keys.body()));
  }

  void ConfirmIfDue(base::SteadyTime::duration every = kConfirmEvery) {
    const auto now = base::SteadyNow();
    if (now - last_confirmed_ < every) return;
    shm::KeyRuns confirmed;
    {
      base::MutexLock lock(&mutex_);
      confirmed = std::exchange(confirmed_, {});
    }
    if (confirmed.empty()) return;
    last_confirmed_ = now;
    Confirm(confirmed);
  }

  // Looks out for more for a while, if a thread can be spared; whether there is.
  bool Poll() {
    const auto since = std::exchange(busy_since_, {});
    if (!since.has_value() || !session_.MayPoll()) return false;
    const base::SteadyTime now = base::SteadyNow();
    const base::SteadyTime::duration worth = (now - *since) / kPollShare;
    const auto until = now + std::clamp<base::SteadyTime::duration>(worth, kPollFor, kMostPollFor);
    bool found = false;
    while (!found && base::SteadyNow() < until) {
      for (int i = 0; i < 32; ++i) base::Pause();
      ConfirmIfDue();  // The writer may wait for it.
      const absl::StatusOr<size_t> readable = ring_->Readable();
      found = !readable.ok() || *readable > 0;
    }
    session_.EndPolling();
    return found;
  }

  bool Full() {
    base::MutexLock lock(&mutex_);
    full_ = pending_items_ >= kMaxPendingItems;
    return full_;
  }
  // Whether reading was given up and is to be taken up again.
  bool TakeResume() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!full_ || pending_items_ > kMaxPendingItems / 2) return false;
    full_ = false;
    return true;
  }

  ShmSession& session_;
  // Of the thread that works.
  service::InsertSession inserts_;
  const std::unique_ptr<shm::RingConsumer> ring_;
  RecordReader records_;
  // Checked, and not yet with their tables; there are rows, all of one table, or other items.
  std::vector<service::InsertSession::NewItem> items_;
  std::vector<table::Item> rows_;
  std::shared_ptr<table::Table> rows_table_;
  int64_t row_bytes_ = 0;
  base::SteadyTime last_confirmed_{};
  std::optional<base::SteadyTime> busy_since_;  // There was something to read ever since.
  bool closed_ = false;                         // The last record was read.

  base::Mutex mutex_;
  int pending_items_ ABSL_GUARDED_BY(mutex_) = 0;
  shm::KeyRuns confirmed_ ABSL_GUARDED_BY(mutex_);
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  bool full_ ABSL_GUARDED_BY(mutex_) = false;     // Reading was given up for pending items.
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;  // Ends with the last confirmation.
};

}  // namespace

absl::StatusOr<std::unique_ptr<ShmRole>> NewShmInsertRole(
    ShmSession* session, std::shared_ptr<service::ReplayService> service, shm::UniqueFd ring) {
  GR_ASSIGN_OR_RETURN(auto consumer, shm::RingConsumer::Open(std::move(ring)));
  return std::make_unique<InsertRole>(session, std::move(service), std::move(consumer));
}

}  // namespace gear_reverb::server
