// The shape of something that stays: eight bytes, since equal shapes share their axes.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "absl/types/span.h"
#include "native/base/ref_ptr.h"
#include "native/tensor/shape.h"

namespace gear_reverb::tensor {

// Immutable; copies are cheap and thread-safe. A thread that makes the shapes of a few kinds of
// chunk again and again allocates each once.
class SharedShape {
 public:
  SharedShape() = default;  // A scalar's.
  SharedShape(absl::Span<const int64_t> axes);
  SharedShape(const Shape& shape) : SharedShape(absl::MakeConstSpan(shape)) {}
  SharedShape(std::initializer_list<int64_t> axes)
      : SharedShape(absl::Span<const int64_t>(axes.begin(), axes.size())) {}

  size_t size() const { return axes_ == nullptr ? 0 : axes_->count; }
  bool empty() const { return axes_ == nullptr; }
  const int64_t* data() const { return axes_ == nullptr ? nullptr : axes_->values(); }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size(); }
  int64_t operator[](size_t axis) const { return data()[axis]; }
  Shape ToShape() const { return Shape(begin(), end()); }

  friend bool operator==(const SharedShape& a, const SharedShape& b) {
    return a.axes_ == b.axes_ || absl::MakeConstSpan(a) == absl::MakeConstSpan(b);
  }
  friend bool operator==(const SharedShape& a, const Shape& b) {
    return absl::MakeConstSpan(a) == absl::MakeConstSpan(b);
  }

 private:
  // Followed by the axes.
  struct Axes {
    mutable base::RefCount references;
    uint32_t count;

    const int64_t* values() const { return reinterpret_cast<const int64_t*>(this + 1); }
    void AddRef() const { references.Add(); }
    void Release() const;
  };
  static base::RefPtr<const Axes> Make(absl::Span<const int64_t> axes);

  base::RefPtr<const Axes> axes_;  // Null: none.
};

}  // namespace gear_reverb::tensor
