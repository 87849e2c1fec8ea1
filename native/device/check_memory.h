// A backend's memory for a check or a measurement: poisoned, so that what a kernel leaves out is
// seen, and read back whole.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/base/status.h"
#include "native/device/select_backend.h"

namespace gear_reverb::device {

class CheckMemory {
 public:
  static constexpr int kPoison = 0xa5;

  static absl::StatusOr<CheckMemory> Create(SelectBackend& backend, size_t bytes) {
    GR_ASSIGN_OR_RETURN(void* const data, backend.Allocate(bytes + 1));  // Never nothing.
    CheckMemory made(backend, data, bytes);
    GR_RETURN_IF_ERROR(backend.Fill(data, kPoison, bytes, nullptr));
    return made;
  }
  template <typename T>
  static absl::StatusOr<CheckMemory> Of(SelectBackend& backend, const std::vector<T>& values) {
    GR_ASSIGN_OR_RETURN(CheckMemory made, Create(backend, values.size() * sizeof(T)));
    if (values.empty()) return made;
    GR_RETURN_IF_ERROR(
        backend.Copy(made.data_.get(), values.data(), values.size() * sizeof(T), nullptr));
    return made;
  }

  template <typename T>
  T* data() const {
    return static_cast<T*>(data_.get());
  }
  absl::StatusOr<std::vector<char>> Read() const {
    std::vector<char> bytes(bytes_);
    GR_RETURN_IF_ERROR(backend_->Copy(bytes.data(), data_.get(), bytes_, nullptr));
    GR_RETURN_IF_ERROR(backend_->Synchronize(nullptr));
    return bytes;
  }

 private:
  struct Freed {
    SelectBackend* backend;
    void operator()(void* data) const { backend->Free(data); }
  };
  CheckMemory(SelectBackend& backend, void* data, size_t bytes)
      : backend_(&backend), data_(data, Freed{&backend}), bytes_(bytes) {}

  SelectBackend* backend_;
  std::unique_ptr<void, Freed> data_;
  size_t bytes_;
};

}  // namespace gear_reverb::device
