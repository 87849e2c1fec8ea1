// TFRecord files: what is written is read, and damage is found wherever it is.
#include "native/dm_checkpoint/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "native/dm_checkpoint/crc32c.h"

namespace gear_reverb::dm_checkpoint {
namespace {

using testing::HasSubstr;

class RecordFileTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path); }

  void WriteRecords(const std::vector<std::string>& records) {
    const auto writer = RecordWriter::Create(path).value();
    for (const std::string& record : records) ASSERT_TRUE(writer->Write(record).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  std::string Bytes() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void SetBytes(const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  absl::StatusOr<std::vector<std::string>> ReadRecords() {
    const auto reader = RecordReader::Open(path);
    if (!reader.ok()) return reader.status();
    std::vector<std::string> records;
    while (true) {
      const auto record = (*reader)->Next();
      if (!record.ok()) return record.status();
      if (!record->has_value()) return records;
      records.emplace_back((*record)->data(), (*record)->size());
    }
  }

  static std::string Frame(const std::string& record) {
    const auto append = [](std::string* out, auto number) {
      out->append(reinterpret_cast<const char*>(&number), sizeof(number));
    };
    std::string frame;
    append(&frame, uint64_t{record.size()});
    append(&frame, MaskedCrc32c(frame));
    frame += record;
    append(&frame, MaskedCrc32c(record));
    return frame;
  }
  static std::string Compressed(const std::string& bytes, int window_bits) {
    z_stream stream = {};
    deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
    std::string out(deflateBound(&stream, bytes.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = bytes.size();
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = out.size();
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(out.size() - stream.avail_out);
    deflateEnd(&stream);
    return out;
  }

  const std::string path =
      absl::StrCat(testing::TempDir(), "/record_file_test_", getpid(), "_",
                   testing::UnitTest::GetInstance()->current_test_info()->name());
  std::mt19937_64 random{5};
};

TEST_F(RecordFileTest, RoundTrips) {
  std::string noise(3 << 20, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  const std::vector<std::string> records = {"", "a", noise, std::string(5000, 'x'), noise + noise};
  WriteRecords(records);
  EXPECT_TRUE(ReadRecords().value() == records);
}

TEST_F(RecordFileTest, ManySmallRecords) {
  std::vector<std::string> records;
  for (int i = 0; i < 200000; ++i) records.push_back(std::to_string(i));
  WriteRecords(records);
  EXPECT_TRUE(ReadRecords().value() == records);
}

TEST_F(RecordFileTest, NoRecords) {
  WriteRecords({});
  EXPECT_EQ(Bytes(), std::string("\x78\x01\x03\0\0\0\0\1", 8));
  EXPECT_TRUE(ReadRecords().value().empty());
  SetBytes("");
  EXPECT_TRUE(ReadRecords().value().empty());
}

TEST_F(RecordFileTest, AllKindsOfCompressionAreRead) {
  const std::vector<std::string> records = {"one", "", "three"};
  const std::string plain = Frame("one") + Frame("") + Frame("three");
  for (const std::string& bytes : {plain, Compressed(plain, 15), Compressed(plain, 15 + 16)}) {
    SetBytes(bytes);
    EXPECT_EQ(ReadRecords().value(), records);
  }
}

TEST_F(RecordFileTest, DamageIsNamed) {
  const std::string plain = Frame("one") + Frame("two");
  const auto error = [&](const std::string& bytes) {
    SetBytes(bytes);
    const auto records = ReadRecords();
    EXPECT_TRUE(absl::IsDataLoss(records.status())) << records.status();
    EXPECT_THAT(std::string(records.status().message()), HasSubstr(path));
    return std::string(records.status().message());
  };
  std::string bytes = plain;
  bytes[12] ^= 1;
  EXPECT_THAT(error(bytes), HasSubstr("record 0 at byte 0 is damaged: it does not match its CRC"));
  bytes = plain;
  bytes[19 + 3] ^= 1;
  EXPECT_THAT(error(bytes), HasSubstr("record 1 at byte 19 is damaged: its length does not match"));
  EXPECT_THAT(error(plain.substr(0, 25)),
              HasSubstr("record 1 at byte 19 is damaged: the file ends"));
  EXPECT_THAT(error(plain.substr(0, 36)),
              HasSubstr("record 1 at byte 19 is damaged: the file ends"));
  EXPECT_THAT(error(Compressed(bytes, 15)),
              HasSubstr("record 1 at byte 19 of the uncompressed contents is damaged: its length"));
  const std::string compressed = Compressed(plain, 15);
  EXPECT_THAT(error(compressed + "x"), HasSubstr("something follows"));
  EXPECT_THAT(error(compressed.substr(0, 20)), HasSubstr("the file ends"));
  EXPECT_THAT(error("nonsense"), HasSubstr("the compressed contents are wrong"));
  std::filesystem::remove(path);
  EXPECT_THAT(std::string(ReadRecords().status().message()), HasSubstr("is missing"));
}

// A header that is right about its CRC, and lies.
TEST_F(RecordFileTest, NoMemoryForALengthThatIsNotThere) {
  for (const uint64_t length : {uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{0} - 15}) {
    std::string header(reinterpret_cast<const char*>(&length), sizeof(length));
    const uint32_t crc = MaskedCrc32c(header);
    header.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
    SetBytes(header + "abc");
    EXPECT_TRUE(absl::IsDataLoss(ReadRecords().status()));
  }
}

TEST_F(RecordFileTest, EveryFlippedBitIsFound) {
  const std::vector<std::string> records = {"one", "twice two", ""};
  WriteRecords(records);
  const std::string good = Bytes();
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = good;
      bytes[at] ^= static_cast<char>(1 << bit);
      SetBytes(bytes);
      const auto read = ReadRecords();
      // Bits that zlib does not use may change.
      if (read.ok()) {
        EXPECT_EQ(*read, records);
      }
    }
  }
}

}  // namespace
}  // namespace gear_reverb::dm_checkpoint
