// For fuzzing: a message as a tree of fields, wrong on purpose in ways that its schema suggests.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace gear_reverb::server::fuzz {

using Random = std::mt19937_64;

// Which fields of a message are messages themselves.
struct Schema {
  std::map<uint32_t, const Schema*> messages;
};

class Field {
 public:
  enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  // The fields of a well-formed message.
  static std::vector<Field> Parse(absl::string_view bytes, const Schema& schema) {
    std::vector<Field> fields;
    while (!bytes.empty()) {
      Field field;
      const uint64_t tag = TakeVarint(&bytes);
      field.number_ = tag >> 3;
      field.wire_ = static_cast<Wire>(tag & 7);
      switch (field.wire_) {
        case kVarint: field.scalar_ = TakeVarint(&bytes); break;
        case kFixed64: field.scalar_ = TakeFixed(&bytes, 8); break;
        case kFixed32: field.scalar_ = TakeFixed(&bytes, 4); break;
        case kBytes: {
          const uint64_t length = TakeVarint(&bytes);
          const absl::string_view content = bytes.substr(0, length);
          bytes.remove_prefix(content.size());
          const auto message = schema.messages.find(field.number_);
          if (message == schema.messages.end()) {
            field.bytes_.assign(content.data(), content.size());
          } else {
            field.schema_ = message->second;
            field.fields_ = Parse(content, *field.schema_);
          }
        }
      }
      fields.push_back(std::move(field));
    }
    return fields;
  }

  static std::string Serialize(const std::vector<Field>& fields) {
    std::string out;
    for (const Field& field : fields) field.AppendTo(&out);
    return out;
  }

  // Changes one field, anywhere in the tree, or which fields there are.
  static void Mutate(std::vector<Field>* fields, Random& random) {
    if (fields->empty()) {
      fields->push_back(Unknown(random));
      return;
    }
    const size_t at = random() % fields->size();
    Field& field = (*fields)[at];
    // Deeper more often than not: that is where the numbers are.
    if (field.schema_ != nullptr && random() % 8 != 0) return Mutate(&field.fields_, random);
    switch (random() % 16) {
      case 0: fields->erase(fields->begin() + at); break;
      case 1: fields->push_back(Field(field)); break;
      case 2: std::swap(field, (*fields)[random() % fields->size()]); break;
      case 3: fields->insert(fields->begin() + at, Unknown(random)); break;
      case 4: field.number_ = 1 + random() % 9; break;
      case 5: field.wire_ = static_cast<Wire>(random() % 8); break;
      case 6: field.length_error_ = Interesting(random); break;
      case 7: fields->insert(fields->end(), 1 + random() % 300, Field(field)); break;
      default: field.MutateValue(random);
    }
  }

  // Numbers at which things tend to break.
  static uint64_t Interesting(Random& random) {
    static constexpr int64_t kNumbers[] = {0,
                                           1,
                                           -1,
                                           2,
                                           7,
                                           127,
                                           128,
                                           255,
                                           256,
                                           65535,
                                           65536,
                                           INT32_MAX,
                                           INT32_MIN,
                                           int64_t{1} << 32,
                                           INT64_MAX,
                                           INT64_MIN,
                                           INT64_MAX / 8,
                                           UINT32_MAX,
                                           1 << 20};
    const uint64_t number = kNumbers[random() % std::size(kNumbers)];
    switch (random() % 4) {
      case 0: return random();
      case 1: return number + random() % 5 - 2;
      default: return number;
    }
  }

 private:
  static Field Unknown(Random& random) {
    Field field;
    field.number_ = random() % 3 == 0 ? 1 + random() % 2000 : 1 + random() % 12;
    static constexpr Wire kWires[] = {kVarint, kFixed64, kBytes, kFixed32};
    field.wire_ = kWires[random() % 4];
    field.scalar_ = Interesting(random);
    field.bytes_.assign(random() % 20, static_cast<char>(random()));
    return field;
  }

  void MutateValue(Random& random) {
    if (schema_ != nullptr) {
      fields_.clear();
    } else if (wire_ == kFixed64) {
      static constexpr double kDoubles[] = {0.0,
                                            -0.0,
                                            -1.0,
                                            1e308,
                                            -1e308,
                                            5e-324,
                                            1e-300,
                                            1e18,
                                            __builtin_inf(),
                                            -__builtin_inf(),
                                            __builtin_nan("")};
      const double value = kDoubles[random() % std::size(kDoubles)];
      __builtin_memcpy(&scalar_, &value, sizeof(value));
    } else if (wire_ == kBytes) {
      MutateBytes(&bytes_, random);
    } else {
      scalar_ = random() % 3 == 0 ? scalar_ + random() % 5 - 2 : Interesting(random);
    }
  }

 public:
  // A few changes that know nothing of what the bytes mean.
  static void MutateBytes(std::string* bytes, Random& random) {
    const size_t at = bytes->empty() ? 0 : random() % bytes->size();
    switch (random() % 7) {
      case 0: bytes->resize(at); break;
      case 1: bytes->append(1 + random() % 30, static_cast<char>(random())); break;
      case 2: bytes->insert(at, 1 + random() % 4, static_cast<char>(random())); break;
      case 3: bytes->erase(at, 1 + random() % 8); break;
      case 4: {  // What begins with a varint, as Snappy's streams do, gets another one.
        std::string front;
        AppendVarint(Interesting(random), &front);
        bytes->replace(0, std::min<size_t>(bytes->size(), random() % 6), front);
        break;
      }
      default:
        if (bytes->empty()) bytes->push_back(0);
        (*bytes)[at] ^= static_cast<char>(random() % 2 == 0 ? 1 << random() % 8 : random());
    }
  }

 private:
  void AppendTo(std::string* out) const {
    AppendVarint(uint64_t{number_} << 3 | wire_, out);
    switch (wire_) {
      case kFixed64: out->append(reinterpret_cast<const char*>(&scalar_), 8); break;
      case kFixed32: out->append(reinterpret_cast<const char*>(&scalar_), 4); break;
      case kBytes: {
        const std::string content = schema_ != nullptr ? Serialize(fields_) : bytes_;
        AppendVarint(content.size() + length_error_, out);
        out->append(content);
        break;
      }
      default: AppendVarint(scalar_, out);
    }
  }

  static void AppendVarint(uint64_t value, std::string* out) {
    for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
    out->push_back(static_cast<char>(value));
  }
  static uint64_t TakeVarint(absl::string_view* bytes) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
      const auto group = static_cast<uint8_t>(bytes->front());
      bytes->remove_prefix(1);
      value |= uint64_t{group & 0x7fu} << shift;
      if (group < 0x80) break;
    }
    return value;
  }
  static uint64_t TakeFixed(absl::string_view* bytes, size_t size) {
    uint64_t value = 0;
    size = std::min(size, bytes->size());
    __builtin_memcpy(&value, bytes->data(), size);
    bytes->remove_prefix(size);
    return value;
  }

  uint32_t number_ = 0;
  Wire wire_ = kVarint;
  uint64_t scalar_ = 0;
  std::string bytes_;
  const Schema* schema_ = nullptr;  // Of a message, whose fields these are.
  std::vector<Field> fields_;
  uint64_t length_error_ = 0;  // Added to the length that is told.
};

// `bytes`, a well-formed message, with one to four mistakes.
inline std::string Mutated(const std::string& bytes, const Schema& schema, Random& random) {
  std::vector<Field> fields = Field::Parse(bytes, schema);
  for (int edits = 1 + random() % 4; edits > 0; --edits) Field::Mutate(&fields, random);
  std::string out = Field::Serialize(fields);
  if (random() % 8 == 0) Field::MutateBytes(&out, random);
  return out;
}

}  // namespace gear_reverb::server::fuzz
