#include "native/server/shm_server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "native/base/status.h"
#include "native/server/shm_session.h"
#include "native/shm/sealed_memory.h"

namespace gear_reverb::server {
namespace {

// One can poll while another serves.
constexpr int kMinThreads = 2;
constexpr int kMaxThreads = 4;

// What an event is of; sessions have further numbers.
constexpr uint64_t kListener = 0;
constexpr uint64_t kWakeup = 1;

bool Watch(int epoll, int operation, int fd, uint64_t id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(epoll, operation, fd, &event) == 0;
}

// Whether this process can give memory away read-only.
absl::Status Probe() {
  GR_ASSIGN_OR_RETURN(const shm::UniqueFd memory, shm::NewSealedMemory("gear_reverb_probe", 4096));
  return shm::OpenReadOnly(memory.get()).status();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShmServer>> ShmServer::Start(
    std::shared_ptr<service::ReplayService> service) {
  GR_RETURN_IF_ERROR(Probe());
  std::string name = shm::Socket::RandomName();
  GR_ASSIGN_OR_RETURN(shm::Socket listener, shm::Socket::Listen(name));
  shm::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  shm::UniqueFd wakeup(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  shm::UniqueFd spare(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!epoll.valid() || !wakeup.valid() || !spare.valid() ||
      !Watch(epoll.get(), EPOLL_CTL_ADD, listener.fd(), kListener, EPOLLIN | EPOLLEXCLUSIVE) ||
      !Watch(epoll.get(), EPOLL_CTL_ADD, wakeup.get(), kWakeup, EPOLLIN)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Cannot serve shared memory: ", std::strerror(errno), "."));
  }
  return std::unique_ptr<ShmServer>(new ShmServer(std::move(service), std::move(name),
                                                  std::move(listener), std::move(epoll),
                                                  std::move(wakeup), std::move(spare)));
}

ShmServer::ShmServer(std::shared_ptr<service::ReplayService> service, std::string socket_name,
                     shm::Socket listener, shm::UniqueFd epoll, shm::UniqueFd wakeup,
                     shm::UniqueFd spare)
    : service_(std::move(service)),
      socket_name_(std::move(socket_name)),
      listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      wakeup_(std::move(wakeup)),
      num_threads_(std::clamp(static_cast<int>(std::thread::hardware_concurrency()), kMinThreads,
                              kMaxThreads)),
      spare_(std::move(spare)),
      last_session_(kWakeup) {
  for (int i = 0; i < num_threads_; ++i) threads_.emplace_back([this] { Work(); });
}

ShmServer::~ShmServer() { Stop(); }

void ShmServer::Stop() {
  if (stopping_.exchange(true)) return;
  listener_.Shutdown();
  eventfd_write(wakeup_.get(), 1);
  for (std::thread& thread : threads_) thread.join();
  AcceptAll();  // Those who came before the end and would wait for ever.
  absl::flat_hash_map<uint64_t, std::shared_ptr<ShmSession>> sessions;
  {
    base::MutexLock lock(&mutex_);
    sessions.swap(sessions_);
  }
  for (auto& [id, session] : sessions) {
    session->End(absl::UnavailableError("The server has been stopped."));
  }
}

void ShmServer::Work() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    epoll_event event;
    const int ready = epoll_wait(epoll_.get(), &event, 1, -1);
    if (ready <= 0) continue;  // A signal.
    if (event.data.u64 == kWakeup) return;
    if (event.data.u64 == kListener) {
      AcceptAll();
      continue;
    }
    std::shared_ptr<ShmSession> session;
    {
      base::MutexLock lock(&mutex_);
      const auto found = sessions_.find(event.data.u64);
      if (found != sessions_.end()) session = found->second;
    }
    if (session != nullptr) session->Run();
  }
}

void ShmServer::AcceptAll() {
  while (true) {
    absl::StatusOr<shm::Socket> socket = listener_.Accept();
    if (absl::IsNotFound(socket.status())) return;
    if (absl::IsResourceExhausted(socket.status())) return TurnAway();
    if (!socket.ok()) continue;  // A stranger: the connection is closed.
    base::MutexLock lock(&mutex_);
    const uint64_t id = ++last_session_;
    auto session = std::make_shared<ShmSession>(this, id, service_, *std::move(socket));
    if (!Watch(epoll_.get(), EPOLL_CTL_ADD, session->fd(), id,
               EPOLLIN | EPOLLRDHUP | EPOLLONESHOT)) {
      continue;
    }
    sessions_.emplace(id, std::move(session));
  }
}

void ShmServer::TurnAway() {
  base::MutexLock lock(&mutex_);
  spare_.reset();
  listener_.Accept().IgnoreError();  // And closes: the client takes another way.
  spare_ = shm::UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

void ShmServer::Arm(const ShmSession& session, bool when_writable, bool when_readable) {
  // A socket can nearly always be written to: asking for that is asking for a thread at once, but
  // behind the sessions that have waited for longer.
  uint32_t events = EPOLLRDHUP | EPOLLONESHOT;
  if (when_writable) events |= EPOLLOUT;
  if (when_readable) events |= EPOLLIN;
  Watch(epoll_.get(), EPOLL_CTL_MOD, session.fd(), session.id(), events);
}

void ShmServer::Remove(uint64_t session) {
  std::shared_ptr<ShmSession> removed;  // Destroyed without the lock.
  base::MutexLock lock(&mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  removed = std::move(found->second);
  sessions_.erase(found);
}

bool ShmServer::MayPoll() {
  if (polling_.fetch_add(1, std::memory_order_relaxed) + 1 < num_threads_) return true;
  EndPolling();
  return false;
}

}  // namespace gear_reverb::server
