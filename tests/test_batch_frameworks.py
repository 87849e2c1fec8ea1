"""Batches as tensors of other frameworks, over the same memory."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from batches import insert, queue

from gear_reverb import _dtypes, _frameworks


@pytest.mark.parametrize("out", ["torch", "jax", "tensorflow"])
def test_frameworks_share_the_memory(serve, out):
    framework = pytest.importorskip(out)
    client = serve(queue())
    columns = {
        "a": np.arange(6, dtype=np.float32),
        "b": np.array(True),
        "c": np.int32(4),
        "d": np.int64(5),
    }
    extra = {dtype.name: dtype for dtype in _dtypes.EXTRA_DTYPES}
    if "bfloat16" in extra:
        columns["e"] = np.array([1.5, -2], extra["bfloat16"])
    insert(client, [[columns], [columns]], "q")
    batch = client.sample_batch("q", 2, out=out, ragged="pad", beta=0.5, timeout=10)
    assert isinstance(batch.info.key, np.ndarray)
    kind = framework.Array if out == "jax" else framework.Tensor
    for leaf, (name, value) in zip(batch.data, columns.items()):
        if out == "jax" and name == "d":  # 64 bits.
            assert isinstance(leaf, np.ndarray)
        else:
            assert isinstance(leaf, kind)
            dtype = leaf.dtype.name if out == "tensorflow" else str(leaf.dtype)
            assert dtype.removeprefix("torch.") == value.dtype.name
        array = leaf.float().numpy() if name == "e" and out == "torch" else np.asarray(leaf)
        expected = np.broadcast_to(value, (2, 1, *value.shape))
        np.testing.assert_array_equal(array.astype(np.float64), expected.astype(np.float64))
    assert isinstance(batch.lengths, kind)
    assert isinstance(batch.weights, kind)


BUILT_IN = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]
DTYPES = {name: np.dtype(name) for name in BUILT_IN} | {d.name: d for d in _dtypes.EXTRA_DTYPES}


def lacks(out, dtype):
    """Whether the framework has no such dtype, or does not take it by DLPack."""
    if out == "tensorflow":
        return dtype.name.startswith("float8")
    if out == "jax":
        return dtype.itemsize == 8 and dtype.kind != "c"
    return dtype.name == "float8_e4m3b11fnuz"


@pytest.mark.parametrize("out", ["torch", "jax", "tensorflow"])
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_frameworks_do_not_copy(out, dtype):
    pytest.importorskip(out)
    convert = _frameworks.converter(out)
    memory = np.frombuffer(bytearray(4096 + 128), np.uint8)
    memory = memory[-memory.ctypes.data % 128 :][:4096]  # As batches are aligned.
    array = memory.view(dtype)
    if out == "torch" and lacks(out, dtype):
        with pytest.raises(ValueError, match="no dtype"):
            convert(array)
        return
    before = np.array(array)
    converted = convert(array)
    memory[:] = 1
    if out == "torch":
        assert converted.data_ptr() == array.ctypes.data
        assert str(converted.dtype) == f"torch.{dtype.name}"
        return
    assert np.asarray(converted).dtype == dtype
    shown = before if out == "tensorflow" and lacks(out, dtype) else array
    np.testing.assert_array_equal(np.asarray(converted), shown)


@pytest.mark.parametrize("out", ["jax", "tensorflow"])
def test_what_a_framework_does_not_take_is_copied(monkeypatch, out):
    framework = pytest.importorskip(out)

    def refuse(*_):
        raise RuntimeError("no such code")

    library = framework if out == "jax" else framework.experimental
    monkeypatch.setattr(library.dlpack, "from_dlpack", refuse)
    array = np.array([True, False])
    converted = _frameworks.converter(out)(array)
    np.testing.assert_array_equal(np.asarray(converted), array)
    assert np.asarray(converted).dtype == bool


# Of several GPUs each has a current stream, and the sampler's need not be the framework's own.
@pytest.mark.parametrize("out", ["torch", "cupy"])
def test_the_current_stream_is_that_of_the_gpu_that_is_named(monkeypatch, out):
    current = [0]  # The framework's GPU.

    class Device:
        def __init__(self, gpu):
            self.gpu = gpu

        def __enter__(self):
            self.before, current[0] = current[0], self.gpu

        def __exit__(self, *_):
            current[0] = self.before

    def of_torch(device=None):
        return SimpleNamespace(cuda_stream=100 + (current[0] if device is None else device))

    cuda = SimpleNamespace(
        current_stream=of_torch,
        Device=Device,
        get_current_stream=lambda: SimpleNamespace(ptr=100 + current[0]),
    )
    monkeypatch.setitem(sys.modules, out, SimpleNamespace(cuda=cuda))
    assert _frameworks.current_stream(out, 2)() == 102
    assert _frameworks.current_stream(out, 0)() == 100
    assert current == [0]
