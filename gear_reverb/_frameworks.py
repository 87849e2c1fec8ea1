"""Arrays of a batch as tensors of other frameworks, by DLPack and without a copy.

A framework is imported when a converter for it is made. Text stays a NumPy object array, but for
TensorFlow. What a framework does not take by DLPack is copied: TensorFlow's float8, and bools of
its older releases.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

Converter = Callable[[np.ndarray], Any]

# Of those dtypes that NumPy's DLPack does not know, or not in all its releases: an integer of the
# same size, and their code in DLPack.
_CARRIERS = {
    "bool": (np.uint8, 6),
    "bfloat16": (np.uint16, 4),
    "float8_e4m3b11fnuz": (np.uint8, 9),
    "float8_e4m3fn": (np.uint8, 10),
    "float8_e4m3fnuz": (np.uint8, 11),
    "float8_e5m2": (np.uint8, 12),
    "float8_e5m2fnuz": (np.uint8, 13),
}


def converter(out: str) -> Converter | None:
    """What makes an array of `out` of a NumPy array; None for NumPy itself.

    Raises:
      ValueError: If `out` is not "numpy", "torch", "jax" or "tensorflow".
      ImportError: If the framework is not installed.
    """
    if out == "numpy":
        return None
    try:
        make = _MAKERS[out]
    except (KeyError, TypeError):
        names = ", ".join(map(repr, ("numpy", *_MAKERS)))
        raise ValueError(f"out must be one of {names}, but is {out!r}") from None
    return make()


def gpu_converter(out: str) -> Converter | None:
    """What makes an array of `out` of an array on a GPU; None for "dlpack", the array as it is.

    Raises:
      ValueError: If `out` is not "torch", "jax", "cupy" or "dlpack".
      ImportError: If the framework is not installed.
    """
    if out == "dlpack":
        return None
    if out not in ("torch", "jax", "cupy"):
        raise ValueError(
            "out must be 'torch', 'jax', 'cupy' or 'dlpack' for a device that is a GPU, "
            f"but is {out!r}"
        )
    if out == "jax":
        return _jax_gpu()
    if out == "torch":
        from torch import from_dlpack
    else:
        from_dlpack = _cupy_from_dlpack()

    def convert(array: Any) -> Any:
        # Text stays on the host.
        return array if isinstance(array, np.ndarray) else from_dlpack(array)

    return convert


def _cupy_from_dlpack() -> Converter:
    import cupy

    def from_dlpack(array: Any) -> Any:
        with cupy.cuda.Device(array.__dlpack_device__()[1]):
            stream = cupy.cuda.get_current_stream()
            _CUPY_STREAMS[stream.ptr] = stream
            return cupy.from_dlpack(array)

    return from_dlpack


def _jax_gpu() -> Converter:
    import jax

    tokens: dict[int, Any] = {}
    count = jax.jit(lambda token: token + 1)

    def wait(gpu: int, stream: int) -> None:
        # JAX's programs for a device run one after another: this one ends after those before it.
        if gpu not in tokens:
            devices = jax.local_devices(backend="gpu")
            [device] = [each for each in devices if each.local_hardware_id == gpu]
            tokens[gpu] = jax.device_put(np.int32(0), device)
        tokens[gpu] = count(tokens[gpu])
        tokens[gpu].__dlpack__(stream=stream)

    def convert(array: Any) -> Any:
        if isinstance(array, np.ndarray) or not jax_keeps(array):
            return array
        # JAX gives memory back when its last use has been put on a stream that nobody else knows.
        array.want_fence()
        if array.fence_wanted:
            gpu = array.__dlpack_device__()[1]
            array.pass_fence(lambda stream: wait(gpu, stream))
        return jax.dlpack.from_dlpack(array)

    return convert


def jax_keeps(array: Any) -> bool:
    """Whether JAX has the array's dtype: text not, and 64-bit numbers only if it was told to."""
    if array.dtype == object:
        return False
    if array.dtype.itemsize <= (8 if array.dtype.kind == "c" else 4):
        return True
    import jax

    return jax.config.jax_enable_x64


def current_stream(out: str, gpu: int) -> Callable[[], int]:
    """What gives the address of the stream that the framework puts its work for that GPU on now."""
    if out == "torch":
        import torch

        return lambda: torch.cuda.current_stream(gpu).cuda_stream
    if out == "cupy":
        import cupy

        def current() -> int:
            # CuPy's current stream is one for each device.
            with cupy.cuda.Device(gpu):
                return cupy.cuda.get_current_stream().ptr

        return current

    def unknown() -> int:
        raise ValueError(f"out={out!r} has no current stream: give the address of one")

    return unknown


def _torch() -> Converter:
    import torch

    def convert(array: np.ndarray) -> Any:
        if array.dtype == object:
            return array
        carrier = _CARRIERS.get(array.dtype.name)
        if carrier is None:
            return torch.from_dlpack(array)
        dtype = getattr(torch, array.dtype.name, None)
        if dtype is None:
            raise ValueError(f"PyTorch has no dtype {array.dtype.name}")
        return torch.from_dlpack(array.view(carrier[0])).view(dtype)

    return convert


def _jax() -> Converter:
    import jax

    carried = _carrying(jax.dlpack.from_dlpack, jax.numpy.array)

    def convert(array: np.ndarray) -> Any:
        return carried(array) if jax_keeps(array) else array

    return convert


def _tensorflow() -> Converter:
    import tensorflow as tf

    def from_dlpack(array: Any) -> Any:
        return tf.experimental.dlpack.from_dlpack(array.__dlpack__())

    carried = _carrying(from_dlpack, tf.constant)

    def convert(array: np.ndarray) -> Any:
        if array.dtype == object:
            return tf.constant(array, tf.string)
        return carried(array) if array.size else tf.zeros(array.shape, array.dtype)

    return convert


def _carrying(from_dlpack: Converter, copy: Converter) -> Converter:
    """Of arrays of any dtype; copies those that the framework does not take."""
    refused: set[str] = set()

    def convert(array: np.ndarray) -> Any:
        name = array.dtype.name
        if name not in _CARRIERS:
            return from_dlpack(array)
        if name not in refused:
            try:
                return from_dlpack(_Carried(array))
            except Exception:  # Of a class of the framework's own.
                refused.add(name)
        return copy(array)

    return convert


class _Carried:
    """An array of one of the dtypes above, for `from_dlpack`."""

    def __init__(self, array: np.ndarray) -> None:
        self._carrier, self._code = _CARRIERS[array.dtype.name]
        self._array = array.view(self._carrier)

    def __dlpack__(self, **_: Any) -> Any:
        capsule = self._array.__dlpack__()
        # A DLManagedTensor begins with a pointer, a device of 8 bytes, the number of axes in 4, and
        # the dtype's code in one.
        address = _address_of(capsule, b"dltensor")
        ctypes.c_uint8.from_address(address + 20).value = self._code
        return capsule

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


# CuPy destroys a stream with its object; but an array's memory is used again after what its stream
# has been given when the array goes, which may be later.
_CUPY_STREAMS: dict[int, Any] = {}

_address_of = ctypes.pythonapi.PyCapsule_GetPointer
_address_of.restype = ctypes.c_void_p
_address_of.argtypes = [ctypes.py_object, ctypes.c_char_p]

_MAKERS: dict[str, Callable[[], Converter]] = {
    "torch": _torch,
    "jax": _jax,
    "tensorflow": _tensorflow,
}
