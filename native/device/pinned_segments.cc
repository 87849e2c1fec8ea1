#include "native/device/pinned_segments.h"

#include <algorithm>
#include <utility>

#include "native/base/status.h"

namespace gear_reverb::device {

bool RegistrationBudget::Take(uint64_t bytes) {
  base::MutexLock lock(&mutex_);
  if (bytes > limit_bytes_ - used_bytes_) {
    last_error_ = absl::StrCat("A segment of ", bytes, " bytes is over the limit: ", used_bytes_,
                               " of ", limit_bytes_, " bytes are registered.");
    return false;
  }
  used_bytes_ += bytes;
  return true;
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

PinnedSegments::PinnedSegments(std::shared_ptr<SegmentSource> source,
                               std::shared_ptr<Registrar> registrar,
                               std::shared_ptr<RegistrationBudget> budget)
    : source_(std::move(source)), registrar_(std::move(registrar)), budget_(std::move(budget)) {
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
      return segment.device == nullptr ? nullptr : segment.device + offset;
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
  while (!stopping_) {
    if (!wanted_) {
      changed_.Wait(&mutex_);
      continue;
    }
    wanted_ = false;
    working_ = true;
    mutex_.Unlock();
    if (kept.ok()) TryNew();
    mutex_.Lock();
    working_ = false;
    changed_.NotifyAll();
  }
}

void PinnedSegments::TryNew() {
  for (const memory::SegmentView& segment : source_->segments()) {
    const auto place = std::lower_bound(tried_.begin(), tried_.end(), segment.id);
    if (place != tried_.end() && *place == segment.id) continue;
    {
      base::MutexLock lock(&mutex_);
      if (stopping_) return;
    }
    tried_.insert(place, segment.id);
    const std::byte* const device = TryToRegister(segment);
    base::MutexLock lock(&mutex_);
    auto list = std::make_shared<List>(*list_);
    list->push_back({segment.base, segment.bytes, device});
    std::sort(list->begin(), list->end(),
              [](const Tried& a, const Tried& b) { return a.base < b.base; });
    list_ = std::move(list);
  }
}

const std::byte* PinnedSegments::TryToRegister(const memory::SegmentView& segment) {
  if (!budget_->Take(segment.bytes)) return nullptr;
  const auto device = registrar_->Register(segment.base, segment.bytes, source_->read_only());
  if (device.ok()) return *device;
  budget_->GiveBack(segment.bytes);
  budget_->NoteError(device.status());
  return nullptr;
}

}  // namespace gear_reverb::device
