// The constants of docs/formats/checkpoint.md, and its numbers as bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace gear_reverb::checkpoint {

static_assert(std::endian::native == std::endian::little, "The format is little-endian.");

inline constexpr char kFileName[] = "replay.ckpt";
inline constexpr absl::string_view kMagic = "GEARCKPT";
inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kFileHeaderBytes = 16;
inline constexpr size_t kBlockHeaderBytes = 24;

enum class BlockType : uint32_t { kTable = 1, kChunk = 2, kItems = 3, kEnd = 4 };

// Appends numbers and byte strings.
class Encoder {
 public:
  template <typename Number>
  void Put(Number number) {
    static_assert(std::is_arithmetic_v<Number>);
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void PutBytes(absl::string_view bytes) {
    Put<uint64_t>(bytes.size());
    bytes_.append(bytes.data(), bytes.size());
  }

  const std::string& bytes() const { return bytes_; }
  void Clear() { bytes_.clear(); }

 private:
  std::string bytes_;
};

// Takes them off again. Once something was missing, all that follows is zero or empty and ok() is
// false, so that one check per record is enough; loops must check it.
class Decoder {
 public:
  explicit Decoder(absl::string_view bytes) : rest_(bytes) {}

  template <typename Number>
  Number Get() {
    static_assert(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>);
    Number number{};
    const absl::string_view bytes = Raw(sizeof(number));
    if (ok_) std::memcpy(&number, bytes.data(), sizeof(number));
    return number;
  }
  absl::string_view GetBytes() { return Raw(Get<uint64_t>()); }
  // The next `size` bytes as they are.
  absl::string_view Raw(uint64_t size) {
    if (size > rest_.size()) ok_ = false;
    if (!ok_) return {};
    const absl::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  bool ok() const { return ok_; }
  bool done() const { return ok_ && rest_.empty(); }

 private:
  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace gear_reverb::checkpoint
