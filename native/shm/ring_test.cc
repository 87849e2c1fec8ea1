#include "native/shm/ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/shm/sealed_memory.h"

namespace gear_reverb::shm {
namespace {

constexpr size_t kCapacity = size_t{64} << 10;

struct Ring {
  Ring() : producer(*RingProducer::Create(kCapacity)), consumer(OpenConsumer(producer->fd())) {}
  static std::unique_ptr<RingConsumer> OpenConsumer(int fd) {
    return *RingConsumer::Open(UniqueFd(dup(fd)));
  }

  void Write(const std::string& text) {
    ASSERT_LE(text.size(), producer->Room());
    std::memcpy(producer->data(), text.data(), text.size());
    producer->Advance(text.size());
  }
  std::string Read(size_t bytes) {
    std::string text(reinterpret_cast<const char*>(consumer->data()), bytes);
    consumer->Advance(bytes);
    return text;
  }

  std::unique_ptr<RingProducer> producer;
  std::unique_ptr<RingConsumer> consumer;
};

TEST(Ring, BytesArriveWhenTheyArePublished) {
  Ring ring;
  ring.Write("hello");
  EXPECT_EQ(*ring.consumer->Readable(), 0u);
  ring.producer->Publish();
  EXPECT_EQ(*ring.consumer->Readable(), 5u);
  EXPECT_EQ(ring.Read(5), "hello");
}

TEST(Ring, WhatWrapsAroundLiesInOnePiece) {
  Ring ring;
  for (int round = 0; round < 10; ++round) {
    const std::string text(kCapacity / 3 * 2, static_cast<char>('a' + round));
    ring.Write(text);
    ring.producer->Publish();
    EXPECT_EQ(ring.Read(text.size()), text);
    ring.consumer->Publish();
  }
}

TEST(Ring, IsFullAtItsCapacity) {
  Ring ring;
  ring.Write(std::string(kCapacity, 'x'));
  ring.producer->Publish();
  EXPECT_EQ(ring.producer->Room(), 0u);
  ring.Read(10);
  EXPECT_EQ(ring.producer->Room(), 0u) << "room comes with Publish";
  ring.consumer->Publish();
  EXPECT_EQ(ring.producer->Room(), 10u);
}

TEST(Ring, ASleepingConsumerIsWokenOnce) {
  Ring ring;
  ring.Write("a");
  EXPECT_FALSE(ring.producer->Publish()) << "it is awake";
  EXPECT_FALSE(ring.consumer->Sleep()) << "there is something to read";
  ring.Read(1);
  EXPECT_TRUE(ring.consumer->Sleep());
  ring.Write("b");
  EXPECT_TRUE(ring.producer->Publish());
  ring.Write("c");
  EXPECT_FALSE(ring.producer->Publish());
}

TEST(Ring, AWaitingProducerIsWokenWhenHalfIsFree) {
  Ring ring;
  ring.Write(std::string(kCapacity, 'x'));
  ring.producer->Publish();
  EXPECT_TRUE(ring.producer->WaitForRoom(0));
  ring.Read(kCapacity / 4);
  EXPECT_FALSE(ring.consumer->Publish());
  ring.Read(kCapacity / 4);
  EXPECT_TRUE(ring.consumer->Publish());
  ring.Read(kCapacity / 4);
  EXPECT_FALSE(ring.consumer->Publish()) << "once is enough";
  EXPECT_FALSE(ring.producer->WaitForRoom(0)) << "there is room";
}

TEST(Ring, RefusesMemoryThatIsNoRing) {
  const auto open = [](UniqueFd fd) { return RingConsumer::Open(std::move(fd)).status(); };
  UniqueFd unsealed(memfd_create("test", MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 2 * kCapacity), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(open(std::move(unsealed))));
  for (const size_t bytes : {size_t{0}, size_t{4096}, kCapacity, 2 * kCapacity + 4096}) {
    EXPECT_TRUE(absl::IsInvalidArgument(open(*NewSealedMemory("test", bytes)))) << bytes;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(open(UniqueFd(::open("/dev/null", O_RDWR)))));
  EXPECT_TRUE(absl::IsInvalidArgument(open(UniqueFd(dup(STDERR_FILENO)))));
}

TEST(Ring, PositionsOfNonsenseAreErrors) {
  Ring ring;
  // As a hostile peer has it: the positions are the first words of the header's lines.
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring.producer->fd(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* words = static_cast<volatile uint64_t*>(memory);
  for (const uint64_t head : {uint64_t{kCapacity + 1}, ~uint64_t{0}, uint64_t{1} << 63}) {
    words[0] = head;
    EXPECT_TRUE(absl::IsInvalidArgument(ring.consumer->Readable().status())) << head;
  }
  words[128 / 8] = 77;
  EXPECT_EQ(ring.producer->Room(), 0u);
  munmap(memory, 4096);
}

// Streams random pieces through a ring in two threads that sleep and wake each other by flags.
TEST(Ring, TwoThreadsStreamManyTimesTheCapacity) {
  Ring ring;
  constexpr size_t kTotal = 200 * kCapacity;
  std::atomic<int> consumer_bells{0}, producer_bells{0};
  const auto wait_for = [](std::atomic<int>& bells) {
    while (bells.load() == 0) std::this_thread::yield();
    bells.fetch_sub(1);
  };
  std::thread producing([&] {
    std::mt19937_64 random(1);
    uint8_t next = 0;
    for (size_t written = 0; written < kTotal;) {
      const size_t room = ring.producer->Room();
      const size_t bytes = std::min({room, kTotal - written, random() % 20000 + 1});
      for (size_t i = 0; i < bytes; ++i) ring.producer->data()[i] = std::byte{next++};
      ring.producer->Advance(bytes);
      if (ring.producer->Publish()) consumer_bells.fetch_add(1);
      written += bytes;
      if (room == 0 && ring.producer->WaitForRoom(0)) wait_for(producer_bells);
    }
  });
  uint8_t expected = 0;
  size_t wrong = 0;
  for (size_t read = 0; read < kTotal;) {
    const size_t bytes = *ring.consumer->Readable();
    for (size_t i = 0; i < bytes; ++i) wrong += ring.consumer->data()[i] != std::byte{expected++};
    ring.consumer->Advance(bytes);
    if (ring.consumer->Publish()) producer_bells.fetch_add(1);
    read += bytes;
    if (bytes == 0 && ring.consumer->Sleep()) wait_for(consumer_bells);
  }
  producing.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace gear_reverb::shm
