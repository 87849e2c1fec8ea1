#include "native/client/resident_batches.h"

#include <random>
#include <utility>

#include "native/base/log.h"
#include "native/base/status.h"

namespace gear_reverb::client {
namespace {

uint64_t RandomSeed() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

absl::Status CheckBytes(const device::DrawnArrays& arrays, int64_t size, size_t max_bytes) {
  if (arrays.column_bytes <= max_bytes) return absl::OkStatus();
  return base::InvalidArgument("A batch of ", size, " items needs ", arrays.column_bytes,
                               " bytes, which is more than max_bytes (", max_bytes, ").");
}

absl::StatusOr<std::unique_ptr<device::ResidentTable>> OpenTable(
    const service::ReplayService& service, const ResidentOptions& options,
    std::shared_ptr<device::DrawBackend> backend, bool in_place) {
  GR_ASSIGN_OR_RETURN(auto table, service.FindTable(options.table));
  auto tier = options.device->TierOf(table);
  backend->AddSource(service.shared_arena(), tier.get());
  return device::ResidentTable::Create(std::move(table), std::move(backend),
                                       {options.seed.has_value() ? *options.seed : RandomSeed(),
                                        in_place, std::move(tier), options.padding});
}

// Of a choice that not every table and number allows.
absl::Status CheckChoice(device::ResidentTable& table, device::Choice choice, int64_t size) {
  if (choice != device::Choice::kTopK) return absl::OkStatus();
  if (size > device::kMaxTop) {
    return base::InvalidArgument("batch_size (", size, ") must be at most ", device::kMaxTop,
                                 " for draw='top_k'.");
  }
  return table.selection().CheckTop(static_cast<uint32_t>(size));
}

absl::Status ClosedFixed() {
  return absl::FailedPreconditionError("The batch sampler has been closed.");
}

}  // namespace

absl::StatusOr<std::shared_ptr<service::ReplayService>> LocalServiceFor(
    const std::shared_ptr<Connection>& connection, const std::string& option) {
  if (auto service = connection->local_service()) return service;
  return base::InvalidArgument(option,
                               " needs a server in this process, and this one is reached over the ",
                               connection->data_plane(), " data plane.");
}

absl::StatusOr<std::unique_ptr<ResidentBatches>> ResidentBatches::Create(
    std::shared_ptr<service::ReplayService> service, const ResidentOptions& options,
    size_t kept_buffers) {
  std::unique_ptr<ResidentBatches> made(new ResidentBatches);
  made->device_ = options.device;
  made->casts_ = options.casts;
  made->choice_ = options.choice;
  GR_ASSIGN_OR_RETURN(made->gathers_, options.device->NewStream(kept_buffers));
  GR_ASSIGN_OR_RETURN(made->backend_, options.device->NewDrawBackend(made->gathers_->stream()));
  GR_ASSIGN_OR_RETURN(made->table_, OpenTable(*service, options, made->backend_, false));
  made->service_ = std::move(service);
  return made;
}

absl::StatusOr<BatchPtr> ResidentBatches::Next(const BatchRequest& request, absl::Time deadline) {
  absl::StatusOr<BatchPtr> batch = Draw(request, deadline);
  if (!batch.ok()) return service_->Explain(batch.status());
  return batch;
}

absl::StatusOr<BatchPtr> ResidentBatches::Draw(const BatchRequest& request, absl::Time deadline) {
  const auto n = static_cast<uint32_t>(request.size);
  const device::Stream stream = gathers_->stream();
  GR_RETURN_IF_ERROR(CheckChoice(*table_, choice_, request.size));
  const absl::Status prepared = table_->Prepare(n, deadline, stream);
  if (absl::IsResourceExhausted(prepared)) no_memory_ = std::string(prepared.message());
  GR_RETURN_IF_ERROR(prepared);
  const device::SlotDirectory& directory = table_->directory();
  if (plan_ == nullptr || plan_->version() != directory.version() || plan_->size() != n) {
    GR_RETURN_IF_ERROR(
        CheckBytes(device::DrawPlan::ArraysOf(directory, n, casts_, false), n, request.max_bytes));
    GR_ASSIGN_OR_RETURN(plan_,
                        device::DrawPlan::Create(directory, n, casts_, false, stream, choice_));
  }
  const device::DrawnArrays& arrays = plan_->arrays();
  auto batch = std::make_unique<Batch>();
  OnDevice made;
  const uint64_t source_bytes = n * directory.mean_item_bytes();
  GR_ASSIGN_OR_RETURN(made.output, gathers_->Write(arrays.output_bytes, source_bytes, nullptr,
                                                   [&](std::byte* output) -> absl::Status {
                                                     GR_RETURN_IF_ERROR(plan_->Enqueue(
                                                         table_->selection(), 0, output, stream));
                                                     return table_->Collect(*plan_, output, stream);
                                                   }));
  made.columns = arrays.columns;
  made.sides = arrays.sides;
  made.lengths_agree = arrays.lengths_agree;
  made.gpu = device_->gpu();
  made.draws = OnDevice::Draws{arrays.keys,  arrays.probabilities, arrays.priorities,
                               request.size, table_->table_size(), backend_};
  for (const device::OutputArray& column : arrays.columns) {
    batch->layout.columns.push_back({column.dtype, column.shape});
  }
  batch->on_device = std::move(made);
  return batch;
}

absl::StatusOr<std::unique_ptr<FixedBatches>> FixedBatches::Create(
    std::shared_ptr<service::ReplayService> service, const Options& options) {
  if (options.size < 1 || options.size > UINT32_MAX) {
    return base::InvalidArgument("batch_size (", options.size, ") must be in [1, 2**32).");
  }
  std::unique_ptr<FixedBatches> made(new FixedBatches(options));
  std::optional<uint64_t>& seed = made->options_.table.seed;
  if (!seed.has_value()) seed = RandomSeed();
  made->device_ = options.table.device;
  GR_ASSIGN_OR_RETURN(made->backend_, made->device_->NewDrawBackend(nullptr));
  GR_ASSIGN_OR_RETURN(made->gathers_, made->device_->NewStream(/*kept=*/1));
  GR_ASSIGN_OR_RETURN(made->table_,
                      OpenTable(*service, made->options_.table, made->backend_, true));
  GR_RETURN_IF_ERROR(CheckChoice(*made->table_, options.table.choice, options.size));
  made->service_ = std::move(service);
  return made;
}

FixedBatches::~FixedBatches() {
  if (table_ != nullptr) Close();  // Else it is closed, or Create failed.
}

void FixedBatches::Close() {
  if (closed_.exchange(true)) return;
  table_->Cancel();
  base::MutexLock lock(&mutex_);
  base::WarnIfError(backend_->Synchronize());
  if (prepared_) base::WarnIfError(table_->Collect(*plan_, output_->data(), nullptr));
  plan_ = nullptr;  // Before the directory that it is of.
  table_ = nullptr;
}

absl::Status FixedBatches::MakePlan(device::Stream stream) {
  const auto size = static_cast<uint32_t>(options_.size);
  const device::SlotDirectory& directory = table_->directory();
  const device::Casts& casts = options_.table.casts;
  const bool weights = options_.beta.has_value();
  GR_RETURN_IF_ERROR(CheckBytes(device::DrawPlan::ArraysOf(directory, size, casts, weights), size,
                                options_.max_bytes));
  GR_ASSIGN_OR_RETURN(plan_, device::DrawPlan::Create(directory, size, casts, weights, stream,
                                                      options_.table.choice));
  const uint64_t bytes = plan_->arrays().output_bytes;
  GR_ASSIGN_OR_RETURN(auto output, gathers_->Write(bytes, 0, nullptr, [&](std::byte* memory) {
    return backend_->select()->Fill(memory, 0, bytes, gathers_->stream());
  }));
  GR_RETURN_IF_ERROR(output->Wait());
  // Kernels are loaded when they are first launched, which must not be in a capture.
  device::Selection& selection = table_->selection();
  GR_RETURN_IF_ERROR(plan_->Enqueue(selection, options_.beta.value_or(0), output->data(), stream));
  GR_RETURN_IF_ERROR(selection.Seed(*options_.table.seed, 0, stream));
  arrays_ = plan_->arrays();
  output_ = std::move(output);
  return absl::OkStatus();
}

absl::Status FixedBatches::CheckDrawable() const {
  if (!table_->why_not().empty()) {
    return base::FailedPrecondition("Table ", options_.table.table,
                                    " cannot be drawn from by the device: ", table_->why_not(),
                                    ".");
  }
  if (output_ == nullptr || plan_->version() == table_->directory().version()) {
    return absl::OkStatus();
  }
  return base::FailedPrecondition(
      "The items of table ", options_.table.table,
      " are no longer as they were: they have other shapes, are longer (pad_to may leave room), "
      "have more pieces than there was room for, or more slots. Make another sampler, and "
      "capture its batches anew.");
}

absl::Status FixedBatches::Prepare(absl::Time deadline, device::Stream stream) {
  base::MutexLock lock(&mutex_);
  if (table_ == nullptr) return ClosedFixed();
  if (std::exchange(prepared_, false)) {
    GR_RETURN_IF_ERROR(table_->Collect(*plan_, output_->data(), stream));
  }
  const absl::Status status =
      table_->Prepare(static_cast<uint32_t>(options_.size), deadline, stream);
  GR_RETURN_IF_ERROR(CheckDrawable());
  if (!status.ok()) return service_->Explain(status);
  if (options_.table.choice == device::Choice::kTopK && table_->table_size() < options_.size) {
    return base::FailedPrecondition("Cannot give the first ", options_.size, " of ",
                                    table_->table_size(), " items.");
  }
  if (output_ == nullptr) {
    GR_RETURN_IF_ERROR(MakePlan(stream));
  }
  prepared_ = true;
  return absl::OkStatus();
}

absl::Status FixedBatches::Enqueue(device::Stream stream) {
  base::MutexLock lock(&mutex_);
  if (table_ == nullptr) return ClosedFixed();
  if (output_ == nullptr) {
    return base::FailedPrecondition("prepare() must have been called once before.");
  }
  GR_RETURN_IF_ERROR(CheckDrawable());
  return plan_->Enqueue(table_->selection(), options_.beta.value_or(0), output_->data(), stream);
}

std::shared_ptr<device::Output> FixedBatches::output() {
  base::MutexLock lock(&mutex_);
  return output_;
}

int64_t FixedBatches::table_size() {
  base::MutexLock lock(&mutex_);
  return table_ == nullptr ? 0 : table_->table_size();
}

}  // namespace gear_reverb::client
