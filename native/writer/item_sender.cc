#include "native/writer/item_sender.h"

#include <algorithm>

#include "native/base/interrupt.h"
#include "native/base/status.h"

namespace gear_reverb::writer {

ItemSender::ItemSender(std::shared_ptr<InsertStreamFactory> factory, const SenderOptions& options)
    : factory_(std::move(factory)), options_(options) {}

ItemSender::~ItemSender() { Stop(absl::CancelledError("The writer was destroyed.")); }

absl::Status ItemSender::CheckNotForked() const {
  if (memory::ForkGeneration() == generation_) return absl::OkStatus();
  return base::FailedPrecondition(
      "The writer belongs to the process that this one was forked from. Start processes with the "
      "'spawn' method: multiprocessing.get_context('spawn').");
}

absl::Status ItemSender::status() const {
  GR_RETURN_IF_ERROR(CheckNotForked());
  if (clear_.load(std::memory_order_acquire)) return absl::OkStatus();
  base::MutexLock lock(&mutex_);
  return status_;
}

SenderStats ItemSender::stats() const {
  base::MutexLock lock(&mutex_);
  return {in_flight_items(), in_flight_bytes_, reconnections_, blocked_};
}

// ------------------------------------------------------------------------------------- sending

absl::Status ItemSender::Submit(OutgoingItem outgoing) {
  GR_RETURN_IF_ERROR(CheckNotForked());
  auto item = std::make_shared<InFlight>();
  item->item = std::move(outgoing.item);
  item->uses.reserve(outgoing.uses.size());
  for (const OutgoingItem::Use& use : outgoing.uses) {
    item->uses.push_back({use.chunk->key(), use.chunk->bytes(), use.user});
  }

  base::MutexLock send_lock(&send_mutex_);
  // This item is no user to come. Not known before the lock is held: a resend that is going on
  // would take the chunks for unused, and not have the server keep them for this item.
  outgoing.uses.clear();
  bool first, open;
  {
    base::MutexLock lock(&mutex_);
    if (!status_.ok()) return status_;
    Add(item);
    first = !open_ && failures_ == 0;
    open = open_;
    if (!first && !open) StartReconnecting();
  }
  if (first) OpenStream(*factory_);
  if (first || open) SendNow(*item, {});
  return absl::OkStatus();
}

void ItemSender::OpenStream(InsertStreamFactory& factory) {
  stream_ = nullptr;  // No event of the old stream comes after this.
  held_.Clear();
  {
    base::MutexLock lock(&mutex_);
    open_ = true;
    opened_ = absl::Now();
    ++connection_changes_;
  }
  try {
    stream_ = factory.OpenInsertStream(
        {.on_confirmed = [this](absl::Span<const uint64_t> keys) { OnConfirmed(keys); },
         .on_ended = [this](absl::Status status) { OnEnded(status); }});
  } catch (const std::exception& error) {  // The system has no thread, or no memory, for it.
    OnEnded(absl::UnavailableError(absl::StrCat("There is no stream: ", error.what())));
  }
}

void ItemSender::SendNow(const InFlight& item, const KeyCounts& later) {
  // Without one, or after an error, OnEnded has learnt why, or will, and the item is in flight.
  if (stream_ == nullptr) return;
  stream_->Send(item.item, held_.KeepWith(item.uses, later)).IgnoreError();
}

bool ItemSender::HasRoom() const {
  return (options_.max_in_flight_bytes == 0 || in_flight_bytes_ <= options_.max_in_flight_bytes) &&
         (options_.max_in_flight_items == 0 || in_flight_items() < options_.max_in_flight_items);
}

void ItemSender::NoteClear() { clear_.store(status_.ok() && HasRoom(), std::memory_order_release); }

void ItemSender::Add(InFlightPtr item) {
  for (const ChunkUse& use : item->uses) {
    if (++chunk_uses_[use.key] == 1) in_flight_bytes_ += use.bytes;
  }
  order_by_key_[item->item.key] = first_order_ + queue_.size();
  queue_.push_back(std::move(item));
  NoteClear();
}

ItemSender::InFlightPtr ItemSender::Remove(uint64_t key) {
  const auto order = order_by_key_.find(key);
  if (order == order_by_key_.end()) return nullptr;
  InFlightPtr item = std::move(queue_[order->second - first_order_]);
  order_by_key_.erase(order);
  for (; !queue_.empty() && queue_.front() == nullptr; ++first_order_) queue_.pop_front();
  for (const ChunkUse& use : item->uses) {
    const auto uses = chunk_uses_.find(use.key);
    if (--uses->second > 0) continue;
    chunk_uses_.erase(uses);
    in_flight_bytes_ -= use.bytes;
  }
  return item;
}

// -------------------------------------------------------------------------------------- events

void ItemSender::OnConfirmed(absl::Span<const uint64_t> keys) {
  std::vector<InFlightPtr> done;  // Freed without the lock.
  done.reserve(keys.size());
  base::MutexLock lock(&mutex_);
  for (const uint64_t key : keys) {
    // Null: confirmed before a reconnection, or not ours.
    if (InFlightPtr item = Remove(key); item != nullptr) done.push_back(std::move(item));
  }
  failures_ = 0;
  NoteClear();
  if (room_waits_ > 0 || (limit_waits_ > 0 && in_flight_items() <= awaited_limit_)) {
    changed_.NotifyAll();
  }
}

void ItemSender::OnEnded(const absl::Status& status) {
  base::MutexLock lock(&mutex_);
  const absl::Time now = absl::Now();
  NoteSuccessIfStable(now);
  open_ = false;
  ++connection_changes_;
  if (stopped_) return;
  if (status.ok() || absl::IsUnavailable(status)) {
    last_error_ = status.ok() ? absl::UnavailableError("The server ended the stream.") : status;
    last_failure_ = now;
    if (failures_++ == 0) first_failure_ = last_failure_;
    if (in_flight_items() > 0) StartReconnecting();
  } else if (status_.ok()) {
    status_ = status;
    NoteClear();
  }
  changed_.NotifyAll();
}

// -------------------------------------------------------------------------------- reconnection

void ItemSender::StartReconnecting() {
  if (!reconnecting_.joinable()) reconnecting_ = std::thread([this] { ReconnectLoop(); });
  changed_.NotifyAll();
}

absl::Duration ItemSender::Backoff() const {
  absl::Duration backoff = options_.min_backoff;
  for (int i = 1; i < failures_ && backoff < options_.max_backoff; ++i) backoff *= 2;
  return std::min(backoff, options_.max_backoff);
}

void ItemSender::ReconnectLoop() {
  base::MutexLock lock(&mutex_);
  while (true) {
    changed_.WaitUntil(&mutex_, absl::InfiniteFuture(), [this] {
      return !status_.ok() || (!open_ && failures_ > 0 && in_flight_items() > 0);
    });
    if (status_.ok()) {
      changed_.WaitUntil(&mutex_, last_failure_ + Backoff(), [this] { return !status_.ok(); });
    }
    if (!status_.ok()) return;
    mutex_.Unlock();
    Reconnect();
    mutex_.Lock();
  }
}

void ItemSender::Reconnect() {
  const auto reached = factory_->Reach();
  if (!reached.ok()) return OnEnded(reached.status());
  base::MutexLock send_lock(&send_mutex_);
  std::vector<InFlightPtr> items;
  {
    base::MutexLock lock(&mutex_);
    if (!status_.ok() || open_ || in_flight_items() == 0) return;
    for (const auto& item : queue_) {
      if (item != nullptr) items.push_back(item);
    }
    ++reconnections_;
  }
  KeyCounts later;
  for (const auto& item : items) {
    for (const ChunkUse& use : item->uses) ++later[use.key];
  }
  OpenStream(*reached != nullptr ? **reached : *factory_);
  for (const auto& item : items) {
    for (const ChunkUse& use : item->uses) {
      if (const auto it = later.find(use.key); --it->second == 0) later.erase(it);
    }
    SendNow(*item, later);
  }
}

// ------------------------------------------------------------------------------------- waiting

void ItemSender::NoteSuccessIfStable(absl::Time now) {
  if (open_ && now - opened_ >= options_.stable_after) failures_ = 0;
}

absl::Time ItemSender::GiveUpTime(absl::Duration max_unavailable) const {
  if (failures_ == 0) return absl::InfiniteFuture();
  const absl::Time limit = first_failure_ + max_unavailable;
  return open_ ? std::max(limit, opened_ + options_.stable_after) : limit;
}

std::string ItemSender::Connection() const {
  if (failures_ == 0) return "";
  return absl::StrCat(" The server is unavailable: ", last_error_.message());
}

absl::Status ItemSender::Wait(absl::Time deadline, absl::Duration max_unavailable,
                              const std::function<bool()>& done) {
  while (true) {
    const absl::Time now = absl::Now();
    NoteSuccessIfStable(now);
    if (!status_.ok()) return status_;
    if (done()) return absl::OkStatus();
    const absl::Time give_up = GiveUpTime(max_unavailable);
    if (give_up < deadline && give_up <= now) {
      return absl::UnavailableError(absl::StrCat("Gave up waiting for ", in_flight_items(),
                                                 " unconfirmed items.", Connection()));
    }
    const uint64_t changes = connection_changes_;
    const absl::Status waited = base::WaitInterruptibly(
        changed_, &mutex_, std::min(deadline, give_up),
        [&] { return done() || !status_.ok() || connection_changes_ != changes; });
    if (absl::IsDeadlineExceeded(waited) && deadline <= give_up) return waited;
    if (absl::IsCancelled(waited)) return waited;
  }
}

absl::Status ItemSender::WaitForRoom(absl::Time deadline) {
  GR_RETURN_IF_ERROR(CheckNotForked());
  if (clear_.load(std::memory_order_acquire)) return absl::OkStatus();
  base::MutexLock lock(&mutex_);
  if (!status_.ok() || HasRoom()) return status_;
  const absl::Time start = absl::Now();
  ++room_waits_;
  const absl::Status waited =
      Wait(deadline, options_.max_unavailable, [this] { return HasRoom(); });
  --room_waits_;
  blocked_ += absl::Now() - start;
  if (!absl::IsDeadlineExceeded(waited) || !status_.ok()) return waited;
  return absl::DeadlineExceededError(absl::StrCat(
      "Timeout exceeded while waiting for the server to confirm some of ", in_flight_items(),
      " items with ", in_flight_bytes_, " bytes in flight.", Connection()));
}

absl::Status ItemSender::WaitUntilAtMost(int64_t limit, int64_t unsent, absl::Time deadline,
                                         absl::Duration max_unavailable) {
  GR_RETURN_IF_ERROR(CheckNotForked());
  base::MutexLock lock(&mutex_);
  if (status_.ok() && in_flight_items() <= limit) return absl::OkStatus();
  awaited_limit_ = limit_waits_++ == 0 ? limit : std::max(awaited_limit_, limit);
  const absl::Status waited =
      Wait(deadline, max_unavailable, [this, limit] { return in_flight_items() <= limit; });
  --limit_waits_;
  if (!absl::IsDeadlineExceeded(waited) || !status_.ok()) return waited;
  const int64_t submitted = in_flight_items();
  const bool away = failures_ > 0;
  return absl::DeadlineExceededError(
      absl::StrCat("Timeout exceeded with ", unsent + (away ? submitted : 0),
                   " items waiting to be written and ", away ? 0 : submitted,
                   " items awaiting confirmation.", Connection()));
}

// ------------------------------------------------------------------------------------- the end

void ItemSender::Fail(const absl::Status& error) {
  base::MutexLock lock(&mutex_);
  if (status_.ok()) status_ = error;
  NoteClear();
  changed_.NotifyAll();
}

void ItemSender::Stop(const absl::Status& reason) {
  if (!CheckNotForked().ok()) return;
  std::thread reconnecting;
  bool clean;
  {
    base::MutexLock lock(&mutex_);
    if (stopped_) return;
    stopped_ = true;
    clean = status_.ok() && in_flight_items() == 0;
    status_ = reason;  // Also wakes waits after an earlier error, which had its say.
    NoteClear();
    std::swap(reconnecting, reconnecting_);
    changed_.NotifyAll();
  }
  if (reconnecting.joinable()) reconnecting.join();
  std::unique_ptr<InsertStream> stream;
  {
    base::MutexLock send_lock(&send_mutex_);
    stream = std::move(stream_);
    held_.Clear();
  }
  if (stream != nullptr && clean) stream->Close();
  stream = nullptr;
  std::deque<InFlightPtr> dropped;  // Freed without the lock.
  base::MutexLock lock(&mutex_);
  std::swap(dropped, queue_);
  order_by_key_.clear();
  chunk_uses_.clear();
  in_flight_bytes_ = 0;
}

}  // namespace gear_reverb::writer
