#include "native/client/sample_decoder.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/rpc/chunk_codec.h"
#include "native/rpc/fields.h"
#include "native/rpc/rpc_test_util.h"

namespace gear_reverb::client {
namespace {

namespace entry_field = rpc::field::sample_entry;
using ::testing::HasSubstr;

table::SampledItem MakeSample(uint64_t key, const std::vector<storage::ChunkPtr>& chunks) {
  storage::TrajectoryBuilder trajectory;
  for (const storage::ChunkPtr& chunk : chunks) {
    trajectory.columns.push_back({{{chunk, 0, 2, 0}}, false});
  }
  table::SampledItem sample;
  sample.item.key = key;
  sample.item.priority = 0.5;
  sample.item.trajectory = std::move(trajectory).Build();
  sample.probability = 0.125;
  return sample;
}

// The entries of one sample, one chunk in each.
std::vector<std::string> Entries(const table::SampledItem& sample, bool with_info = true,
                                 bool with_end = true) {
  const auto chunks = sample.item.trajectory->chunks();
  std::vector<std::string> responses;
  for (size_t i = 0; i < chunks.size(); ++i) {
    rpc::MessageWriter entry;
    if (i == 0 && with_info) {
      entry.AddMessage(entry_field::kInfo, rpc::EncodeSampleInfo(sample, "t"));
    }
    entry.AddMessage(entry_field::kData, rpc::EncodeChunk(chunks[i], rpc::Compression::kLiteral));
    if (i + 1 == chunks.size() && with_end) entry.AddBool(entry_field::kEndOfSequence, true);
    rpc::MessageWriter response;
    response.AddMessage(rpc::field::sample_response::kEntries, std::move(entry));
    responses.push_back(response.TakeString());
  }
  return responses;
}

TEST(SampleDecoder, PutsASampleTogetherFromSeveralMessages) {
  SampleDecoder decoder;
  const auto sample = MakeSample(5, {rpc::MakeMixedChunk(1), rpc::MakeMixedChunk(2)});
  const auto responses = Entries(sample);
  ASSERT_EQ(responses.size(), 2u);
  EXPECT_EQ(decoder.Decode(responses[0])->size(), 0u);
  const auto samples = decoder.Decode(responses[1]);
  ASSERT_TRUE(samples.ok()) << samples.status();
  ASSERT_EQ(samples->size(), 1u);
  EXPECT_EQ((*samples)[0].item.key, 5u);
  EXPECT_EQ((*samples)[0].probability, 0.125);
  EXPECT_EQ((*samples)[0].item.trajectory->columns.size(), 2u);
}

TEST(SampleDecoder, GivesAllSamplesOfAMessage) {
  SampleDecoder decoder;
  std::string message;
  for (uint64_t key = 1; key <= 3; ++key) {
    message += Entries(MakeSample(key, {rpc::MakeMixedChunk(key)}))[0];
  }
  const auto samples = decoder.Decode(message);
  ASSERT_TRUE(samples.ok()) << samples.status();
  ASSERT_EQ(samples->size(), 3u);
  EXPECT_EQ((*samples)[2].item.key, 3u);
}

TEST(SampleDecoder, RefusesEntriesThatMakeNoSample) {
  const auto sample = MakeSample(5, {rpc::MakeMixedChunk(1)});
  {
    SampleDecoder decoder;
    EXPECT_THAT(std::string(decoder.Decode(Entries(sample, false)[0]).status().message()),
                HasSubstr("no info"));
  }
  {
    SampleDecoder decoder;
    ASSERT_TRUE(decoder.Decode(Entries(sample, true, false)[0]).ok());
    EXPECT_THAT(std::string(decoder.Decode(Entries(sample)[0]).status().message()),
                HasSubstr("two infos"));
  }
}

TEST(SampleDecoder, SurvivesMutations) {
  const std::string valid = Entries(MakeSample(5, {rpc::MakeMixedChunk(1)}))[0];
  std::mt19937_64 random(11);
  for (int round = 0; round < 20000; ++round) {
    std::string message = valid;
    message[random() % message.size()] = static_cast<char>(random());
    if (random() % 3 == 0) message.resize(random() % message.size());
    SampleDecoder decoder;
    const auto samples = decoder.Decode(message);
    if (!samples.ok()) continue;
    for (const table::SampledItem& sample : *samples) {
      for (const storage::TrajectoryColumn& column : sample.item.trajectory->columns) {
        std::string out(storage::LayoutOf(column).bytes, '\0');
        storage::Gather(column, reinterpret_cast<std::byte*>(out.data()));
      }
    }
  }
}

}  // namespace
}  // namespace gear_reverb::client
