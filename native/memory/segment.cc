#include "native/memory/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "native/memory/poison.h"

namespace gear_reverb::memory {
namespace {

// A multiple of every page size in use (4, 16 and 64 KiB).
constexpr size_t kMapGranule = size_t{64} << 10;
constexpr size_t kHugePageBytes = size_t{2} << 20;

absl::Status Refused(const char* call, size_t bytes) {
  return absl::ResourceExhaustedError(absl::StrCat("Cannot map ", bytes, " bytes of memory: ", call,
                                                   " failed: ", std::strerror(errno), "."));
}

// Calls visit(word, mask) for each word that holds bits of [first, first + count).
template <typename Visit>
void ForEachWord(size_t first, size_t count, Visit visit) {
  const size_t end = first + count;
  while (first < end) {
    const size_t bit = first % 64;
    const size_t bits = std::min<size_t>(64 - bit, end - first);
    const uint64_t mask = (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1) << bit;
    visit(first / 64, mask);
    first += bits;
  }
}

template <typename T>
T* Calloc(size_t count) {
  void* memory = std::calloc(count, sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<T*>(memory);
}

}  // namespace

void Segment::FreeDeleter::operator()(void* memory) const { std::free(memory); }

absl::StatusOr<std::unique_ptr<Segment>> Segment::Map(uint32_t id, size_t bytes, bool shareable,
                                                      int node) {
  if (bytes > SIZE_MAX / 2) {
    errno = ENOMEM;
    return Refused("mmap", bytes);
  }
  bytes = (bytes + kMapGranule - 1) / kMapGranule * kMapGranule;
  int fd = -1;
  if (shareable) {
    fd = memfd_create("gear_reverb_arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return Refused("memfd_create", bytes);
    // The seals let a process that maps the segment trust its size. There is none against writing:
    // pages could then not be given back.
    if (ftruncate(fd, static_cast<off_t>(bytes)) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      const absl::Status status = Refused("ftruncate", bytes);
      close(fd);
      return status;
    }
  }
  const int flags = MAP_NORESERVE | (shareable ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (base == MAP_FAILED) {
    const absl::Status status = Refused("mmap", bytes);
    if (fd >= 0) close(fd);
    return status;
  }
  PlaceOnNode(base, bytes, node);
  // The very first memory of an arena stays on small pages: a server with little data then costs
  // little memory and no time to clear a huge page.
  const size_t small_bytes = id == 0 ? kHugePageBytes : 0;
  if (bytes >= small_bytes + kHugePageBytes) {
    // Advice: without huge pages the segment works as well.
    (void)madvise(static_cast<char*>(base) + small_bytes, bytes - small_bytes, MADV_HUGEPAGE);
  }
  try {
    return std::unique_ptr<Segment>(new Segment(id, fd, static_cast<std::byte*>(base), bytes));
  } catch (const std::bad_alloc&) {  // What is known of its pages is large, too.
    errno = ENOMEM;
    const absl::Status status = Refused("calloc", bytes);
    munmap(base, bytes);
    if (fd >= 0) close(fd);
    return status;
  }
}

Segment::Segment(uint32_t id, int fd, std::byte* base, size_t bytes)
    : id_(id),
      fd_(fd),
      base_(base),
      bytes_(bytes),
      boundaries_(Calloc<PageRun*>(pages())),
      touched_(Calloc<uint64_t>(pages() / 64 + 1)) {
  SetBoundaries(new PageRun(this, 0, pages()));
}

Segment::~Segment() {
  for (size_t page = 0; page < pages();) {
    PageRun* run = run_at(page);
    page += run->pages;
    delete run;
  }
  // The addresses may come back as another mapping.
  Unpoison(base_, bytes_);
  munmap(base_, bytes_);
  if (fd_ >= 0) close(fd_);
}

bool Segment::Release(size_t first_page, size_t pages) {
  static const size_t system_page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t begin = (first_page * kPageBytes + system_page - 1) / system_page * system_page;
  const size_t end = (first_page + pages) * kPageBytes / system_page * system_page;
  if (begin >= end) return true;
  return madvise(base_ + begin, end - begin, fd_ >= 0 ? MADV_REMOVE : MADV_DONTNEED) == 0;
}

size_t Segment::WriteToFile(size_t offset, absl::Span<const std::byte> bytes) {
  size_t written = 0;
  while (fd_ >= 0 && written < bytes.size()) {
    const ssize_t n = pwrite(fd_, bytes.data() + written, bytes.size() - written,
                             static_cast<off_t>(offset + written));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  return written;
}

void Segment::SetBoundaries(PageRun* run) {
  boundaries_[run->first_page] = run;
  boundaries_[run->first_page + run->pages - 1] = run;
}

size_t Segment::CountTouched(size_t first_page, size_t pages) const {
  size_t count = 0;
  ForEachWord(first_page, pages,
              [&](size_t word, uint64_t mask) { count += std::popcount(touched_[word] & mask); });
  return count;
}

void Segment::MarkTouched(size_t first_page, size_t pages, bool touched) {
  ForEachWord(first_page, pages, [&](size_t word, uint64_t mask) {
    touched_[word] = touched ? touched_[word] | mask : touched_[word] & ~mask;
  });
}

}  // namespace gear_reverb::memory
