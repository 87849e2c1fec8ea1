#include "native/client/shm_row_sender.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "native/base/interrupt.h"
#include "native/base/pause.h"
#include "native/base/status.h"
#include "native/base/timer.h"
#include "native/client/fork_guard.h"
#include "native/client/shm_limits.h"
#include "native/shm/handshake.h"
#include "native/shm/insert_records.h"
#include "native/shm/key_runs.h"

namespace gear_reverb::client {
namespace {

// The server hears of so much at a time, and so copies while this side does.
constexpr size_t kPublishBytes = size_t{64} << 10;
// How long to look out for room before going to sleep: the server makes some every few
// microseconds.
constexpr auto kPollFor = std::chrono::microseconds(30);

}  // namespace

absl::StatusOr<std::unique_ptr<ShmRowSender>> ShmRowSender::Open(const ShmPeer& peer) {
  GR_ASSIGN_OR_RETURN(auto ring, shm::RingProducer::Create(kRowRingBytes));
  GR_ASSIGN_OR_RETURN(shm::Socket socket, peer.Open(shm::Role::kInsert, ring->fd()));
  return std::unique_ptr<ShmRowSender>(new ShmRowSender(std::move(ring), std::move(socket)));
}

absl::Status ShmRowSender::Insert(const StackedItems& items, absl::Time deadline,
                                  ConfirmedItems* confirmed) {
  GR_RETURN_IF_ERROR(CheckNotForked());
  deadline_ = deadline;
  keys_ = items.keys;
  confirmed_ = confirmed;
  next_ = 0;
  row_of_.clear();
  const storage::StackedRows& rows = items.rows;
  if (rows.columns().size() > shm::kMaxRowSlices / storage::StackedRows::kMaxRows) {
    return absl::UnavailableError("So many columns go item by item.");
  }
  uint64_t episode_id;
  random_.Fill(absl::MakeSpan(&episode_id, 1));
  std::vector<tensor::TensorView> parts(rows.columns().size());
  std::vector<std::string> packed(parts.size());
  for (int64_t begin = 0; begin < rows.size();) {
    const int64_t end = rows.ChunkEnd(begin);
    for (size_t i = 0; i < parts.size(); ++i) parts[i] = rows.Part(i, begin, end, &packed[i]);
    uint64_t chunk_key;
    random_.Fill(absl::MakeSpan(&chunk_key, 1));
    record_.clear();
    shm::EncodeRows(chunk_key, rows.Range(episode_id, begin, end), parts, items.table,
                    rows.row_steps(), rows.squeeze(), items.keys.subspan(begin, end - begin),
                    items.priorities.subspan(begin, end - begin), &record_);
    GR_RETURN_IF_ERROR(Put(record_.data(), record_.size()));
    for (const tensor::TensorView& part : parts) {
      GR_RETURN_IF_ERROR(Put(part.data.data(), part.data.size()));
    }
    GR_RETURN_IF_ERROR(Publish());
    begin = end;
  }
  while (confirmed->count < rows.size()) GR_RETURN_IF_ERROR(WaitForMessage());
  return absl::OkStatus();
}

absl::Status ShmRowSender::Put(const void* data, size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const size_t now = std::min({bytes, ring_->Room(), kPublishBytes});
    if (now == 0) {
      GR_RETURN_IF_ERROR(WaitForRoom());
      continue;
    }
    std::memcpy(ring_->data(), from, now);
    ring_->Advance(now);
    from += now;
    bytes -= now;
    if (bytes > 0) GR_RETURN_IF_ERROR(Publish());
  }
  return absl::OkStatus();
}

absl::Status ShmRowSender::Publish() {
  if (!ring_->Publish()) return absl::OkStatus();
  // A socket that takes nothing has no reader, which waiting for it will tell.
  return socket_.Send(shm::MakeFrame(shm::MessageType::kDoorbell)).status();
}

absl::Status ShmRowSender::WaitForRoom() {
  GR_RETURN_IF_ERROR(Publish());
  const auto until = base::SteadyNow() + kPollFor;
  do {
    for (int i = 0; i < 32; ++i) base::Pause();
    if (ring_->Room() > 0) return absl::OkStatus();
  } while (base::SteadyNow() < until);
  return ring_->WaitForRoom(0) ? WaitForMessage() : absl::OkStatus();
}

absl::Status ShmRowSender::WaitForMessage() {
  while (true) {
    const absl::StatusOr<bool> received = reader_.Receive(socket_, nullptr);
    if (!received.ok()) {
      return absl::UnavailableError(
          absl::StrCat("The server has gone: ", received.status().message()));
    }
    if (*received) return OnMessages();
    const absl::Duration left = deadline_ - absl::Now();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("Timeout exceeded.");
    if (socket_.WaitReadable(std::min(left, kLookEvery))) continue;
    const base::InterruptHook hook = base::interrupt_hook.load();
    if (hook != nullptr && hook()) return absl::CancelledError("Interrupted.");
  }
}

absl::Status ShmRowSender::OnMessages() {
  while (true) {
    GR_ASSIGN_OR_RETURN(const auto frame, reader_.Next());
    if (!frame.has_value()) return absl::OkStatus();
    switch (frame->type) {
      case shm::MessageType::kWelcome:
      case shm::MessageType::kDoorbell: break;
      case shm::MessageType::kConfirmed: GR_RETURN_IF_ERROR(OnConfirmed(frame->body)); break;
      case shm::MessageType::kEnd: {
        const absl::Status end = shm::DecodeStatus(frame->body);
        return end.ok() ? absl::UnavailableError("The server ended the stream.") : end;
      }
      default: return base::Internal("The server sent ", static_cast<uint32_t>(frame->type), ".");
    }
  }
}

absl::Status ShmRowSender::OnConfirmed(absl::string_view body) {
  const auto keys = shm::DecodeKeyRuns(body, keys_.size() - confirmed_->count);
  if (!keys.ok()) return base::Internal("The server confirmed: ", keys.status().message());
  std::vector<bool>& done = confirmed_->rows;
  for (const uint64_t key : *keys) {
    const size_t row = next_ < keys_.size() && keys_[next_] == key ? next_ : RowOf(key);
    if (row == keys_.size() || done[row]) {
      return base::Internal("The server confirmed another item than was sent.");
    }
    done[row] = true;
    ++confirmed_->count;
    while (next_ < keys_.size() && done[next_]) ++next_;
  }
  return absl::OkStatus();
}

size_t ShmRowSender::RowOf(uint64_t key) {
  if (row_of_.empty()) {
    for (size_t i = 0; i < keys_.size(); ++i) row_of_[keys_[i]] = i;
  }
  const auto found = row_of_.find(key);
  return found == row_of_.end() ? keys_.size() : found->second;
}

}  // namespace gear_reverb::client
