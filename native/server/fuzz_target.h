// For fuzzing: a service that is handed the messages of clients without a network, and what must
// hold whatever they are.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "native/base/status.h"
#include "native/rpc/chunk_codec.h"
#include "native/rpc/item_codec.h"
#include "native/rpc/methods.h"
#include "native/rpc/requests.h"
#include "native/rpc/signature_codec.h"
#include "native/rpc/table_info_codec.h"
#include "native/server/fuzz_corpus.h"
#include "native/server/insert_request.h"

namespace gear_reverb::server::fuzz {

// Ends the process, as libFuzzer wants it: what is checked never fails.
inline void Require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "FUZZING FOUND: %s\n", what.c_str());
  std::abort();
}

inline std::vector<std::shared_ptr<table::Table>> MakeTables() {
  constexpr double kMax = std::numeric_limits<double>::max();
  const auto make = [](const char* name, selectors::SelectorOptions sampler, int64_t max_size,
                       int32_t max_times_sampled, rate_limiter::RateLimiterOptions limiter) {
    table::TableOptions options;
    options.name = name;
    options.sampler = sampler;
    options.remover = selectors::FifoOptions{};
    options.max_size = max_size;
    options.max_times_sampled = max_times_sampled;
    options.rate_limiter = limiter;
    return table::Table::Create(std::move(options)).value();
  };
  return {make(kTable, selectors::PrioritizedOptions{0.7}, 4, 0, {1, 1, -kMax, kMax}),
          make(kLimitedTable, selectors::UniformOptions{}, 10, 0, {1, 1, -2, 2}),
          make(kQueue, selectors::FifoOptions{}, 3, 1, {1, 1, 0, 3})};
}

class Target {
 public:
  Target() : service_(service::ReplayService::Create(MakeTables(), nullptr).value()) {}
  ~Target() { service_->Stop(); }

  // As a server would: statuses are those of the call.
  absl::Status Run(const std::string& method, const std::vector<std::string>& messages) {
    absl::Status status;
    if (method == rpc::method::kInsertStream) {
      status = InsertStream(messages);
    } else {
      for (const std::string& message : messages) {
        if (status.ok()) status = RunOne(method, message);
      }
    }
    Require(status.ok() || !status.message().empty(),
            "an error of " + method + " without a reason");
    return status;
  }

  // Draws from all tables what is to be had, and reads it as a client would.
  void SampleAll() {
    for (const auto& table : service_->tables()) {
      if (!table->CanSample(1)) continue;  // To wait for nothing is slow.
      const auto samples = table->Sample(8, absl::InfinitePast());
      if (!samples.ok()) continue;
      for (const table::SampledItem& sample : *samples) CheckSample(sample, table->name());
    }
  }

  // Empties the tables: then no byte of any client may be left.
  void CheckNothingIsLeft() {
    // Waiting inserts follow as soon as there is room.
    for (bool waiting = true; waiting;) {
      waiting = false;
      for (const auto& table : service_->tables()) {
        table->Reset();
        waiting |= table->info().waiting_inserts > 0;
      }
    }
    for (const auto& table : service_->tables()) table->Reset();
    const memory::ArenaStats stats = service_->arena().stats();
    Require(stats.live_blocks == 0 && stats.used_bytes == 0,
            absl::StrCat(stats.live_blocks, " blocks are left in the arena"));
  }

  size_t used_bytes() { return service_->arena().stats().used_bytes; }

 private:
  absl::Status InsertStream(const std::vector<std::string>& messages) {
    service::InsertSession session(service_);
    const size_t before = used_bytes();
    size_t sent_bytes = 0;
    for (const std::string& message : messages) {
      sent_bytes += message.size();
      auto items = ReadInsertRequest(message, session);
      // Snappy makes at most 22 bytes of one; small blocks are rounded up.
      Require(used_bytes() <= before + 32 * sent_bytes + (size_t{1} << 16),
              "a message takes much more memory than it has bytes");
      if (!items.ok()) return items.status();
      for (auto& item : *items) item.insertion.done = [](absl::Status) {};
      session.AddItems(*std::move(items));
    }
    return absl::OkStatus();
  }

  absl::Status RunOne(const std::string& method, const std::string& message) {
    if (method == rpc::method::kSampleStream) {
      GR_ASSIGN_OR_RETURN(const rpc::SampleRequest request, rpc::DecodeSampleRequest(message));
      GR_ASSIGN_OR_RETURN(const auto table, service_->FindTable(request.table));
      if (request.num_samples <= 0) return base::InvalidArgument("num_samples");
      const absl::Time deadline = absl::Now() + request.timeout;
      Require(deadline > absl::UnixEpoch(), "a timeout in the past");
      const auto samples = table->Sample(request.num_samples, absl::InfinitePast());
      if (!samples.ok()) return samples.status();
      for (const table::SampledItem& sample : *samples) CheckSample(sample, request.table);
    } else if (method == rpc::method::kMutatePriorities) {
      GR_ASSIGN_OR_RETURN(const rpc::MutateRequest request, rpc::DecodeMutateRequest(message));
      return service_->MutatePriorities(request.table, request.updates, request.delete_keys);
    } else if (method == rpc::method::kReset) {
      GR_ASSIGN_OR_RETURN(const std::string table, rpc::DecodeResetRequest(message));
      return service_->Reset(table);
    }
    return absl::OkStatus();  // The other methods do not read their requests.
  }

  // What was let in has a size, can be gathered, and goes over the wire and back unchanged.
  static void CheckSample(const table::SampledItem& sample, const std::string& table) {
    const storage::Trajectory& trajectory = *sample.item.trajectory;
    for (const storage::TrajectoryColumn& column : trajectory.columns) {
      const storage::ColumnLayout layout = storage::LayoutOf(column);
      // A slice may be named over and over; what that takes is the reader's to bound.
      if (layout.bytes > (int64_t{16} << 20)) continue;
      std::vector<std::byte> exactly(layout.bytes);
      storage::Gather(column, exactly.data());
      if (layout.dtype == tensor::DType::kString) {
        const auto count = tensor::NumElements(layout.shape);
        Require(count.ok() && tensor::CheckPackedStrings(exactly, *count).ok(),
                "gathered strings are malformed");
      } else {
        const auto bytes = tensor::NumBytes(layout.dtype, layout.shape);
        Require(bytes.ok() && *bytes == layout.bytes, "a layout contradicts itself");
      }
    }
    for (const storage::ChunkPtr& chunk : trajectory.chunks()) {
      const auto compression = sample.item.times_sampled % 2 == 0 ? rpc::Compression::kLiteral
                                                                  : rpc::Compression::kSnappy;
      const auto back = rpc::DecodeChunk(rpc::EncodeChunk(chunk, compression).TakeString(),
                                         *memory::ProcessArena());
      Require(back.ok(),
              absl::StrCat("a stored chunk is not read again: ", back.status().message()));
      Require((*back)->bytes() == chunk->bytes(), "a stored chunk changes");
    }
    const auto info = rpc::DecodeSampleInfo(rpc::EncodeSampleInfo(sample, table).TakeString());
    Require(info.ok() && info->item.key == sample.item.key, "a stored item is not read again");
  }

  const std::shared_ptr<service::ReplayService> service_;
};

// What clients read, and what a checkpoint of another program may hold: only that it ends well.
inline void DecodeAll(absl::string_view bytes) {
  (void)rpc::DecodeSampleResponse(bytes);
  (void)rpc::DecodeSampleInfo(bytes);
  (void)rpc::DecodeInsertResponse(bytes);
  (void)rpc::DecodeServerInfo(bytes);
  (void)rpc::DecodeTableSignature(bytes);
  (void)rpc::DecodeSignature(bytes);
  (void)rpc::DecodeSelectorOptions(bytes);
  (void)rpc::DecodeItem(bytes);
  (void)rpc::DecodeChunk(bytes, *memory::ProcessArena());
}

}  // namespace gear_reverb::server::fuzz
