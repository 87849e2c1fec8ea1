#include "native/shm/sealed_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "native/base/status.h"

namespace gear_reverb::shm {
namespace {

absl::Status Failed(const char* call) {
  return absl::ResourceExhaustedError(
      absl::StrCat("Cannot share memory: ", call, " failed: ", std::strerror(errno), "."));
}

}  // namespace

absl::StatusOr<UniqueFd> NewSealedMemory(const char* name, size_t bytes) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return Failed("memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return Failed("ftruncate");
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Failed("F_ADD_SEALS");
  }
  return fd;
}

absl::StatusOr<size_t> SealedBytes(int fd) {
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kNeeded) != kNeeded) {
    return base::InvalidArgument("Shared memory is not sealed against changes of its size.");
  }
  // An access to a huge page that cannot be had is a SIGBUS.
  struct statfs filesystem;
  if (fstatfs(fd, &filesystem) != 0 || filesystem.f_type != TMPFS_MAGIC) {
    return base::InvalidArgument("Shared memory is not of ordinary pages.");
  }
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size < 0) {
    return base::InvalidArgument("Shared memory has no size.");
  }
  return static_cast<size_t>(info.st_size);
}

absl::StatusOr<UniqueFd> OpenReadOnly(int fd) {
  const std::string path = absl::StrCat("/proc/self/fd/", fd);
  UniqueFd read_only(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!read_only.valid()) return Failed("opening read-only");
  return read_only;
}

}  // namespace gear_reverb::shm
