// Checks and times the collection kernels alone, compiled from their source: to try a variant,
// change native/cuda and call this again. scripts/try_kernels.sh builds it where there is a GPU.
//
//     gpu_kernels [BATCH ...] [--bytes MOST]
//
// For each workload, batch (32, 256 and 1024) and place of the data: whether the output, poisoned
// before, has the expected bytes, and the payload's rate by either kernel against one large copy of
// the same run, as medians. Batches of more than MOST bytes (4 GiB) are left out.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "native/cuda/gather_kernel.h"

namespace {

using gear_reverb::cuda::GatherBlocks;
using gear_reverb::cuda::GatherKernel;
using gear_reverb::device::kTileAlignment;
using gear_reverb::device::kTileBytes;
using gear_reverb::device::Row;
using gear_reverb::device::RowKind;
using gear_reverb::device::RowList;
using gear_reverb::device::RowPiece;

constexpr size_t kRepeats = 7;
constexpr int kPoison = 0xa5;

void Must(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  std::printf("FAILED: %s: %s\n", call, cudaGetErrorString(error));
  std::exit(1);
}
#define MUST(call) Must((call), #call)

// (pieces, bytes of a piece) of each column of the longest items, as in gpu_workloads.py.
struct Column {
  uint64_t pieces, piece_bytes;
};
struct Workload {
  const char* name;
  std::vector<Column> columns;
  double least;  // Of the longest items' length.
};
const Workload kWorkloads[] = {
    {"W1", {{4, 11000}, {4, 3000}}, 1}, {"W2", {{4, 96000}, {4, 1000}}, 1},
    {"W3", {{4, 3000000}}, 1},          {"W4", {{1, 4096}, {1, 4096}, {1, 1024}}, 1.0 / 16},
    {"W5", {{4, 564480}}, 1},
};

uint64_t RoundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

struct List {
  std::vector<Row> rows;
  std::vector<RowPiece> pieces;
  uint64_t tiles = 0, output_bytes = 0, payload_bytes = 0;
};

// Rows of whole windows, at multiples of 128 of the output; pieces at random 16-byte words.
List MakeList(const Workload& workload, uint64_t batch, const std::byte* source,
              uint64_t source_bytes) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> length(workload.least, 1);
  List list;
  for (uint64_t item = 0; item < batch; ++item) {
    const double part = workload.least < 1 ? length(random) : 1;
    for (const Column& column : workload.columns) {
      const auto bytes = std::max<uint64_t>(1, static_cast<uint64_t>(part * column.piece_bytes));
      Row row{};
      row.destination = list.output_bytes;
      row.window_bytes = row.source_bytes = column.pieces * bytes;
      row.first_tile = list.tiles;
      row.first_piece = static_cast<uint32_t>(list.pieces.size());
      row.pieces = static_cast<uint32_t>(column.pieces);
      row.kind = RowKind::kCopy;
      for (uint64_t i = 1; i <= column.pieces; ++i) {
        list.pieces.push_back(
            {source + random() % ((source_bytes - bytes) / 16 + 1) * 16, i * bytes});
      }
      list.tiles += (row.window_bytes + kTileBytes - 1) / kTileBytes;
      list.output_bytes += RoundUp(row.window_bytes, kTileAlignment);
      list.payload_bytes += row.window_bytes;
      list.rows.push_back(row);
    }
  }
  return list;
}

// Device memory, also with what it holds at first.
template <typename T>
struct OnDevice {
  explicit OnDevice(size_t count) {
    MUST(cudaMalloc(reinterpret_cast<void**>(&data), count * sizeof(T)));
  }
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    MUST(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~OnDevice() { MUST(cudaFree(data)); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  T* data = nullptr;
};

// What is written between two runs, so that caches have nothing of the last one; and a GPU that
// idled has slow clocks at first.
constexpr size_t kFlushedBytes = size_t{128} << 20;
constexpr std::chrono::milliseconds kWarmUp{30};

// Each run begins while the GPU is still busy with other memory: nothing waits for the launch.
template <typename Start>
double MedianSeconds(cudaStream_t stream, Start start) {
  cudaEvent_t begin, end;
  MUST(cudaEventCreateWithFlags(&begin, cudaEventDefault));
  MUST(cudaEventCreateWithFlags(&end, cudaEventDefault));
  const OnDevice<std::byte> flushed(kFlushedBytes);
  std::vector<double> times;
  const auto warm = std::chrono::steady_clock::now() + kWarmUp;
  while (times.size() < kRepeats) {
    const bool counts = std::chrono::steady_clock::now() >= warm;
    MUST(cudaMemsetAsync(flushed.data, 1, kFlushedBytes, stream));
    MUST(cudaEventRecord(begin, stream));
    start();
    MUST(cudaEventRecord(end, stream));
    MUST(cudaEventSynchronize(end));
    float milliseconds = 0;
    MUST(cudaEventElapsedTime(&milliseconds, begin, end));
    if (counts) times.push_back(milliseconds * 1e-3);
  }
  MUST(cudaEventDestroy(begin));
  MUST(cudaEventDestroy(end));
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return times[kRepeats / 2];
}

// Whether all bytes of the rows are right and none between them was written. `offset`: from a
// piece's address to the host's copy of it.
bool IsRight(const List& list, const std::byte* output, ptrdiff_t offset) {
  std::vector<std::byte> fetched(list.output_bytes);
  MUST(cudaMemcpy(fetched.data(), output, list.output_bytes, cudaMemcpyDeviceToHost));
  uint64_t at = 0;
  for (const Row& row : list.rows) {
    uint64_t begin = 0;
    for (uint32_t i = 0; i < row.pieces; ++i) {
      const RowPiece& piece = list.pieces[row.first_piece + i];
      if (std::memcmp(fetched.data() + row.destination + begin, piece.data + offset,
                      piece.end - begin) != 0) {
        return false;
      }
      begin = piece.end;
    }
    at = row.destination + row.window_bytes;
    for (; at < RoundUp(at, kTileAlignment); ++at) {
      if (fetched[at] != static_cast<std::byte>(kPoison)) return false;
    }
  }
  return at == list.output_bytes;
}

struct Options {
  std::vector<uint64_t> batches;
  uint64_t most_bytes = uint64_t{4} << 30;
};

Options Parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const bool bytes = std::string(arguments[i]) == "--bytes" && i + 1 < count;
    char* end = nullptr;
    const uint64_t number = std::strtoull(arguments[bytes ? ++i : i], &end, 10);
    if (*end != '\0' || number == 0) {
      std::printf("usage: gpu_kernels [BATCH ...] [--bytes MOST]\n");
      std::exit(2);
    }
    if (bytes) {
      options.most_bytes = number;
    } else {
      options.batches.push_back(number);
    }
  }
  if (options.batches.empty()) options.batches = {32, 256, 1024};
  return options;
}

struct Gpu {
  int major = 0;
  GatherBlocks held;
  cudaStream_t stream = nullptr;
};

// The kernels on one batch, a line for each; how many were wrong. `copy`: the large one's rate.
int Try(const Gpu& gpu, const Workload& workload, uint64_t batch, const List& list,
        ptrdiff_t offset, double copy) {
  const OnDevice<Row> rows(list.rows);
  const OnDevice<RowPiece> pieces(list.pieces);
  const OnDevice<std::byte> output(list.output_bytes);
  const RowList on_device{rows.data, pieces.data, static_cast<uint32_t>(list.rows.size()),
                          list.tiles};
  int wrong = 0;
  for (const GatherKernel kernel : {GatherKernel::kLanes, GatherKernel::kBulk}) {
    if (!gear_reverb::cuda::HasKernel(kernel, gpu.major)) continue;
    MUST(cudaMemset(output.data, kPoison, list.output_bytes));
    MUST(cudaDeviceSynchronize());
    const double seconds = MedianSeconds(gpu.stream, [&] {
      MUST(gear_reverb::cuda::LaunchGather(
          kernel, on_device, output.data, offset == 0 ? gpu.held.ForHost() : gpu.held, gpu.stream));
    });
    const bool right = IsRight(list, output.data, offset);
    const double rate = static_cast<double>(list.payload_bytes) / seconds;
    std::printf("   %s%s B=%llu by %s: %.2f of the copy, %.1f GB/s\n",
                right ? "" : "WRONG: ", workload.name, static_cast<unsigned long long>(batch),
                kernel == GatherKernel::kLanes ? "lanes" : "bulk", rate / copy, rate / 1e9);
    wrong += !right;
  }
  return wrong;
}

// All batches of data that lies at `source`; the host has a copy `offset` bytes further.
int TryAll(const Gpu& gpu, const Options& options, const std::byte* source, uint64_t source_bytes,
           ptrdiff_t offset) {
  double copy = 0;
  {
    const OnDevice<std::byte> target(source_bytes);
    copy =
        static_cast<double>(source_bytes) / MedianSeconds(gpu.stream, [&] {
          MUST(cudaMemcpyAsync(target.data, source, source_bytes, cudaMemcpyDefault, gpu.stream));
        });
  }
  std::printf("from the %s; one copy: %.1f GB/s\n", offset == 0 ? "host" : "device", copy / 1e9);
  int wrong = 0;
  for (const Workload& workload : kWorkloads) {
    for (const uint64_t batch : options.batches) {
      const List list = MakeList(workload, batch, source, source_bytes);
      if (list.output_bytes <= options.most_bytes) {
        wrong += Try(gpu, workload, batch, list, offset, copy);
      }
    }
  }
  return wrong;
}

}  // namespace

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // Also where it is a pipe: it may hang.
  const Options options = Parse(count, arguments);
  Gpu gpu;
  MUST(cudaDeviceGetAttribute(&gpu.major, cudaDevAttrComputeCapabilityMajor, 0));
  MUST(gear_reverb::cuda::PrepareGather(&gpu.held));
  MUST(cudaStreamCreateWithFlags(&gpu.stream, cudaStreamNonBlocking));

  // Room for the longest piece.
  const uint64_t bytes =
      std::max<uint64_t>(std::min<uint64_t>(2 * options.most_bytes, uint64_t{1} << 30), 4 << 20);
  void* pinned = nullptr;
  MUST(cudaHostAlloc(&pinned, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
  std::mt19937_64 random(std::random_device{}());
  std::generate_n(static_cast<uint64_t*>(pinned), bytes / 8, random);
  auto* const host = static_cast<std::byte*>(pinned);
  int wrong = TryAll(gpu, options, host, bytes, 0);
  {
    const OnDevice<std::byte> device(bytes);
    MUST(cudaMemcpy(device.data, host, bytes, cudaMemcpyHostToDevice));
    wrong += TryAll(gpu, options, device.data, bytes, host - device.data);
  }
  MUST(cudaFreeHost(pinned));
  MUST(cudaStreamDestroy(gpu.stream));
  std::printf("%d wrong\n", wrong);
  return wrong != 0;
}
