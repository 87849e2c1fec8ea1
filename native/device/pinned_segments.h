// An arena's segments, registered with a device in the background.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "native/base/mutex.h"
#include "native/device/segment_source.h"

namespace gear_reverb::device {

// What registers memory with one device. Thread-safe.
class Registrar {
 public:
  virtual ~Registrar() = default;
  // The device's address of `base`. Takes long: all of the memory is fetched and held.
  // `read_only`: the process itself may not write there.
  virtual absl::StatusOr<const std::byte*> Register(std::byte* base, size_t bytes,
                                                    bool read_only) = 0;
  virtual void Unregister(std::byte* base) = 0;
};

// How much may be registered in all, and how that went. Thread-safe.
class RegistrationBudget {
 public:
  explicit RegistrationBudget(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // RESOURCE_EXHAUSTED, and noted as the last error, if that is over the limit.
  absl::Status Take(uint64_t bytes);
  void GiveBack(uint64_t bytes);
  void NoteError(const absl::Status& status);

  uint64_t limit_bytes() const { return limit_bytes_; }
  uint64_t used_bytes() const;
  std::string last_error() const;

 private:
  const uint64_t limit_bytes_;
  mutable base::Mutex mutex_;
  uint64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string last_error_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe. From now on the source keeps its memory for good; where it will not, nothing is
// registered. What lies in a segment that is not registered is to be copied.
class PinnedSegments {
 public:
  // When a segment that could not be registered is tried again, unless that was UNIMPLEMENTED: at
  // the first look-up `after` the first failure, then after twice as long, and so on.
  struct Retries {
    int tries = 8;  // In all.
    absl::Duration after = absl::Seconds(1);
  };

  // Starts a thread, which registers what there is and what comes, soon, or at once after a look-up
  // that found nothing.
  PinnedSegments(std::shared_ptr<SegmentSource> source, std::shared_ptr<Registrar> registrar,
                 std::shared_ptr<RegistrationBudget> budget, const Retries& retries);
  PinnedSegments(std::shared_ptr<SegmentSource> source, std::shared_ptr<Registrar> registrar,
                 std::shared_ptr<RegistrationBudget> budget)
      : PinnedSegments(std::move(source), std::move(registrar), std::move(budget), Retries()) {}
  // Unregisters: no work of the device may be under way there.
  ~PinnedSegments();

  // The device's address of all of [data, data + bytes), or null where that is not registered.
  // Never waits for a registration.
  const std::byte* Find(const std::byte* data, uint64_t bytes);

  const SegmentSource& source() const { return *source_; }

  // Waits until every segment that there is has been tried, also again if it is time for that.
  void WaitUntilTried();

 private:
  // A segment, and the device's address of it, or null if it could not be registered.
  struct Tried {
    std::byte* base;
    uint64_t bytes;
    const std::byte* device;
    int tries;
    absl::Time again;  // When it is to be tried next.
  };
  using List = std::vector<Tried>;  // By address.
  static bool IsBefore(const Tried& segment, const std::byte* address);

  void Work();
  size_t TryNew();  // How many segments there are.
  absl::StatusOr<const std::byte*> TryToRegister(const memory::SegmentView& segment);

  const std::shared_ptr<SegmentSource> source_;
  const std::shared_ptr<Registrar> registrar_;
  const std::shared_ptr<RegistrationBudget> budget_;
  const Retries retries_;

  base::Mutex mutex_;
  base::CondVar changed_;
  std::shared_ptr<const List> list_ ABSL_GUARDED_BY(mutex_) = std::make_shared<List>();
  bool wanted_ ABSL_GUARDED_BY(mutex_) = true;
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace gear_reverb::device
