// A backend that does everything as late as it may.
#pragma once

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "native/base/status.h"
#include "native/device/draw_backend.h"

namespace gear_reverb::device::testing {

// One stream, whose work waits until somebody asks for it; memory, which is the process's own.
class LateWork {
 public:
  void Add(std::function<absl::Status()> work) {
    work_.push_back(std::move(work));
    ++added_;
  }
  absl::Status Run() {
    absl::Status status;
    for (; !work_.empty(); work_.pop_front(), ++done_) status.Update(work_.front()());
    return status;
  }
  // About half of it.
  void RunSome() {
    for (size_t n = work_.size() / 2; n > 0; --n, work_.pop_front(), ++done_) {
      EXPECT_TRUE(work_.front()().ok());
    }
  }
  uint64_t added() const { return added_; }
  uint64_t done() const { return done_; }

  // Neither read nor written before its time; elsewhere copies are made at once.
  std::map<const std::byte*, size_t> ranges;
  bool Has(const void* address) const {
    auto after = ranges.upper_bound(static_cast<const std::byte*>(address));
    if (after == ranges.begin()) return false;
    --after;
    return static_cast<const std::byte*>(address) < after->first + after->second;
  }

 private:
  std::deque<std::function<absl::Status()>> work_;
  uint64_t added_ = 0, done_ = 0;
};

class LateSelect final : public SelectBackend {
 public:
  explicit LateSelect(std::shared_ptr<LateWork> work) : work_(std::move(work)) {}
  size_t most_bytes = SIZE_MAX;  // Of one allocation.
  absl::StatusOr<void*> Allocate(size_t bytes) override {
    if (bytes > most_bytes) return absl::ResourceExhaustedError("no memory");
    GR_ASSIGN_OR_RETURN(void* const memory, twin_->Allocate(bytes));
    std::memset(memory, 0xee, bytes);
    work_->ranges[static_cast<std::byte*>(memory)] = bytes;
    return memory;
  }
  void Free(void* memory) override {
    EXPECT_TRUE(work_->Run().ok());
    work_->ranges.erase(static_cast<std::byte*>(memory));
    twin_->Free(memory);
  }
  absl::Status Fill(void* memory, int byte, size_t bytes, Stream stream) override {
    return Later([=, this] { return twin_->Fill(memory, byte, bytes, stream); });
  }
  absl::Status Copy(void* to, const void* from, size_t bytes, Stream stream) override {
    if (!work_->Has(to)) {
      GR_RETURN_IF_ERROR(work_->Run());
      return twin_->Copy(to, from, bytes, stream);
    }
    if (work_->Has(from)) {
      return Later([=, this] { return twin_->Copy(to, from, bytes, stream); });
    }
    std::vector<std::byte> read(bytes);
    std::memcpy(read.data(), from, bytes);
    return Later([=, this] { return twin_->Copy(to, read.data(), bytes, stream); });
  }
  absl::Status Synchronize(Stream) override { return work_->Run(); }
  absl::Status Write(const SelectionView& view, const SlotState* states, uint32_t n,
                     const ClaimTable& claims, Stream stream) override {
    return Later([=, this] { return twin_->Write(view, states, n, claims, stream); });
  }
  absl::Status Resum(const SelectionView& view, const SlotState* states, uint32_t n,
                     bool members_changed, Stream stream) override {
    return Later([=, this] { return twin_->Resum(view, states, n, members_changed, stream); });
  }
  absl::Status Draw(const SelectionView& view, DrawState* state, uint32_t n, double beta,
                    const DrawOutput& output, Stream stream) override {
    return Later([=, this] { return twin_->Draw(view, state, n, beta, output, stream); });
  }
  absl::Status Top(const SelectionView& view, uint32_t k, const DrawOutput& output,
                   Stream stream) override {
    return Later([=, this] { return twin_->Top(view, k, output, stream); });
  }

 private:
  absl::Status Later(std::function<absl::Status()> call) {
    work_->Add(std::move(call));
    return absl::OkStatus();
  }
  const std::shared_ptr<LateWork> work_;
  const std::shared_ptr<SelectBackend> twin_ = MakeSelectTwin();
};

class LateMark final : public Mark {
 public:
  explicit LateMark(std::shared_ptr<LateWork> work)
      : work_(std::move(work)), after_(work_->added()) {}
  absl::StatusOr<bool> done() const override { return work_->done() >= after_; }
  absl::Status Wait() const override { return work_->Run(); }
  absl::Status PutBefore(Stream) const override { return absl::OkStatus(); }  // There is one.

 private:
  const std::shared_ptr<LateWork> work_;
  const uint64_t after_;
};

class LateBackend final : public DrawBackend {
 public:
  const std::shared_ptr<SelectBackend>& select() const override { return select_; }
  void LimitAllocations(size_t bytes) { static_cast<LateSelect&>(*select_).most_bytes = bytes; }
  absl::StatusOr<std::shared_ptr<std::byte>> AllocateHost(size_t bytes) override {
    auto* const memory = static_cast<std::byte*>(std::malloc(bytes));
    work_->ranges[memory] = bytes;
    return std::shared_ptr<std::byte>(memory, [work = work_](std::byte* data) {
      work->ranges.erase(data);
      std::free(data);
    });
  }
  void AddSource(std::shared_ptr<memory::Arena>, DeviceTier*) override {}
  const std::byte* AddressOf(const std::byte* data, uint64_t) override { return data; }
  absl::StatusOr<std::unique_ptr<Mark>> NewMark(Stream) override {
    auto mark = std::make_unique<LateMark>(work_);
    work_->RunSome();
    return mark;
  }
  absl::Status Synchronize() override { return work_->Run(); }
  absl::Status WriteEntries(const DirectoryView& directory, const EntryChanges& changes,
                            Stream stream) override {
    work_->Add([=, this] { return twin_->WriteEntries(directory, changes, stream); });
    return absl::OkStatus();
  }
  absl::Status Pick(const DirectoryView& directory, const Picked& picked, Stream stream) override {
    work_->Add([=, this] { return twin_->Pick(directory, picked, stream); });
    return absl::OkStatus();
  }
  absl::Status Weights(const double* probabilities, uint32_t n, double beta, float* weights,
                       Stream stream) override {
    work_->Add([=, this] { return twin_->Weights(probabilities, n, beta, weights, stream); });
    return absl::OkStatus();
  }
  absl::Status Gather(const RowList& list, const Pieces& pieces, std::byte* output,
                      Stream stream) override {
    work_->Add([=, this] { return twin_->Gather(list, pieces, output, stream); });
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<LateWork> work_ = std::make_shared<LateWork>();
  const std::shared_ptr<SelectBackend> select_ = std::make_shared<LateSelect>(work_);
  const std::unique_ptr<DrawBackend> twin_ = MakeDrawTwin();
};

}  // namespace gear_reverb::device::testing
