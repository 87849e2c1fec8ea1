"""As much of JAX, on an emulated GPU, as batches of arrays use; not by its name, which stays JAX's.

As XLA does it, another stream is told of than the one that reads: programs run on one stream, one
after another, and arrays give their memory back when the last program that reads them was put
there.
"""

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from emulated_gpu import call


def _stream() -> ctypes.c_void_p:
    stream = ctypes.c_void_p()
    call("cudaStreamCreateWithFlags", ctypes.byref(stream), 1)
    return stream


def _wait(stream: ctypes.c_void_p, other: ctypes.c_void_p) -> None:
    """The stream waits for what the other has been given."""
    event = ctypes.c_void_p()
    call("cudaEventCreateWithFlags", ctypes.byref(event), 2)
    call("cudaEventRecord", event, other)
    call("cudaStreamWaitEvent", stream, event, 0)
    call("cudaEventDestroy", event)


class _Token:
    """A program's result, of which nobody wants the value."""

    def __init__(self, jax: "Jax") -> None:
        self._jax = jax

    def __add__(self, _: int) -> "_Token":
        return self

    def __dlpack__(self, stream: int) -> None:
        self._jax.fences += 1
        _wait(ctypes.c_void_p(stream), self._jax.compute)


class Jax:
    """What `import jax` is to give."""

    def __init__(self) -> None:
        self._ready, self.compute = _stream(), _stream()
        self.fences = 0
        self.config = SimpleNamespace(jax_enable_x64=False)
        self.dlpack = SimpleNamespace(from_dlpack=self._from_dlpack)

    def close(self) -> None:
        call("cudaDeviceSynchronize")
        for stream in (self._ready, self.compute):
            call("cudaStreamDestroy", stream)

    def _from_dlpack(self, array: Any) -> torch.Tensor:
        taken = torch.Tensor(array.__dlpack__(stream=self._ready.value))
        _wait(self.compute, self._ready)
        return taken

    def read_later(self, array: torch.Tensor) -> np.ndarray:
        """A program's result, which is there once the compute stream is done."""
        result = np.zeros(array.shape, array.dtype)
        to = result.ctypes.data_as(ctypes.c_void_p)
        data = ctypes.c_void_p(array._managed.data)
        call("cudaMemcpyAsync", to, data, ctypes.c_size_t(result.nbytes), 2, self.compute)
        return result

    def synchronize(self) -> None:
        call("cudaStreamSynchronize", self.compute)

    def local_devices(self, backend: str) -> list[Any]:
        assert backend == "gpu"
        return [SimpleNamespace(local_hardware_id=1), SimpleNamespace(local_hardware_id=0)]

    def device_put(self, value: Any, device: Any) -> _Token:
        assert device.local_hardware_id == 0
        return _Token(self)

    def jit(self, program: Any) -> Any:
        return program
