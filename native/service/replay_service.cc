#include "native/service/replay_service.h"

#include "native/base/philox.h"
#include "native/base/status.h"
#include "native/memory/numa.h"
#include "native/service/local_services.h"

namespace gear_reverb::service {
namespace {

std::string RandomToken() {
  std::string token;
  for (int i = 0; i < 2; ++i) {
    const uint64_t bits = base::RandomUint64();
    token.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
  }
  return token;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ReplayService>> ReplayService::Create(
    std::vector<std::shared_ptr<table::Table>> tables,
    std::shared_ptr<checkpoint::Checkpointer> checkpointer) {
  std::shared_ptr<ReplayService> service(
      new ReplayService(std::move(tables), std::move(checkpointer)));
  if (service->table_by_name_.size() != service->tables_.size()) {
    return base::InvalidArgument("Two tables have the same name.");
  }
  for (const auto& table : service->tables_) table->Reopen();  // Another server may have had it.
  if (service->checkpointer_ != nullptr) {
    const absl::Status loaded =
        service->checkpointer_->LoadLatest(service->tables_, *service->arena_);
    if (!loaded.ok() && !absl::IsNotFound(loaded)) return loaded;
  }
  RegisterLocalService(service);
  return service;
}

ReplayService::ReplayService(std::vector<std::shared_ptr<table::Table>> tables,
                             std::shared_ptr<checkpoint::Checkpointer> checkpointer)
    : arena_(memory::Arena::Create({})),
      tables_(std::move(tables)),
      checkpointer_(std::move(checkpointer)),
      token_(RandomToken()),
      tables_state_id_(base::RandomUint64(), base::RandomUint64()) {
  arena_->PreferNode(memory::Topology().NodeOfEnvironment());
  for (const auto& table : tables_) table_by_name_.emplace(table->name(), table);
}

ReplayService::~ReplayService() { UnregisterLocalService(token_); }

absl::StatusOr<std::shared_ptr<table::Table>> ReplayService::FindTable(
    const std::string& name) const {
  const auto found = table_by_name_.find(name);
  if (found == table_by_name_.end()) {
    return base::NotFound("Priority table ", name, " was not found");
  }
  return found->second;
}

absl::Status ReplayService::MutatePriorities(const std::string& table,
                                             absl::Span<const table::KeyWithPriority> updates,
                                             absl::Span<const uint64_t> delete_keys) {
  GR_ASSIGN_OR_RETURN(const auto found, FindTable(table));
  return Explain(found->MutateItems(updates, delete_keys));
}

absl::Status ReplayService::Reset(const std::string& table) {
  GR_ASSIGN_OR_RETURN(const auto found, FindTable(table));
  found->Reset();
  return absl::OkStatus();
}

absl::Status ReplayService::ReportUnused(const std::string& table, int64_t n) {
  GR_ASSIGN_OR_RETURN(const auto found, FindTable(table));
  found->CountUnused(n);
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReplayService::Checkpoint() {
  if (checkpointer_ == nullptr) {
    return base::InvalidArgument("no Checkpointer configured for the replay service.");
  }
  base::MutexLock lock(&checkpoint_mutex_);
  return checkpointer_->Save(tables_);
}

void ReplayService::Stop() {
  if (stopped_.exchange(true, std::memory_order_acq_rel)) return;
  UnregisterLocalService(token_);
  for (const auto& table : tables_) table->Close();
}

absl::Status ReplayService::Explain(absl::Status status) const {
  if (stopped() && absl::IsCancelled(status)) {
    return absl::UnavailableError("The server has been stopped.");
  }
  return status;
}

}  // namespace gear_reverb::service
