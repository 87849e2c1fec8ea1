"""Every element type that Reverb carries survives the way through a server, bit by bit."""

import numpy as np
import pytest

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, np.float32, np.float64]
COMPLEX = [np.complex64, np.complex128]


def values_of(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array([[limits.min, limits.max, 0], [1, limits.max // 3, limits.min // 3]], dtype)
    if dtype.kind == "b":
        return np.array([[True, False, True]])
    extremes = [np.finfo(dtype).max, np.finfo(dtype).tiny, -0.0, np.inf, -np.inf, np.nan, 0.1]
    if dtype.kind == "c":
        return np.array(extremes, dtype) + 1j * np.array([1, -2, 0.5, 0, 0, 0, -0.25], dtype)
    return np.array(extremes, dtype)


def assert_same_bits(actual, expected):
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    assert actual.tobytes() == expected.tobytes()


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(
    "dtype", [*INTEGERS, *FLOATS, np.bool_, *COMPLEX], ids=lambda dtype: np.dtype(dtype).name
)
class TestDtype:
    def test_of_a_trajectory(self, pair, dtype):
        expected = values_of(dtype)
        client = pair.serve()
        with client.trajectory_writer(len(expected)) as writer:
            for value in expected:
                writer.append({"x": value})
            writer.create_item("t", 1.0, {"x": writer.history["x"][:]})
        [sample] = client.sample("t", emit_timesteps=False)
        assert_same_bits(sample.data[0], expected)

    def test_of_a_scalar(self, pair, dtype):
        expected = values_of(dtype).ravel()[1]
        client = pair.serve()
        client.insert([expected], {"t": 1.0})
        [[step]] = client.sample("t")
        assert_same_bits(step.data[0], np.asarray(expected))

    def test_in_a_signature(self, pair, dtype, describe):
        client = pair.serve(pair.table(signature=[pair.server_lib.spec([2], dtype)]))
        client.insert([np.zeros(2, dtype)], {"t": 1.0})
        [steps] = client.sample("t", unpack_as_table_signature=True)
        assert steps[0].data[0].dtype == np.dtype(dtype)
        assert describe(client.server_info()["t"].signature) == [((2,), np.dtype(dtype).name)]


@pytest.mark.parametrize(
    "value,dtype",
    [(3, np.int64), (2.5, np.float64), (True, np.bool_), (1j, np.complex128)],
    ids=["int", "float", "bool", "complex"],
)
def test_python_numbers_become_the_widest_type(pair, value, dtype):
    client = pair.serve()
    client.insert([value], {"t": 1.0})
    [[step]] = client.sample("t")
    assert_same_bits(step.data[0], np.asarray(value, dtype))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12).reshape(3, 4).T,
        np.arange(20)[::2],
        np.arange(5)[::-1],
        np.broadcast_to(np.float32(3), (2, 3)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    ],
    ids=["transposed", "strided", "reversed", "broadcast", "fortran"],
)
def test_memory_layout_does_not_matter(pair, array):
    client = pair.serve()
    client.insert([array], {"t": 1.0})
    [[step]] = client.sample("t")
    np.testing.assert_array_equal(step.data[0], array)


@pytest.mark.parametrize(
    "value", [np.zeros(2, "datetime64[s]"), None, np.array([1, "x"], object)], ids=repr
)
def test_what_is_no_tensor_is_refused(pair, value):
    client = pair.serve()
    with pytest.raises((TypeError, ValueError)):
        client.insert({"x": value}, {"t": 1.0})
    assert client.size("t") == 0
