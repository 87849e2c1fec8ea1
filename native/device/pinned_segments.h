// An arena's segments, registered with a device in the background.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

  // False, and noted as the last error, if that is over the limit.
  bool Take(uint64_t bytes);
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
// registered. A segment that cannot be registered is tried once; what lies there is then to be
// copied.
class PinnedSegments {
 public:
  // Starts a thread, which registers what there is and, at a look-up that finds nothing, what has
  // come since.
  PinnedSegments(std::shared_ptr<SegmentSource> source, std::shared_ptr<Registrar> registrar,
                 std::shared_ptr<RegistrationBudget> budget);
  // Unregisters: no work of the device may be under way there.
  ~PinnedSegments();

  // The device's address of all of [data, data + bytes), or null where that is not registered.
  // Never waits for a registration.
  const std::byte* Find(const std::byte* data, uint64_t bytes);

  const SegmentSource& source() const { return *source_; }

  // Waits until every segment that there is has been tried.
  void WaitUntilTried();

 private:
  // A segment, and the device's address of it, or null if it could not be registered.
  struct Tried {
    std::byte* base;
    uint64_t bytes;
    const std::byte* device;
  };
  using List = std::vector<Tried>;  // By address.

  void Work();
  void TryNew();
  const std::byte* TryToRegister(const memory::SegmentView& segment);

  const std::shared_ptr<SegmentSource> source_;
  const std::shared_ptr<Registrar> registrar_;
  const std::shared_ptr<RegistrationBudget> budget_;

  base::Mutex mutex_;
  base::CondVar changed_;
  std::shared_ptr<const List> list_ ABSL_GUARDED_BY(mutex_) = std::make_shared<List>();
  bool wanted_ ABSL_GUARDED_BY(mutex_) = true;
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<uint32_t> tried_;  // Segments' ids, sorted; the thread's.
  std::thread thread_;
};

}  // namespace gear_reverb::device
