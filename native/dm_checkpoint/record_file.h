// TFRecord files, which dm-reverb's checkpoints are made of: see docs/formats/dm_checkpoint.md.
// Both classes are thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gear_reverb::dm_checkpoint {

// Writes a zlib-compressed file.
class RecordWriter {
 public:
  // Creates `path`, which must not exist.
  static absl::StatusOr<std::unique_ptr<RecordWriter>> Create(const std::string& path);
  ~RecordWriter();

  absl::Status Write(absl::string_view record);
  // Ends the file and flushes it to the disk. To be called last.
  absl::Status Finish();

 private:
  class Impl;
  explicit RecordWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Reads files that are compressed by zlib or gzip, or not at all; which, it finds out.
class RecordReader {
 public:
  // DATA_LOSS if there is no such file.
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(const std::string& path);
  ~RecordReader();

  // The next record, valid until the next call; nullopt at the end of the file. DATA_LOSS, naming
  // file, record and byte. Takes memory only for bytes that the file has.
  absl::StatusOr<std::optional<absl::string_view>> Next();

  // A DATA_LOSS that names the file and the record read last.
  absl::Status Damage(absl::string_view reason) const;

 private:
  class Impl;
  explicit RecordReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gear_reverb::dm_checkpoint
