#include "native/tensor/dtype.h"

#include <array>

#include "absl/strings/str_cat.h"

namespace gear_reverb::tensor {
namespace {

struct Entry {
  DType dtype;
  const char* name;
  size_t byte_size;
  bool integral;
};

constexpr std::array kEntries = {
    Entry{DType::kFloat32, "float32", 4, false},
    Entry{DType::kFloat64, "float64", 8, false},
    Entry{DType::kInt32, "int32", 4, true},
    Entry{DType::kUint8, "uint8", 1, true},
    Entry{DType::kInt16, "int16", 2, true},
    Entry{DType::kInt8, "int8", 1, true},
    Entry{DType::kString, "string", 0, false},
    Entry{DType::kComplex64, "complex64", 8, false},
    Entry{DType::kInt64, "int64", 8, true},
    Entry{DType::kBool, "bool", 1, false},
    Entry{DType::kBfloat16, "bfloat16", 2, false},
    Entry{DType::kUint16, "uint16", 2, true},
    Entry{DType::kComplex128, "complex128", 16, false},
    Entry{DType::kFloat16, "float16", 2, false},
    Entry{DType::kUint32, "uint32", 4, true},
    Entry{DType::kUint64, "uint64", 8, true},
    Entry{DType::kFloat8E5M2, "float8_e5m2", 1, false},
    Entry{DType::kFloat8E4M3FN, "float8_e4m3fn", 1, false},
    Entry{DType::kFloat8E4M3FNUZ, "float8_e4m3fnuz", 1, false},
    Entry{DType::kFloat8E4M3B11FNUZ, "float8_e4m3b11fnuz", 1, false},
    Entry{DType::kFloat8E5M2FNUZ, "float8_e5m2fnuz", 1, false},
};

const Entry* Find(DType dtype) {
  for (const Entry& entry : kEntries) {
    if (entry.dtype == dtype) return &entry;
  }
  return nullptr;
}

}  // namespace

size_t ByteSize(DType dtype) {
  const Entry* entry = Find(dtype);
  return entry == nullptr ? 0 : entry->byte_size;
}

std::string Name(DType dtype) {
  const Entry* entry = Find(dtype);
  if (entry == nullptr) return absl::StrCat("invalid(", static_cast<int>(dtype), ")");
  return entry->name;
}

DType FromName(const std::string& name) {
  for (const Entry& entry : kEntries) {
    if (name == entry.name) return entry.dtype;
  }
  return DType::kInvalid;
}

bool IsKnown(int32_t number) { return Find(static_cast<DType>(number)) != nullptr; }

bool IsIntegral(DType dtype) {
  const Entry* entry = Find(dtype);
  return entry != nullptr && entry->integral;
}

}  // namespace gear_reverb::tensor
