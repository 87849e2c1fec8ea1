#include "native/bindings/block_source.h"

#include <algorithm>
#include <utility>

#include "native/base/status.h"

namespace gear_reverb::bindings {
namespace {

// How long to wait for more once there is an item: about what a round trip takes, and little
// against what a call from Python costs.
constexpr absl::Duration kLinger = absl::Microseconds(300);

absl::Span<const int64_t> StepShape(const storage::TrajectoryColumn& column) {
  return absl::MakeConstSpan(column.slices[0].source().shape).subspan(1);
}

size_t BytesOf(const storage::Trajectory& trajectory) {
  size_t bytes = 0;
  for (const storage::TrajectoryColumn& column : trajectory.columns) {
    bytes += storage::LayoutOf(column).bytes;
  }
  return bytes;
}

}  // namespace

Difference Compare(const storage::Trajectory& a, const storage::Trajectory& b, bool timesteps) {
  if (a.columns.size() != b.columns.size()) return {Difference::Kind::kColumns, 0};
  for (size_t i = 0; i < a.columns.size(); ++i) {
    const storage::TrajectoryColumn& x = a.columns[i];
    const storage::TrajectoryColumn& y = b.columns[i];
    if (x.slices[0].source().dtype != y.slices[0].source().dtype) {
      return {Difference::Kind::kDtype, i};
    }
    const bool same_length = timesteps || (x.squeeze == y.squeeze && x.length() == y.length());
    if (!same_length || StepShape(x) != StepShape(y)) return {Difference::Kind::kShape, i};
  }
  return {};
}

absl::StatusOr<std::unique_ptr<BlockSource>> BlockSource::Create(
    std::shared_ptr<client::Client> client, BlockSourceOptions options) {
  std::unique_ptr<BlockSource> source(new BlockSource(std::move(client), std::move(options)));
  base::MutexLock lock(&source->mutex_);
  GR_RETURN_IF_ERROR(source->OpenSampler());
  return source;
}

absl::Status BlockSource::OpenSampler() {
  client::SamplerOptions options = options_.sampler;
  if (options.max_samples >= 0) options.max_samples -= drawn_;
  if (options_.max_samples_per_stream >= 0) {
    options.max_samples = options.max_samples < 0
                              ? options_.max_samples_per_stream
                              : std::min(options.max_samples, options_.max_samples_per_stream);
  }
  sampler_ = nullptr;
  GR_ASSIGN_OR_RETURN(
      sampler_,
      client::Sampler::Create([client = client_] { return client->GetConnection(); }, options));
  return absl::OkStatus();
}

absl::StatusOr<bool> BlockSource::CollectOne(absl::Time deadline) {
  while (true) {
    auto sample = sampler_->Next(deadline);
    if (absl::IsDeadlineExceeded(sample.status())) {
      finished_ = sampler_->rate_limiter_timed_out();
      return false;
    }
    if (!sample.ok()) return sample.status();
    if (sample->has_value()) {
      if ((*sample)->item.trajectory == nullptr) {
        return base::InvalidArgument("Item ", (*sample)->item.key, " has no data.");
      }
      pending_.push_back(**std::move(sample));
      ++drawn_;
      return true;
    }
    if (drawn_ == options_.sampler.max_samples) {
      finished_ = true;
      return false;
    }
    GR_RETURN_IF_ERROR(OpenSampler());
  }
}

absl::Status BlockSource::Collect(const BlockRequest& request) {
  absl::Time deadline = absl::Now() + request.wait;
  bool lingering = false;
  const auto room = [&] {
    return !finished_ && !closed_ && pending_.size() < static_cast<size_t>(request.items);
  };
  while (room()) {
    if (!lingering && !request.whole && !pending_.empty()) {
      lingering = true;
      deadline = std::min(deadline, absl::Now() + kLinger);
    }
    GR_ASSIGN_OR_RETURN(const bool came, CollectOne(deadline));
    if (!came) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::vector<table::SampledItem>>> BlockSource::Next(
    const BlockRequest& request, bool timesteps) {
  base::MutexLock lock(&mutex_);
  if (closed_) return std::nullopt;
  if (error_.ok() && !finished_) error_ = Collect(request);
  if (closed_) return std::nullopt;
  const bool over = finished_ || !error_.ok();
  if (pending_.empty() && over) {
    if (error_.ok()) return std::nullopt;
    return std::exchange(error_, absl::OkStatus());
  }

  std::vector<table::SampledItem> block;
  if (request.whole) {
    if (pending_.size() < static_cast<size_t>(request.items) && !over) return block;
    const size_t count = std::min<size_t>(request.items, pending_.size());
    block.assign(std::make_move_iterator(pending_.begin()),
                 std::make_move_iterator(pending_.begin() + count));
    pending_.erase(pending_.begin(), pending_.begin() + count);
    return block;
  }
  size_t bytes = 0;
  while (!pending_.empty() && block.size() < static_cast<size_t>(request.items)) {
    const storage::Trajectory& next = *pending_.front().item.trajectory;
    if (!block.empty()) {
      if (bytes >= request.max_bytes) break;
      const Difference difference = Compare(*block[0].item.trajectory, next, timesteps);
      if (difference.kind != Difference::Kind::kNone) break;
    }
    bytes += BytesOf(next);
    block.push_back(std::move(pending_.front()));
    pending_.pop_front();
  }
  return block;
}

void BlockSource::Close() {
  closed_ = true;
  base::MutexLock lock(&mutex_);
  sampler_ = nullptr;
  pending_.clear();
}

}  // namespace gear_reverb::bindings
