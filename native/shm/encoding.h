// Numbers, strings and arrays in a row of bytes: written as they lie in memory, read with checks.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gear_reverb::shm {

// Appends to a string that it borrows.
class Encoder {
 public:
  explicit Encoder(std::string* out) : out_(*out) {}

  template <typename T>
  void Put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    out_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  // The length, then the values.
  template <typename T>
  void PutArray(absl::Span<const T> values) {
    Put<uint32_t>(static_cast<uint32_t>(values.size()));
    PutValues(values);
  }
  template <typename T>
  void PutValues(absl::Span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    out_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  // Room for so many bytes, which are the caller's to write before anything else is put.
  char* Extend(size_t bytes) {
    out_.resize(out_.size() + bytes);
    return out_.data() + out_.size() - bytes;
  }
  // What `get` makes of each element.
  template <typename T, typename Elements, typename Get>
  void PutEach(const Elements& elements, Get get) {
    char* to = Extend(elements.size() * sizeof(T));
    for (const auto& element : elements) {
      const T value = get(element);
      std::memcpy(to, &value, sizeof(T));
      to += sizeof(T);
    }
  }
  void PutString(absl::string_view text) { PutArray<char>({text.data(), text.size()}); }

 private:
  std::string& out_;
};

// Reads private memory only: shared memory could change between a check and a use. What is not
// there reads as zeros, and `ok` is false from then on.
class Decoder {
 public:
  explicit Decoder(absl::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T Get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (const char* from = Take(sizeof(T)); from != nullptr) {
      std::memcpy(&value, from, sizeof(T));
    }
    return value;
  }
  // A number of things that have at least `bytes_each` bytes; 0 if the rest has not that many.
  uint32_t GetCount(size_t bytes_each) {
    const auto count = Get<uint32_t>();
    if (count <= rest_.size() / bytes_each) return count;
    ok_ = false;
    return 0;
  }
  template <typename T>
  std::vector<T> GetArray() {
    return GetValues<T>(GetCount(sizeof(T)));
  }
  template <typename T>
  std::vector<T> GetValues(size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (count > rest_.size() / sizeof(T)) ok_ = false;
    std::vector<T> values(ok_ ? count : 0);
    if (const char* from = Take(values.size() * sizeof(T)); from != nullptr && !values.empty()) {
      std::memcpy(values.data(), from, values.size() * sizeof(T));
    }
    return values;
  }
  // A view of what was given to the constructor.
  absl::string_view GetString() {
    const uint32_t bytes = GetCount(1);
    const char* from = Take(bytes);
    return from == nullptr ? absl::string_view() : absl::string_view(from, bytes);
  }

  // Whether the rest has `count` times as many bytes.
  bool Has(size_t count, size_t bytes_each) const {
    return ok_ && count <= rest_.size() / bytes_each;
  }
  bool ok() const { return ok_; }
  // Whether all was there and all was read.
  bool done() const { return ok_ && rest_.empty(); }

 private:
  const char* Take(size_t bytes) {
    if (!ok_ || bytes > rest_.size()) {
      ok_ = false;
      return nullptr;
    }
    const char* from = rest_.data();
    rest_.remove_prefix(bytes);
    return from;
  }

  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace gear_reverb::shm
