#include "native/bindings/device_array.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "native/bindings/arrays.h"
#include "native/bindings/definitions.h"
#include "native/bindings/dlpack.h"
#include "native/bindings/errors.h"
#include "pybind11/stl.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

using tensor::DType;

class DeviceArray {
 public:
  DeviceArray(std::shared_ptr<device::Output> output, device::OutputArray array, int gpu)
      : output_(std::move(output)), array_(std::move(array)), gpu_(gpu) {}

  py::tuple shape() const {
    return py::tuple(py::cast(std::vector<int64_t>(array_.shape.begin(), array_.shape.end())));
  }
  py::dtype dtype() const { return ToNumpy(array_.dtype); }
  py::tuple Device() const { return py::make_tuple(kDlCuda, gpu_); }

  // The stream as DLPack has it: -1 means that no stream is to wait; then this call does. So it
  // does without one: consumers that name none may put their work on whatever stream.
  py::capsule ToDlpack(std::optional<int64_t> stream) const {
    constexpr int64_t kNoStream = -1;
    const int64_t handle = stream.value_or(kNoStream);
    if (handle == 0 || handle < kNoStream) {
      throw py::value_error("stream must be None, -1, 1, 2 or a stream's address, but is " +
                            std::to_string(handle) + ".");
    }
    const bool any = handle == kNoStream;
    WithoutGil([&] { return output_->ShareWith(any ? 0 : static_cast<uintptr_t>(handle)); });
    auto* const exported = new Exported{
        {{output_->data() + array_.offset, kDlCuda, gpu_, static_cast<int32_t>(array_.shape.size()),
          CodeOf(array_.dtype), static_cast<uint8_t>(8 * tensor::ByteSize(array_.dtype)), 1,
          nullptr, nullptr, 0},
         nullptr,
         nullptr},
        output_,
        {array_.shape.begin(), array_.shape.end()}};
    exported->managed.tensor.shape = exported->shape.data();
    exported->managed.context = exported;
    exported->managed.deleter = [](DlManagedTensor* managed) {
      delete static_cast<Exported*>(managed->context);
    };
    return py::capsule(&exported->managed, kFresh, [](PyObject* capsule) {
      if (PyCapsule_IsValid(capsule, kFresh) == 0) return;  // Taken over.
      auto* const managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule, kFresh));
      managed->deleter(managed);
    });
  }

  LentArray Lent() const { return {output_, array_, gpu_}; }
  void WantFence() { output_->WantFence(); }
  bool fence_wanted() const { return output_->fence_wanted(); }
  void PassFence(const py::function& wait) {
    ThrowIfError(output_->PassFence(
        [&](device::Stream stream) { wait(reinterpret_cast<uintptr_t>(stream)); }));
  }

 private:
  struct Exported {
    DlManagedTensor managed;
    std::shared_ptr<device::Output> output;
    std::vector<int64_t> shape;
  };

  const std::shared_ptr<device::Output> output_;
  const device::OutputArray array_;
  const int gpu_;
};

}  // namespace

py::object DeviceArrayOf(const std::shared_ptr<device::Output>& output,
                         const device::OutputArray& array, int gpu) {
  if (gpu >= 0) return py::cast(std::make_unique<DeviceArray>(output, array, gpu));
  using Pointer = std::shared_ptr<device::Output>;
  const py::capsule owner(new Pointer(output),
                          [](void* pointer) { delete static_cast<Pointer*>(pointer); });
  return BorrowingArray(array.dtype, array.shape, output->data() + array.offset, owner);
}

std::optional<LentArray> LentDeviceArray(py::handle object) {
  if (!py::isinstance<DeviceArray>(object)) return std::nullopt;
  return py::cast<const DeviceArray&>(object).Lent();
}

void DefineDeviceArray(py::module_& module) {
  py::class_<DeviceArray>(module, "DeviceArray")
      .def_property_readonly("shape", &DeviceArray::shape)
      .def_property_readonly("dtype", &DeviceArray::dtype)
      .def("__dlpack_device__", &DeviceArray::Device)
      .def("want_fence", &DeviceArray::WantFence)
      .def_property_readonly("fence_wanted", &DeviceArray::fence_wanted)
      .def("pass_fence", &DeviceArray::PassFence, py::arg("wait"))
      .def(
          "__dlpack__",
          [](const DeviceArray& array, std::optional<int64_t> stream, const py::object&,
             const py::object& device, const py::object& copy) {
            if (!device.is_none() && !device.equal(array.Device())) {
              throw py::buffer_error("The array is on another device, and is not copied.");
            }
            if (!copy.is_none() && py::cast<bool>(copy)) {
              throw py::buffer_error("The array is not copied on its way.");
            }
            return array.ToDlpack(stream);
          },
          py::kw_only(), py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
          py::arg("dl_device") = py::none(), py::arg("copy") = py::none());
}

}  // namespace gear_reverb::bindings
