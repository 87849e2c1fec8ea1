// Small chunks and items for the tests of this layer.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "native/memory/arena.h"
#include "native/storage/chunk.h"
#include "native/storage/trajectory.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::rpc {

template <typename T>
tensor::TensorView ViewOf(tensor::DType dtype, tensor::Shape shape, const std::vector<T>& values) {
  return {dtype,
          std::move(shape),
          {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)}};
}

inline tensor::TensorView ViewOfText(tensor::Shape shape, const std::string& packed) {
  return {tensor::DType::kString,
          std::move(shape),
          {reinterpret_cast<const std::byte*>(packed.data()), packed.size()}};
}

inline storage::ChunkPtr MakeChunk(uint64_t key, storage::SequenceRange range,
                                   const std::vector<tensor::TensorView>& views) {
  return *storage::CopyToChunk(*memory::ProcessArena(), key, range, views);
}

inline std::string BytesOf(const storage::ChunkColumn& column) {
  const auto span = column.data.span();
  return std::string(reinterpret_cast<const char*>(span.data()), span.size());
}

// Three steps of int32[2] and of a string.
inline storage::ChunkPtr MakeMixedChunk(uint64_t key) {
  static const std::vector<int32_t> numbers = {1, 2, 30, -40, 500, 600};
  static const std::string text = tensor::PackStrings({"one", "", std::string("t\0o", 3)});
  return MakeChunk(key, {7, 3, 5, true},
                   {ViewOf(tensor::DType::kInt32, {3, 2}, numbers), ViewOfText({3}, text)});
}

}  // namespace gear_reverb::rpc
