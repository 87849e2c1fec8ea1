#include "native/tensor/shared_type.h"

#include <algorithm>
#include <array>
#include <new>

#include "absl/hash/hash.h"

namespace gear_reverb::tensor {

void SharedType::Parts::Release() const {
  if (!references.Drop()) return;
  this->~Parts();
  ::operator delete(const_cast<Parts*>(this));
}

base::RefPtr<const SharedType::Parts> SharedType::Make(DType dtype,
                                                       absl::Span<const int64_t> shape) {
  static_assert(alignof(Parts) <= alignof(int64_t) && sizeof(Parts) % alignof(int64_t) == 0);
  void* const memory = ::operator new(sizeof(Parts) + shape.size() * sizeof(int64_t));
  Parts* const made = new (memory) Parts{{}, dtype, shape.size()};
  std::copy(shape.begin(), shape.end(), reinterpret_cast<int64_t*>(made + 1));
  return base::RefPtr<const Parts>::Adopt(made);
}

SharedType::SharedType(DType dtype, absl::Span<const int64_t> shape) {
  // What this thread made last, by hash.
  static thread_local std::array<SharedType, 32> recent;
  SharedType& known = recent[absl::HashOf(dtype, shape) % recent.size()];
  if (known.dtype() != dtype || known.shape() != shape || known.parts_ == nullptr) {
    known.parts_ = Make(dtype, shape);
  }
  parts_ = known.parts_;
}

}  // namespace gear_reverb::tensor
