"""Arrays of a batch as tensors of other frameworks, by DLPack and without a copy.

A framework is imported when a converter for it is made. Text stays a NumPy object array, but for
TensorFlow.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Converter = Callable[[np.ndarray], Any]

# Of those dtypes that NumPy's DLPack does not know: an integer of the same size.
_CARRIERS = {
    "bool": np.uint8,
    "bfloat16": np.uint16,
    "float8_e5m2": np.uint8,
    "float8_e4m3fn": np.uint8,
    "float8_e4m3fnuz": np.uint8,
    "float8_e4m3b11fnuz": np.uint8,
    "float8_e5m2fnuz": np.uint8,
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
        from cupy import from_dlpack

    def convert(array: Any) -> Any:
        # Text stays on the host.
        return array if isinstance(array, np.ndarray) else from_dlpack(array)

    return convert


def _jax_gpu() -> Converter:
    import jax

    def convert(array: Any) -> Any:
        # JAX would cut 64-bit numbers down, unless it was told to keep them.
        if isinstance(array, np.ndarray) or (_is_wide(array) and not jax.config.jax_enable_x64):
            return array
        return jax.dlpack.from_dlpack(array)

    return convert


def _is_wide(array: Any) -> bool:
    return array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1) > 4


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
        return torch.from_dlpack(array.view(carrier)).view(dtype)

    return convert


def _jax() -> Converter:
    import jax

    def convert(array: np.ndarray) -> Any:
        if array.dtype == object or (_is_wide(array) and not jax.config.jax_enable_x64):
            return array
        if array.dtype.name not in _CARRIERS:
            return jax.dlpack.from_dlpack(array)
        carried = jax.dlpack.from_dlpack(array.view(_CARRIERS[array.dtype.name]))
        if array.dtype == bool:
            return carried.astype(bool)  # A copy; JAX has no bitcast to bool.
        return jax.lax.bitcast_convert_type(carried, array.dtype)

    return convert


def _tensorflow() -> Converter:
    import tensorflow as tf

    def convert(array: np.ndarray) -> Any:
        if array.dtype == object:
            return tf.constant(array, tf.string)
        if array.size == 0:
            return tf.zeros(array.shape, array.dtype)
        if array.dtype.name.startswith("float8"):
            return tf.constant(array)  # A copy; TensorFlow has no bitcast to these.
        if array.dtype.name not in _CARRIERS:
            return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
        view = array.view(_CARRIERS[array.dtype.name])
        carried = tf.experimental.dlpack.from_dlpack(view.__dlpack__())
        if array.dtype == bool:
            return tf.cast(carried, tf.bool)  # A copy; TensorFlow has no bitcast to bool.
        return tf.bitcast(carried, tf.as_dtype(array.dtype.name))

    return convert


_MAKERS: dict[str, Callable[[], Converter]] = {
    "torch": _torch,
    "jax": _jax,
    "tensorflow": _tensorflow,
}
