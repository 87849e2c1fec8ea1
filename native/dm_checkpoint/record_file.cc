#include "native/dm_checkpoint/record_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "native/base/status.h"
#include "native/checkpoint/block_file.h"
#include "native/dm_checkpoint/crc32c.h"

namespace gear_reverb::dm_checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "The format is little-endian.");

constexpr size_t kStepBytes = size_t{1} << 20;
constexpr size_t kLengthBytes = 8, kCrcBytes = 4, kHeaderBytes = kLengthBytes + kCrcBytes;

template <typename Number>
absl::string_view AsBytes(const Number& number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

bool HasCrc(absl::string_view bytes, const char* stored) {
  const uint32_t crc = MaskedCrc32c(bytes);
  return std::memcmp(&crc, stored, sizeof(crc)) == 0;
}

absl::Status SystemError(absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("Cannot ", what, " ", path));
}

Bytef* ToZlib(const char* bytes) { return reinterpret_cast<Bytef*>(const_cast<char*>(bytes)); }

}  // namespace

// ---- writing ----

class RecordWriter::Impl {
 public:
  Impl(std::string path, int fd) : path_(std::move(path)), file_(fd) {
    deflateInit(&stream_, Z_BEST_SPEED);  // The bytes of chunks are compressed already.
  }
  ~Impl() { deflateEnd(&stream_); }

  absl::Status Write(absl::string_view bytes, int flush) {
    do {
      const size_t step = std::min(bytes.size(), kStepBytes);
      stream_.next_in = ToZlib(bytes.data());
      stream_.avail_in = step;
      bytes.remove_prefix(step);
      do {
        stream_.next_out = ToZlib(out_.data());
        stream_.avail_out = out_.size();
        if (deflate(&stream_, bytes.empty() ? flush : Z_NO_FLUSH) == Z_STREAM_ERROR) {
          return base::Internal("zlib cannot compress ", path_);
        }
        GR_RETURN_IF_ERROR(WriteOut({out_.data(), out_.size() - stream_.avail_out}));
      } while (stream_.avail_out == 0);
    } while (!bytes.empty());
    return absl::OkStatus();
  }

  absl::Status Sync() {
    return fsync(file_.fd()) == 0 ? absl::OkStatus() : SystemError("flush", path_);
  }

 private:
  absl::Status WriteOut(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(file_.fd(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return SystemError("write", path_);
      bytes.remove_prefix(written);
    }
    return absl::OkStatus();
  }

  const std::string path_;
  const checkpoint::File file_;
  z_stream stream_ = {};
  std::string out_ = std::string(kStepBytes, '\0');
};

RecordWriter::RecordWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RecordWriter::~RecordWriter() = default;

absl::StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return SystemError("create", path);
  return std::unique_ptr<RecordWriter>(new RecordWriter(std::make_unique<Impl>(path, fd)));
}

absl::Status RecordWriter::Write(absl::string_view record) {
  const uint64_t length = record.size();
  std::string header(AsBytes(length));
  const uint32_t length_crc = MaskedCrc32c(header), record_crc = MaskedCrc32c(record);
  absl::StrAppend(&header, AsBytes(length_crc));
  GR_RETURN_IF_ERROR(impl_->Write(header, Z_NO_FLUSH));
  GR_RETURN_IF_ERROR(impl_->Write(record, Z_NO_FLUSH));
  return impl_->Write(AsBytes(record_crc), Z_NO_FLUSH);
}

absl::Status RecordWriter::Finish() {
  GR_RETURN_IF_ERROR(impl_->Write({}, Z_FINISH));
  return impl_->Sync();
}

// ---- reading ----

class RecordReader::Impl {
 public:
  Impl(std::string path, int fd) : path_(std::move(path)), file_(fd) {}
  ~Impl() {
    if (compressed_) inflateEnd(&stream_);
  }

  // Reads the beginning and finds out which kind of file it is.
  absl::Status Start() {
    GR_RETURN_IF_ERROR(ReadRaw());
    compressed_ = !in_.empty() && !(in_.size() >= kHeaderBytes &&
                                    HasCrc({in_.data(), kLengthBytes}, in_.data() + kLengthBytes));
    if (!compressed_) {
      data_.swap(in_);
      return absl::OkStatus();
    }
    constexpr int kZlibOrGzip = MAX_WBITS + 32;
    if (inflateInit2(&stream_, kZlibOrGzip) != Z_OK) return base::Internal("zlib does not start.");
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<absl::string_view>> Next() {
    begin_ += record_bytes_;
    offset_ += record_bytes_;
    record_bytes_ = 0;
    ++records_;
    GR_RETURN_IF_ERROR(Have(1));
    if (data().empty()) return std::nullopt;
    GR_RETURN_IF_ERROR(Have(kHeaderBytes));
    if (data().size() < kHeaderBytes) return Damage("the file ends within its header");
    if (!HasCrc(data().substr(0, kLengthBytes), data().data() + kLengthBytes)) {
      return Damage("its length does not match its CRC");
    }
    uint64_t length;
    std::memcpy(&length, data().data(), sizeof(length));
    const uint64_t limit = data_.max_size() / 2;
    if (length <= limit) GR_RETURN_IF_ERROR(Have(kHeaderBytes + length + kCrcBytes));
    if (length > limit || data().size() < kHeaderBytes + length + kCrcBytes) {
      return Damage("the file ends within it");
    }
    const absl::string_view record = data().substr(kHeaderBytes, length);
    if (!HasCrc(record, record.data() + length)) return Damage("it does not match its CRC");
    record_bytes_ = kHeaderBytes + length + kCrcBytes;
    return record;
  }

  absl::Status Damage(absl::string_view reason) const {
    return base::DataLoss(path_, ": record ", records_ - 1, " at byte ", offset_,
                          compressed_ ? " of the uncompressed contents" : "",
                          " is damaged: ", reason, ".");
  }

 private:
  absl::string_view data() const { return absl::string_view(data_).substr(begin_); }

  // Until `data` has so many bytes or all that are left.
  absl::Status Have(size_t bytes) {
    if (data().size() < bytes) {
      data_.erase(0, begin_);
      begin_ = 0;
    }
    while (data_.size() - begin_ < bytes && !(at_end_ && in_.empty())) {
      if (!compressed_) {
        GR_RETURN_IF_ERROR(ReadRaw());
        data_.append(in_);
        in_.clear();
      } else {
        GR_RETURN_IF_ERROR(Inflate());
      }
    }
    return absl::OkStatus();
  }

  absl::Status Inflate() {
    if (in_.empty()) GR_RETURN_IF_ERROR(ReadRaw());
    if (in_.empty()) {
      return stream_over_ ? absl::OkStatus()
                          : Damage("the file ends within its compressed contents");
    }
    if (stream_over_) return Damage("something follows the compressed contents");
    const size_t before = data_.size();
    data_.resize(before + kStepBytes);
    stream_.next_in = ToZlib(in_.data());
    stream_.avail_in = in_.size();
    stream_.next_out = ToZlib(data_.data() + before);
    stream_.avail_out = kStepBytes;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    data_.resize(data_.size() - stream_.avail_out);
    in_.erase(0, in_.size() - stream_.avail_in);
    stream_over_ = result == Z_STREAM_END;
    if (result == Z_OK || result == Z_STREAM_END) return absl::OkStatus();
    return Damage(absl::StrCat("the compressed contents are wrong (",
                               stream_.msg == nullptr ? "zlib" : stream_.msg, ")"));
  }

  // Some more of the file into `in_`, which is empty.
  absl::Status ReadRaw() {
    in_.resize(kStepBytes);
    ssize_t got;
    do {
      got = read(file_.fd(), in_.data(), in_.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) return SystemError("read", path_);
    in_.resize(got);
    at_end_ = got == 0;
    return absl::OkStatus();
  }

  const std::string path_;
  const checkpoint::File file_;
  bool compressed_ = false;
  z_stream stream_ = {};
  bool stream_over_ = false, at_end_ = false;
  std::string in_;    // Read and not yet inflated.
  std::string data_;  // Contents; from `begin_` on those that are still to be read.
  size_t begin_ = 0;
  uint64_t offset_ = 0, records_ = 0;  // `offset_` is that of `begin_` in the contents.
  size_t record_bytes_ = 0;            // Of the record that was given last.
};

RecordReader::RecordReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RecordReader::~RecordReader() = default;

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return base::DataLoss(path, " is missing.");
  if (fd < 0) return SystemError("open", path);
  auto impl = std::make_unique<Impl>(path, fd);
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return base::DataLoss(path, " is no file.");
  GR_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<RecordReader>(new RecordReader(std::move(impl)));
}

absl::StatusOr<std::optional<absl::string_view>> RecordReader::Next() { return impl_->Next(); }
absl::Status RecordReader::Damage(absl::string_view reason) const { return impl_->Damage(reason); }

}  // namespace gear_reverb::dm_checkpoint
