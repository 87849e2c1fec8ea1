// Samples, as leases on places in the arena, and new priorities.
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <new>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "native/base/philox.h"
#include "native/base/status.h"
#include "native/batch/drawn_batch.h"
#include "native/server/limits.h"
#include "native/server/shm_loans.h"
#include "native/server/shm_session.h"
#include "native/shm/control_records.h"
#include "native/shm/drawn_record.h"
#include "native/shm/encoding.h"

namespace gear_reverb::server {
namespace {

using shm::MessageType;

constexpr size_t kMaxRequests = 1024;
constexpr size_t kMaxLeases = size_t{1} << 20;
constexpr size_t kMaxLentItems = size_t{1} << 24;
// After so many another session has its turn.
constexpr int kDrawsATurn = 64;

// Whether the arena's memory may stay with this process for a client's sake.
bool MayKeepMemory() {
  const char* const text = std::getenv("GEAR_REVERB_KEEP_MEMORY");
  return text == nullptr || absl::string_view(text) != "0";
}

class ControlRole final : public ShmRole {
 public:
  ControlRole(ShmSession* session, std::shared_ptr<service::ReplayService> service)
      : session_(*session), service_(std::move(service)), segments_(session, &service_->arena()) {}

  absl::Status OnMessage(const shm::Frame& frame) override {
    switch (frame.type) {
      case MessageType::kDraw: return OnDraw(frame.body);
      case MessageType::kMutate: return OnMutate(frame.body);
      case MessageType::kRelease: {
        shm::Decoder decoder(frame.body);
        leases_.Release(decoder.GetArray<uint64_t>());
        return decoder.done() ? absl::OkStatus()
                              : base::InvalidArgument("The list of leases is malformed.");
      }
      case MessageType::kCancel: StopDrawing(); return absl::OkStatus();
      case MessageType::kKeepMemory: return OnKeepMemory(frame.body);
      default: break;
    }
    return base::InvalidArgument("Unexpected message ", static_cast<uint32_t>(frame.type), ".");
  }

  absl::StatusOr<bool> Work() override {
    const bool more = Draw();
    Release();  // The client does not wait for it.
    return more;
  }

  void OnEnded() override { StopDrawing(); }

  bool Lends() override { return leases_.size() > 0; }

 private:
  // Every request has an answer all the same: the client counts what was drawn for it.
  void StopDrawing() {
    std::shared_ptr<table::Table> table;
    table::Table::WaitId wait_id;
    size_t unanswered;
    {
      base::MutexLock lock(&mutex_);
      stopped_ = true;
      unanswered = requests_.size() - (drawing_ && !requests_.empty() ? 1 : 0);
      requests_.clear();
      table = table_;
      wait_id = wait_id_;
    }
    if (wait_id != 0) table->Cancel(wait_id);
    const absl::Status cancelled = absl::CancelledError("The request was cancelled.");
    for (; unanswered > 0; --unanswered) {
      session_.Send(StatusFrame(MessageType::kFailed, cancelled));
    }
  }

  absl::Status OnDraw(absl::string_view body) {
    GR_ASSIGN_OR_RETURN(shm::DrawRequest request, shm::DecodeDrawRequest(body));
    released_.insert(released_.end(), request.released.begin(), request.released.end());
    request.released = {};
    if (leases_.size() >= kMaxLeases / 2 || leases_.num_items() >= kMaxLentItems / 2) Release();
    base::MutexLock lock(&mutex_);
    if (requests_.size() >= kMaxRequests) {
      return absl::ResourceExhaustedError("Too many requests for samples wait.");
    }
    requests_.push_back(std::move(request));
    return absl::OkStatus();
  }

  void Release() {
    if (!released_.empty()) leases_.Release(released_);
    released_.clear();
  }

  absl::Status OnMutate(absl::string_view body) {
    GR_ASSIGN_OR_RETURN(const shm::MutateRequest request, shm::DecodeMutateRequest(body));
    const absl::Status status =
        service_->MutatePriorities(request.table, request.updates, request.delete_keys);
    session_.Send(StatusFrame(MessageType::kMutated, status));
    return absl::OkStatus();
  }

  absl::Status OnKeepMemory(absl::string_view body) {
    if (!body.empty()) return base::InvalidArgument("A request to keep memory is empty.");
    absl::Status status;
    if (MayKeepMemory()) {
      service_->arena().KeepMemory();
    } else {
      status = absl::FailedPreconditionError(
          "The server gives memory back to the system (GEAR_REVERB_KEEP_MEMORY=0), so it cannot be "
          "registered.");
    }
    session_.Send(StatusFrame(MessageType::kMemoryKept, status));
    return absl::OkStatus();
  }

  // Serves requests until none is left, a draw has to wait, or the client is slow to read; or until
  // the turn is over (true).
  bool Draw() {
    for (int draws = 0; !session_.congested(); ++draws) {
      if (draws == kDrawsATurn) return true;
      std::shared_ptr<table::Table> table;
      int64_t n = 0;
      absl::Duration timeout;
      std::shared_ptr<base::Philox> random;
      absl::Status found;
      {
        base::MutexLock lock(&mutex_);
        // Who is in a call goes on by itself.
        if (drawing_ || in_call_ || stopped_ || requests_.empty()) return false;
        shm::DrawRequest& request = requests_.front();
        found = FindTable(request.table);
        if (found.ok()) {
          table = table_;
          n = request.once ? request.n : std::min(request.n, kMaxDraw);
          timeout = request.timeout;
          if (const auto seed = std::exchange(request.seed, std::nullopt)) {
            random_ = std::make_shared<base::Philox>(*seed);
          }
          random = random_;
          drawing_ = in_call_ = true;
          wait_id_ = 0;
        } else {
          requests_.pop_front();
        }
      }
      if (!found.ok()) {
        session_.Send(StatusFrame(MessageType::kFailed, found));
        continue;
      }
      const table::Table::WaitId id = table->SampleAsync(
          n, absl::Now() + timeout,
          [this, weak = session_.weak_from_this()](
              absl::StatusOr<std::vector<table::SampledItem>> samples) {
            if (const auto session = weak.lock()) OnSampled(std::move(samples));
          },
          random);
      bool cancel;
      {
        base::MutexLock lock(&mutex_);
        in_call_ = false;
        if (!drawing_) continue;
        wait_id_ = id;
        cancel = stopped_;
      }
      if (cancel) table->Cancel(id);
      return false;  // OnSampled goes on.
    }
    return false;
  }

  absl::Status FindTable(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (table_ == nullptr || table_->name() != name) {
      GR_ASSIGN_OR_RETURN(table_, service_->FindTable(name));
    }
    return absl::OkStatus();
  }

  void OnSampled(absl::StatusOr<std::vector<table::SampledItem>> samples) {
    if (samples.ok()) {
      absl::Status sent;
      try {
        sent = SendDrawn(*samples);
      } catch (const std::bad_alloc&) {
        sent = OutOfMemory();
      }
      if (!sent.ok()) session_.Refuse(sent);
    } else {
      session_.Send(StatusFrame(MessageType::kFailed, service_->Explain(samples.status())));
    }
    {
      base::MutexLock lock(&mutex_);
      drawing_ = false;
      wait_id_ = 0;
      if (!requests_.empty()) {
        shm::DrawRequest& request = requests_.front();
        if (samples.ok()) request.n -= static_cast<int64_t>(samples->size());
        if (!samples.ok() || request.once || request.n <= 0) requests_.pop_front();
      }
      if (in_call_) return;  // Draw goes on by itself.
    }
    if (Draw()) session_.Schedule();
  }

  absl::Status SendDrawn(absl::Span<const table::SampledItem> items) {
    if (leases_.size() >= kMaxLeases || leases_.num_items() + items.size() > kMaxLentItems) {
      return absl::ResourceExhaustedError("Too many leases are outstanding.");
    }
    for (absl::Span<const table::SampledItem> rest = items; !rest.empty();) {
      const auto group = rest.first(std::min(rest.size(), batch::kPrefetched));
      batch::Prefetch(group);
      if (!std::all_of(group.begin(), group.end(), [this](const auto& i) { return IsOurs(i); })) {
        return absl::ResourceExhaustedError("The items lie in another server's memory.");
      }
      rest.remove_prefix(group.size());
    }
    const uint64_t lease = leases_.Add(items);
    std::string body;
    absl::flat_hash_set<uint32_t> segments;
    GR_RETURN_IF_ERROR(shm::EncodeDrawn(lease, items, shm::kMaxBodyBytes, &body, &segments));
    GR_RETURN_IF_ERROR(segments_.Share(segments));
    session_.Send(shm::MakeFrame(MessageType::kDrawn, body));
    return absl::OkStatus();
  }

  // Tables can go from one server to another, and bring along what they hold.
  bool IsOurs(const table::SampledItem& item) const {
    if (item.item.trajectory == nullptr) return true;
    for (const storage::TrajectoryColumn& column : item.item.trajectory->columns) {
      for (const storage::ChunkSlice& slice : column.slices) {
        const memory::Block& block = slice.source().data;
        if (block.size() > 0 && !block.IsOf(service_->arena())) return false;
      }
    }
    return true;
  }

  ShmSession& session_;
  const std::shared_ptr<service::ReplayService> service_;
  Leases leases_;
  SharedSegments segments_;
  std::vector<uint64_t> released_;  // Leases, and not taken back yet; of the thread that works.

  base::Mutex mutex_;
  std::shared_ptr<table::Table> table_ ABSL_GUARDED_BY(mutex_);   // Of the last draw.
  std::shared_ptr<base::Philox> random_ ABSL_GUARDED_BY(mutex_);  // Null: the table's own.
  std::deque<shm::DrawRequest> requests_ ABSL_GUARDED_BY(mutex_);
  table::Table::WaitId wait_id_ ABSL_GUARDED_BY(mutex_) = 0;  // Of the draw that waits.
  bool drawing_ ABSL_GUARDED_BY(mutex_) = false;
  bool in_call_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<ShmRole> NewShmControlRole(ShmSession* session,
                                           std::shared_ptr<service::ReplayService> service) {
  return std::make_unique<ControlRole>(session, std::move(service));
}

}  // namespace gear_reverb::server
