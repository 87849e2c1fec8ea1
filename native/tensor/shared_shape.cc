#include "native/tensor/shared_shape.h"

#include <array>
#include <cstring>
#include <new>

#include "absl/hash/hash.h"

namespace gear_reverb::tensor {

void SharedShape::Axes::Release() const {
  if (!references.Drop()) return;
  this->~Axes();
  ::operator delete(const_cast<Axes*>(this));
}

base::RefPtr<const SharedShape::Axes> SharedShape::Make(absl::Span<const int64_t> axes) {
  static_assert(alignof(Axes) <= alignof(int64_t) && sizeof(Axes) % alignof(int64_t) == 0);
  void* const memory = ::operator new(sizeof(Axes) + axes.size() * sizeof(int64_t));
  Axes* const made = new (memory) Axes{{}, static_cast<uint32_t>(axes.size())};
  std::memcpy(reinterpret_cast<std::byte*>(made) + sizeof(Axes), axes.data(),
              axes.size() * sizeof(int64_t));
  return base::RefPtr<const Axes>::Adopt(made);
}

SharedShape::SharedShape(absl::Span<const int64_t> axes) {
  if (axes.empty()) return;
  // What this thread made last, by hash.
  static thread_local std::array<SharedShape, 32> recent;
  SharedShape& known = recent[absl::HashOf(axes) % recent.size()];
  if (absl::MakeConstSpan(known) != axes) known.axes_ = Make(axes);
  axes_ = known.axes_;
}

}  // namespace gear_reverb::tensor
