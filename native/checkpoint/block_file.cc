#include "native/checkpoint/block_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "native/base/status.h"

namespace gear_reverb::checkpoint {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
// What one system call is asked to do at most.
constexpr size_t kStepBytes = size_t{1} << 30;

uint32_t Crc(uint32_t crc, absl::string_view bytes) {
  while (!bytes.empty()) {
    const size_t step = std::min(bytes.size(), kStepBytes);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), step);
    bytes.remove_prefix(step);
  }
  return crc;
}

absl::Status SystemError(absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("Cannot ", what, " ", path));
}

}  // namespace

File::~File() { close(fd_); }

absl::StatusOr<std::unique_ptr<BlockWriter>> BlockWriter::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return SystemError("create", path);
  std::unique_ptr<BlockWriter> writer(new BlockWriter(path, fd));
  // Some network file systems have no locks: then leftovers of killed processes stay.
  (void)flock(fd, LOCK_EX | LOCK_NB);
  Encoder header;
  header.Put(kVersion);
  std::string bytes = absl::StrCat(kMagic, header.bytes());
  header.Clear();
  header.Put(Crc(0, bytes));
  GR_RETURN_IF_ERROR(writer->Append(bytes));
  GR_RETURN_IF_ERROR(writer->Append(header.bytes()));
  return writer;
}

absl::Status BlockWriter::Write(BlockType type, absl::Span<const absl::string_view> pieces) {
  uint64_t length = 0;
  uint32_t crc = 0;
  for (const absl::string_view piece : pieces) {
    length += piece.size();
    crc = Crc(crc, piece);
  }
  Encoder header;
  header.Put(static_cast<uint32_t>(type));
  header.Put(crc);
  header.Put(length);
  header.Put(blocks_++);
  header.Put(Crc(0, header.bytes()));
  GR_RETURN_IF_ERROR(Append(header.bytes()));
  for (const absl::string_view piece : pieces) GR_RETURN_IF_ERROR(Append(piece));
  return absl::OkStatus();
}

absl::Status BlockWriter::Append(absl::string_view bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) GR_RETURN_IF_ERROR(Flush());
  if (bytes.size() > kBufferBytes) return WriteOut(bytes);
  buffer_.append(bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status BlockWriter::Flush() {
  GR_RETURN_IF_ERROR(WriteOut(buffer_));
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status BlockWriter::WriteOut(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file_.fd(), bytes.data(), std::min(bytes.size(), kStepBytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("write", path_);
    bytes.remove_prefix(written);
  }
  return absl::OkStatus();
}

absl::Status BlockWriter::Sync() {
  GR_RETURN_IF_ERROR(Flush());
  if (fsync(file_.fd()) != 0) return SystemError("flush", path_);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BlockReader>> BlockReader::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return base::DataLoss(path, " is missing.");
  if (fd < 0) return SystemError("open", path);
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return base::DataLoss(path, " is not a file.");
  }
  std::unique_ptr<BlockReader> reader(new BlockReader(path, fd, info.st_size));
  char header[kFileHeaderBytes];
  GR_RETURN_IF_ERROR(reader->Read(header, sizeof(header)));
  Decoder decoder({header, sizeof(header)});
  if (decoder.Raw(kMagic.size()) != kMagic) return base::DataLoss(path, " is no checkpoint.");
  const auto version = decoder.Get<uint32_t>();
  if (decoder.Get<uint32_t>() != Crc(0, {header, sizeof(header) - sizeof(uint32_t)})) {
    return base::DataLoss(path, " has a damaged header.");
  }
  if (version != kVersion) {
    return absl::UnimplementedError(absl::StrCat(path, " has version ", version,
                                                 " of the checkpoint format; this program reads ",
                                                 "version ", kVersion, "."));
  }
  return reader;
}

absl::StatusOr<Block> BlockReader::Next() {
  block_offset_ = offset_;
  const uint32_t number = blocks_++;
  char header[kBlockHeaderBytes];
  GR_RETURN_IF_ERROR(Read(header, sizeof(header)));
  Decoder decoder({header, sizeof(header)});
  const auto type = decoder.Get<uint32_t>();
  const auto crc = decoder.Get<uint32_t>();
  const auto length = decoder.Get<uint64_t>();
  const auto stated_number = decoder.Get<uint32_t>();
  if (decoder.Get<uint32_t>() != Crc(0, {header, sizeof(header) - sizeof(uint32_t)})) {
    return Damage("its header does not match its CRC");
  }
  if (stated_number != number) return Damage("it is out of order");
  if (length > size_ - offset_) return Damage("the file ends within it");
  if (length > capacity_) {
    buffer_.reset();
    buffer_.reset(new (std::nothrow) char[length]);
    capacity_ = buffer_ == nullptr ? 0 : length;
    if (buffer_ == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("No memory for a block of ", length, " bytes of ", path_));
    }
  }
  GR_RETURN_IF_ERROR(Read(buffer_.get(), length));
  const absl::string_view payload(buffer_.get(), length);
  if (Crc(0, payload) != crc) return Damage("its payload does not match its CRC");
  return Block{static_cast<BlockType>(type), payload};
}

absl::Status BlockReader::Read(char* to, size_t size) {
  if (size > size_ - offset_) return Damage("the file ends within it");
  while (size > 0) {
    const ssize_t got = pread(file_.fd(), to, std::min(size, kStepBytes), offset_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("read", path_);
    if (got == 0) return Damage("the file ends within it");
    to += got;
    size -= got;
    offset_ += got;
  }
  return absl::OkStatus();
}

absl::Status BlockReader::Damage(absl::string_view reason) const {
  if (blocks_ == 0) return base::DataLoss(path_, ": the file header is damaged: ", reason, ".");
  return base::DataLoss(path_, ": block ", blocks_ - 1, " at byte ", block_offset_,
                        " is damaged: ", reason, ".");
}

}  // namespace gear_reverb::checkpoint
