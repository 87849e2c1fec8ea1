// Arrays of a GPU on their way to the host.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "native/base/log.h"
#include "native/base/status.h"
#include "native/bindings/arrays.h"
#include "native/bindings/definitions.h"
#include "native/bindings/device_array.h"
#include "native/bindings/device_options.h"
#include "native/bindings/dlpack.h"
#include "native/bindings/errors.h"
#include "native/device/device.h"
#include "native/memory/fork_guard.h"
#include "pybind11/stl.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

using tensor::DType;

// Of what keys and priorities come as.
constexpr DType kDTypes[] = {DType::kUint64,  DType::kInt64,   DType::kInt32,
                             DType::kFloat64, DType::kFloat32, DType::kFloat16};

// Throws TypeError for others.
DType DTypeOf(const DlTensor& array) {
  for (const DType dtype : kDTypes) {
    if (array.lanes == 1 && array.code == CodeOf(dtype) &&
        array.bits == 8 * tensor::ByteSize(dtype)) {
      return dtype;
    }
  }
  throw py::type_error(absl::StrCat("DLPack's dtype ", array.code, " of ", array.bits,
                                    " bits cannot be a key or priority."));
}

// What a framework has handed over, with the GIL.
class Taken {
 public:
  explicit Taken(const py::capsule& capsule) {
    auto* const managed =
        static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kFresh));
    if (managed == nullptr || PyCapsule_SetName(capsule.ptr(), kTaken) != 0) {
      throw py::error_already_set();
    }
    managed_ = managed;
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken() {
    if (managed_->deleter != nullptr) managed_->deleter(managed_);
  }
  const DlTensor& array() const { return managed_->tensor; }

 private:
  DlManagedTensor* managed_;
};

struct Copies {
  std::unique_ptr<device::GatherStream> owner;  // Of the stream.
  std::unique_ptr<device::DrawBackend> backend;
};

// What is to be copied, and what keeps it.
struct Source {
  const std::byte* data = nullptr;
  DType dtype = DType::kInvalid;
  int64_t size = 0;
  int gpu = -1;
  std::shared_ptr<const void> keep;
};

// The framework has `stream` wait for what it has begun.
Source SourceOf(const py::object& array, device::Stream stream) {
  if (const std::optional<LentArray> lent = LentDeviceArray(array)) {
    const DType dtype = lent->array.dtype;
    if (lent->array.shape.size() != 1) throw py::value_error("The array must have one axis.");
    if (std::find(std::begin(kDTypes), std::end(kDTypes), dtype) == std::end(kDTypes)) {
      throw py::type_error("Arrays of " + tensor::Name(dtype) + " cannot be keys or priorities.");
    }
    WithoutGil([&] { return lent->output->LendTo(stream); });
    return {lent->output->data() + lent->array.offset, lent->array.dtype, lent->array.shape[0],
            lent->gpu, lent->output};
  }
  const auto taken = std::make_shared<Taken>(py::cast<py::capsule>(
      array.attr("__dlpack__")(py::arg("stream") = reinterpret_cast<uintptr_t>(stream))));
  const DlTensor& given = taken->array();
  if (given.ndim != 1 || given.shape[0] < 0 ||
      (given.strides != nullptr && given.shape[0] > 1 && given.strides[0] != 1)) {
    throw py::value_error("The array must have one axis, and its elements must lie together.");
  }
  return {static_cast<const std::byte*>(given.data) + given.byte_offset, DTypeOf(given),
          given.shape[0], given.device_type == kDlCuda ? given.device_id : -1, taken};
}

// The copy of one array.
class HostCopy {
 public:
  HostCopy(std::shared_ptr<Copies> copies, Source from)
      : copies_(std::move(copies)), from_(std::move(from)) {}
  ~HostCopy() {
    if (memory::ForkGeneration() != generation_) {  // Where there is no GPU.
      new auto(std::make_tuple(std::move(copies_), std::move(from_), std::move(host_),
                               std::move(mark_)));
      return;
    }
    if (from_.keep == nullptr) return;
    ReleaseGil release;
    base::WarnIfError(copies_->backend->Synchronize());
  }

  absl::Status Start(device::Stream stream) {
    const size_t bytes = from_.size * tensor::ByteSize(from_.dtype);
    GR_ASSIGN_OR_RETURN(host_, copies_->backend->AllocateHost(bytes));
    if (bytes > 0) {
      GR_RETURN_IF_ERROR(copies_->backend->select()->Copy(host_.get(), from_.data, bytes, stream));
    }
    GR_ASSIGN_OR_RETURN(mark_, copies_->backend->NewMark(stream));
    return absl::OkStatus();
  }
  absl::Status PutBefore(device::Stream stream) const { return mark_->PutBefore(stream); }

  bool done() {
    if (from_.keep != nullptr && ValueOrThrow(mark_->done())) from_.keep = nullptr;
    return from_.keep == nullptr;
  }

  // Waits for it.
  py::array ToNumpy() {
    if (!done()) WithoutGil([&] { return mark_->Wait(); });
    from_.keep = nullptr;
    const py::capsule owner(new std::shared_ptr<std::byte>(host_), [](void* pointer) {
      delete static_cast<std::shared_ptr<std::byte>*>(pointer);
    });
    return BorrowingArray(from_.dtype, {from_.size}, host_.get(), owner);
  }

 private:
  const uint64_t generation_ = memory::ForkGeneration();
  std::shared_ptr<Copies> copies_;
  Source from_;  // Kept until the copy is there.
  std::shared_ptr<std::byte> host_;
  std::unique_ptr<device::Mark> mark_;
};

// Copies from one GPU, on a stream of their own.
class HostCopies {
 public:
  explicit HostCopies(int gpu) : gpu_(gpu) {
    WithoutGil([&]() -> absl::Status {
      GR_ASSIGN_OR_RETURN(const auto device, OpenDevice(absl::StrCat("cuda:", gpu)));
      GR_ASSIGN_OR_RETURN(copies_->owner, device->NewStream(/*kept=*/0));
      GR_ASSIGN_OR_RETURN(copies_->backend, device->NewDrawBackend(copies_->owner->stream()));
      return absl::OkStatus();
    });
  }

  std::unique_ptr<HostCopy> Start(const py::object& array, std::optional<uintptr_t> between) {
    const device::Stream stream = copies_->owner->stream();
    const auto caller = reinterpret_cast<device::Stream>(between.value_or(0));
    if (between.has_value()) {
      WithoutGil([&]() -> absl::Status {
        GR_ASSIGN_OR_RETURN(const auto mark, copies_->backend->NewMark(caller));
        return mark->PutBefore(stream);
      });
    }
    Source from = SourceOf(array, stream);
    if (from.gpu != gpu_) {
      throw py::value_error(absl::StrCat("The array is not on the GPU cuda:", gpu_, "."));
    }
    auto copy = std::make_unique<HostCopy>(copies_, std::move(from));
    WithoutGil([&]() -> absl::Status {
      GR_RETURN_IF_ERROR(copy->Start(stream));
      return between.has_value() ? copy->PutBefore(caller) : absl::OkStatus();
    });
    return copy;
  }

 private:
  const int gpu_;
  const std::shared_ptr<Copies> copies_ = std::make_shared<Copies>();
};

}  // namespace

void DefineHostCopies(py::module_& module) {
  py::class_<HostCopy>(module, "HostCopy")
      .def_property_readonly("done", &HostCopy::done)
      .def("numpy", &HostCopy::ToNumpy);
  py::class_<HostCopies>(module, "HostCopies")
      .def(py::init<int>(), py::arg("gpu"))
      .def("start", &HostCopies::Start, py::arg("array"), py::arg("between"));
}

}  // namespace gear_reverb::bindings
