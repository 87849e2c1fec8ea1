// The dtype and shape of something that stays: eight bytes, since what is alike shares them.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "native/base/ref_ptr.h"
#include "native/tensor/dtype.h"

namespace gear_reverb::tensor {

// Immutable; copies are cheap and thread-safe. A thread that makes those of a few kinds of chunk
// again and again allocates each once.
class SharedType {
 public:
  SharedType() = default;  // kInvalid, a scalar.
  SharedType(DType dtype, absl::Span<const int64_t> shape);

  DType dtype() const { return parts_ == nullptr ? DType::kInvalid : parts_->dtype; }
  absl::Span<const int64_t> shape() const {
    if (parts_ == nullptr) return {};
    return {parts_->axes(), parts_->num_axes};
  }
  // Then both are the same; the opposite does not hold.
  bool IsSharedWith(const SharedType& other) const { return parts_ == other.parts_; }

 private:
  // Followed by the axes.
  struct Parts {
    mutable base::RefCount references;
    DType dtype;
    size_t num_axes;

    const int64_t* axes() const { return reinterpret_cast<const int64_t*>(this + 1); }
    void AddRef() const { references.Add(); }
    void Release() const;
  };
  static base::RefPtr<const Parts> Make(DType dtype, absl::Span<const int64_t> shape);

  base::RefPtr<const Parts> parts_;
};

}  // namespace gear_reverb::tensor
