#include "native/service/local_services.h"

#include <pthread.h>

#include "absl/container/flat_hash_map.h"
#include "native/base/mutex.h"
#include "native/service/replay_service.h"

namespace gear_reverb::service {
namespace {

struct Registry {
  base::Mutex mutex;
  absl::flat_hash_map<std::string, std::weak_ptr<ReplayService>> services ABSL_GUARDED_BY(mutex);
  uint64_t seen ABSL_GUARDED_BY(mutex) = 0;
};

Registry* registry = nullptr;

Registry& GetRegistry() {
  // A forked child has the parent's services in its memory but none of their threads: it starts
  // with a registry of its own (the old one may have been locked at the fork; it is abandoned).
  static const bool ready = [] {
    registry = new Registry;
    pthread_atfork(nullptr, nullptr, [] { registry = new Registry; });
    return true;
  }();
  (void)ready;
  return *registry;
}

}  // namespace

void RegisterLocalService(const std::shared_ptr<ReplayService>& service) {
  Registry& local = GetRegistry();
  base::MutexLock lock(&local.mutex);
  local.services[service->token()] = service;
  ++local.seen;
}

void UnregisterLocalService(const std::string& token) {
  Registry& local = GetRegistry();
  base::MutexLock lock(&local.mutex);
  local.services.erase(token);
}

uint64_t LocalServicesSeen() {
  Registry& local = GetRegistry();
  base::MutexLock lock(&local.mutex);
  return local.seen;
}

std::shared_ptr<ReplayService> FindLocalService(const std::string& token) {
  Registry& local = GetRegistry();
  base::MutexLock lock(&local.mutex);
  const auto found = local.services.find(token);
  if (found == local.services.end()) return nullptr;
  std::shared_ptr<ReplayService> service = found->second.lock();
  return service != nullptr && !service->stopped() ? service : nullptr;
}

}  // namespace gear_reverb::service
