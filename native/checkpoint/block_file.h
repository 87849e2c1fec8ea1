// Files of checked blocks: see docs/formats/checkpoint.md. Both classes are thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "native/checkpoint/format.h"

namespace gear_reverb::checkpoint {

// Closes a file descriptor.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

class BlockWriter {
 public:
  // Creates `path`, which must not exist, locks it for as long as the writer lives, and writes the
  // file header.
  static absl::StatusOr<std::unique_ptr<BlockWriter>> Create(const std::string& path);

  // Writes a block whose payload is `pieces` one after another. They are read twice: they must not
  // change meanwhile.
  absl::Status Write(BlockType type, absl::Span<const absl::string_view> pieces);

  // Flushes all to the disk. To be called last.
  absl::Status Sync();

 private:
  BlockWriter(std::string path, int fd) : path_(std::move(path)), file_(fd) {}
  absl::Status Append(absl::string_view bytes);
  absl::Status Flush();
  absl::Status WriteOut(absl::string_view bytes);

  const std::string path_;
  const File file_;
  std::string buffer_;
  uint32_t blocks_ = 0;
};

struct Block {
  BlockType type;
  absl::string_view payload;  // Valid until the next block is read.
};

class BlockReader {
 public:
  // Checks the file header. DATA_LOSS, or UNIMPLEMENTED for another version.
  static absl::StatusOr<std::unique_ptr<BlockReader>> Open(const std::string& path);

  // DATA_LOSS, naming file, block and reason, also at the end of the file.
  absl::StatusOr<Block> Next();
  bool at_end() const { return offset_ == size_; }

  // A DATA_LOSS that names the file and the block read last.
  absl::Status Damage(absl::string_view reason) const;

 private:
  BlockReader(std::string path, int fd, uint64_t size)
      : path_(std::move(path)), file_(fd), size_(size) {}
  absl::Status Read(char* to, size_t size);

  const std::string path_;
  const File file_;
  const uint64_t size_;
  uint64_t offset_ = 0, block_offset_ = 0;
  uint32_t blocks_ = 0;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
};

}  // namespace gear_reverb::checkpoint
