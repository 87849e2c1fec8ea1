// Items of chosen shapes, for tests of batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "native/memory/arena.h"
#include "native/storage/trajectory.h"
#include "native/table/item.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::batch {

// A chunk of one int32 column with these steps, of step shape [width].
inline storage::ChunkPtr Int32Chunk(const std::vector<int32_t>& values, int64_t width = 1) {
  const auto steps = static_cast<int64_t>(values.size()) / width;
  const tensor::TensorView view{
      tensor::DType::kInt32,
      {steps, width},
      {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(int32_t)}};
  return storage::CopyToChunk(*memory::ProcessArena(), 1, {}, {view}).value();
}

inline storage::ChunkPtr TextChunk(const std::vector<absl::string_view>& values) {
  const std::string packed = tensor::PackStrings(values);
  const tensor::TensorView view{tensor::DType::kString,
                                {static_cast<int64_t>(values.size())},
                                {reinterpret_cast<const std::byte*>(packed.data()), packed.size()}};
  return storage::CopyToChunk(*memory::ProcessArena(), 1, {}, {view}).value();
}

using Column = storage::TrajectoryBuilder::Column;

inline Column Whole(const std::vector<storage::ChunkPtr>& chunks, bool squeeze = false) {
  Column column;
  column.squeeze = squeeze;
  for (const auto& chunk : chunks) {
    column.slices.push_back({chunk, 0, static_cast<int32_t>(chunk->steps()), 0});
  }
  return column;
}

inline table::SampledItem Sampled(uint64_t key, std::vector<Column> columns,
                                  double probability = 0.5, int64_t table_size = 2) {
  storage::TrajectoryBuilder trajectory;
  trajectory.columns.assign(columns.begin(), columns.end());
  table::SampledItem sample;
  sample.item.key = key;
  sample.item.priority = static_cast<double>(key);
  sample.item.times_sampled = 3;
  sample.item.trajectory = std::move(trajectory).Build();
  sample.probability = probability;
  sample.table_size = table_size;
  return sample;
}

}  // namespace gear_reverb::batch
