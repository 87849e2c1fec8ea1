#include "native/device/pinned_segments.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "native/base/status.h"

namespace gear_reverb::device {
namespace {

// How often segments are looked for that nobody has asked for yet. One holds 64 MiB and more, so
// few items of a new one are drawn before it is registered.
constexpr absl::Duration kLookOut = absl::Milliseconds(20);

}  // namespace

absl::Status RegistrationBudget::Take(uint64_t bytes) {
  base::MutexLock lock(&mutex_);
  if (bytes > limit_bytes_ - used_bytes_) {
    last_error_ = absl::StrCat("A segment of ", bytes, " bytes is over the limit: ", used_bytes_,
                               " of ", limit_bytes_, " bytes are registered.");
    return absl::ResourceExhaustedError(last_error_);
  }
  used_bytes_ += bytes;
  return absl::OkStatus();
}

void RegistrationBudget::GiveBack(uint64_t bytes) {
  base::MutexLock lock(&mutex_);
  used_bytes_ -= bytes;
}

void RegistrationBudget::NoteError(const absl::Status& status) {
  base::MutexLock lock(&mutex_);
  last_error_ = std::string(status.message());
}

uint64_t RegistrationBudget::used_bytes() const {
  base::MutexLock lock(&mutex_);
  return used_bytes_;
}

std::string RegistrationBudget::last_error() const {
  base::MutexLock lock(&mutex_);
  return last_error_;
}

bool PinnedSegments::IsBefore(const Tried& segment, const std::byte* address) {
  return segment.base < address;
}

PinnedSegments::PinnedSegments(std::shared_ptr<SegmentSource> source,
                               std::shared_ptr<Registrar> registrar,
                               std::shared_ptr<RegistrationBudget> budget, const Retries& retries)
    : source_(std::move(source)),
      registrar_(std::move(registrar)),
      budget_(std::move(budget)),
      retries_(retries) {
  thread_ = std::thread([this] { Work(); });
}

PinnedSegments::~PinnedSegments() {
  {
    base::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
  base::MutexLock lock(&mutex_);
  for (const Tried& segment : *list_) {
    if (segment.device == nullptr) continue;
    registrar_->Unregister(segment.base);
    budget_->GiveBack(segment.bytes);
  }
}

const std::byte* PinnedSegments::Find(const std::byte* data, uint64_t bytes) {
  std::shared_ptr<const List> list;
  {
    base::MutexLock lock(&mutex_);
    list = list_;
  }
  auto after = std::upper_bound(
      list->begin(), list->end(), data,
      [](const std::byte* address, const Tried& segment) { return address < segment.base; });
  if (after != list->begin()) {
    const Tried& segment = *--after;
    const auto offset = static_cast<uint64_t>(data - segment.base);
    if (offset <= segment.bytes && bytes <= segment.bytes - offset) {
      if (segment.device != nullptr) return segment.device + offset;
      if (absl::Now() < segment.again) return nullptr;
    }
  }
  base::MutexLock lock(&mutex_);
  wanted_ = true;
  changed_.NotifyAll();
  return nullptr;
}

void PinnedSegments::WaitUntilTried() {
  base::MutexLock lock(&mutex_);
  wanted_ = true;
  changed_.NotifyAll();
  while (wanted_ || working_) changed_.Wait(&mutex_);
}

void PinnedSegments::Work() {
  const absl::Status kept = source_->Keep();
  if (!kept.ok()) budget_->NoteError(kept);
  base::MutexLock lock(&mutex_);
  size_t tried = 0;
  while (true) {
    const absl::Time look_out = kept.ok() ? absl::Now() + kLookOut : absl::InfiniteFuture();
    if (!changed_.WaitUntil(&mutex_, look_out, [&] { return wanted_ || stopping_; })) {
      mutex_.Unlock();
      const bool grown = source_->segments().size() > tried;
      mutex_.Lock();
      wanted_ |= grown;
      continue;
    }
    if (stopping_) return;
    wanted_ = false;
    working_ = true;
    mutex_.Unlock();
    if (kept.ok()) tried = TryNew();
    mutex_.Lock();
    working_ = false;
    changed_.NotifyAll();
  }
}

size_t PinnedSegments::TryNew() {
  std::shared_ptr<const List> list;
  {
    base::MutexLock lock(&mutex_);
    list = list_;
  }
  const std::vector<memory::SegmentView> segments = source_->segments();
  for (const memory::SegmentView& segment : segments) {
    const auto before = std::lower_bound(list->begin(), list->end(), segment.base, IsBefore);
    const bool known = before != list->end() && before->base == segment.base;
    if (known && absl::Now() < before->again) continue;
    {
      base::MutexLock lock(&mutex_);
      if (stopping_) return segments.size();
    }
    Tried tried{segment.base, segment.bytes, nullptr, known ? before->tries + 1 : 1,
                absl::InfiniteFuture()};
    const absl::StatusOr<const std::byte*> device = TryToRegister(segment);
    if (device.ok()) {
      tried.device = *device;
    } else if (!absl::IsUnimplemented(device.status()) && tried.tries < retries_.tries) {
      tried.again = absl::Now() + retries_.after * (int64_t{1} << (tried.tries - 1));
    }
    auto longer = std::make_shared<List>(*list);
    const auto place = longer->begin() + (before - list->begin());
    if (known) {
      *place = tried;
    } else {
      longer->insert(place, tried);
    }
    list = std::move(longer);
    base::MutexLock lock(&mutex_);
    list_ = list;
  }
  return segments.size();
}

absl::StatusOr<const std::byte*> PinnedSegments::TryToRegister(const memory::SegmentView& segment) {
  GR_RETURN_IF_ERROR(budget_->Take(segment.bytes));
  auto device = registrar_->Register(segment.base, segment.bytes, source_->read_only());
  if (device.ok()) return device;
  budget_->GiveBack(segment.bytes);
  budget_->NoteError(device.status());
  return device;
}

}  // namespace gear_reverb::device
