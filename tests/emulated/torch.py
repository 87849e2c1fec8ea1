"""As much of PyTorch, on an emulated GPU, as the package, its tests and the GPU check use.

A `Tensor` is what DLPack hands over. Its memory is the GPU's, where work is put off as long as it
may be: looking at it waits for the GPU and copies.
"""

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
from emulated_gpu import call
from numpy.lib import mixins

bfloat16 = np.dtype(ml_dtypes.bfloat16)
float16 = np.dtype(np.float16)
int64 = np.dtype(np.int64)
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}  # DLPack's codes.
_CUDA = 2


class _DlTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


_api = ctypes.pythonapi
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# What was handed on, by address, until its deleter is called.
_shared: dict[int, Any] = {}


class _HostArray(np.ndarray):
    def numpy(self) -> np.ndarray:
        return self.view(np.ndarray)


class Tensor(mixins.NDArrayOperatorsMixin):
    """An array in the GPU's memory; all else is NumPy's, of a copy."""

    def __init__(self, capsule: Any) -> None:
        self._address = _api.PyCapsule_GetPointer(capsule, b"dltensor")
        _api.PyCapsule_SetName(capsule, b"used_dltensor")  # It is ours now.
        self._managed = managed = _DlTensor.from_address(self._address)
        assert (managed.device_type, managed.lanes) == (_CUDA, 1)
        assert not managed.strides and managed.byte_offset == 0
        self.shape = tuple(managed.shape[: managed.ndim])
        if managed.code == 4:
            self.dtype = bfloat16
        else:
            self.dtype = np.dtype(f"{_KINDS[managed.code]}{managed.bits // 8}")

    def __del__(self) -> None:
        self._managed.deleter(self._address)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._managed.device_type, self._managed.device_id

    def __dlpack__(self, *, stream: int) -> Any:
        """As PyTorch does it: the stream is to wait for the current one."""
        event = ctypes.c_void_p()
        current = ctypes.c_void_p(cuda.current_stream(0).cuda_stream or 1)
        call("cudaEventCreateWithFlags", ctypes.byref(event), 2)
        call("cudaEventRecord", event, current)
        call("cudaStreamWaitEvent", ctypes.c_void_p(stream), event, 0)
        call("cudaEventDestroy", event)
        shared = _DlTensor()
        ctypes.memmove(ctypes.byref(shared), self._address, ctypes.sizeof(shared))
        address = ctypes.addressof(shared)
        shared.deleter = type(shared.deleter)(_shared.pop)
        _shared[address] = shared, self
        return _api.PyCapsule_New(address, b"dltensor", None)

    def cpu(self) -> _HostArray:
        cuda.synchronize()
        copy = np.empty(self.shape, self.dtype).view(_HostArray)
        if copy.nbytes:
            to = copy.ctypes.data_as(ctypes.c_void_p)
            data = ctypes.c_void_p(self._managed.data)
            call("cudaMemcpy", to, data, ctypes.c_size_t(copy.nbytes), 2)
        return copy

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.cpu() if dtype is None else self.cpu().astype(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        inputs = tuple(each.cpu() if isinstance(each, Tensor) else each for each in inputs)
        return getattr(ufunc, method)(*inputs, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.cpu(), name)

    def __getitem__(self, index: Any) -> Any:
        return self.cpu()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        changed = self.cpu()
        changed[index] = value
        data = ctypes.c_void_p(self._managed.data)
        from_ = changed.ctypes.data_as(ctypes.c_void_p)
        call("cudaMemcpy", data, from_, ctypes.c_size_t(changed.nbytes), 1)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.cpu())

    def __len__(self) -> int:
        return self.shape[0]


def from_dlpack(array: Any) -> Tensor:
    """As PyTorch does it: the current stream is to wait, and is named to the array."""
    assert array.__dlpack_device__() == (_CUDA, 0)
    return Tensor(array.__dlpack__(stream=cuda.current_stream(0).cuda_stream or 1))


class _Stream:
    def __init__(self, address: int) -> None:
        self.cuda_stream = address

    def synchronize(self) -> None:
        call("cudaStreamSynchronize", ctypes.c_void_p(self.cuda_stream))


class _Graph:
    def __init__(self) -> None:
        self.made = ctypes.c_void_p()

    def replay(self) -> None:
        call("cudaGraphLaunch", self.made, ctypes.c_void_p(cuda.current_stream(0).cuda_stream))


class cuda:
    _current = _Stream(0)
    CUDAGraph = _Graph

    @classmethod
    def current_stream(cls, gpu: int) -> _Stream:
        return cls._current

    @staticmethod
    def Stream() -> _Stream:
        made = ctypes.c_void_p()
        call("cudaStreamCreateWithFlags", ctypes.byref(made), 1)
        return _Stream(made.value)

    @staticmethod
    def synchronize() -> None:
        call("cudaDeviceSynchronize")

    @classmethod
    @contextlib.contextmanager
    def graph(cls, graph: _Graph) -> Iterator[None]:
        """As PyTorch does it: on another stream, which is the current one meanwhile."""
        stream, captured = ctypes.c_void_p(), ctypes.c_void_p()
        cls.synchronize()
        call("cudaStreamCreateWithFlags", ctypes.byref(stream), 1)
        before, cls._current = cls._current, _Stream(stream.value)
        try:
            call("cudaStreamBeginCapture", stream, 0)
            yield
            call("cudaStreamEndCapture", stream, ctypes.byref(captured))
            call("cudaGraphInstantiate", ctypes.byref(graph.made), captured, ctypes.c_uint64(0))
            call("cudaGraphDestroy", captured)
        finally:
            cls._current = before
            call("cudaStreamDestroy", stream)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    raise ImportError(f"there is no torch.{name} on an emulated GPU")
