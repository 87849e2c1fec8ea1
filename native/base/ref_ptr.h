// A counted pointer of eight bytes to an object that holds its own count.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace gear_reverb::base {

// The count of an object that lives until its last RefPtr goes; starts at one, for RefPtr::Adopt.
// Thread-safe.
class RefCount {
 public:
  RefCount() = default;
  RefCount(const RefCount&) = delete;
  RefCount& operator=(const RefCount&) = delete;

  void Add() { Add(1); }
  void Add(uint32_t n) { count_.fetch_add(n, std::memory_order_relaxed); }
  // Whether that was the last one; everything that others did with the object is then visible. Who
  // holds all references needs no atomic change to know that.
  bool Drop() { return Drop(1); }
  bool Drop(uint32_t n) {
    return count_.load(std::memory_order_acquire) == n ||
           count_.fetch_sub(n, std::memory_order_acq_rel) == n;
  }

 private:
  std::atomic<uint32_t> count_{1};
};

// Like std::shared_ptr, for a T with `void AddRef() const` and `void Release() const`, the latter
// destroying the object with the last reference.
template <typename T>
class RefPtr {
 public:
  RefPtr() = default;
  RefPtr(std::nullptr_t) {}  // NOLINT: as std::shared_ptr.
  RefPtr(const RefPtr& other) : object_(other.object_) {
    if (object_ != nullptr) object_->AddRef();
  }
  RefPtr(RefPtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  // Not one operator by value: `map[p->key()] = std::move(p)` would take p first.
  RefPtr& operator=(const RefPtr& other) noexcept {
    RefPtr(other).Swap(*this);
    return *this;
  }
  RefPtr& operator=(RefPtr&& other) noexcept {
    RefPtr(std::move(other)).Swap(*this);
    return *this;
  }
  ~RefPtr() {
    if (object_ != nullptr) object_->Release();
  }

  // Takes over one reference, which the caller has.
  static RefPtr Adopt(T* object) {
    RefPtr pointer;
    pointer.object_ = object;
    return pointer;
  }

  // The opposite of Adopt: the reference is the caller's.
  T* Detach() { return std::exchange(object_, nullptr); }

  T* get() const { return object_; }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset() { RefPtr().Swap(*this); }

  friend bool operator==(const RefPtr&, const RefPtr&) = default;
  friend bool operator==(const RefPtr& a, std::nullptr_t) { return a.object_ == nullptr; }
  template <typename H>
  friend H AbslHashValue(H state, const RefPtr& pointer) {
    return H::combine(std::move(state), pointer.object_);
  }

 private:
  void Swap(RefPtr& other) noexcept { std::swap(object_, other.object_); }

  T* object_ = nullptr;
};

}  // namespace gear_reverb::base
