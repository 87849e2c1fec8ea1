"""Delta encoding is lossless for every type, wrap-around included."""

import numpy as np
import pytest

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: np.dtype(dtype).name)
def test_integers_that_wrap_around(pair, dtype):
    limits = np.iinfo(dtype)
    steps = np.array(
        [[limits.max, 0], [limits.min, 1], [limits.max, limits.max], [0, limits.min], [5, 7]], dtype
    )
    client = pair.serve()
    with client.writer(5, delta_encoded=True, chunk_length=3) as writer:
        for step in steps:
            writer.append([step])
        writer.create_item("t", 5, 1.0)
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].dtype == dtype
    np.testing.assert_array_equal(sample.data[0], steps)


@pytest.mark.parametrize("make", [float, np.float32, np.bool_, np.complex64, str], ids=str)
def test_other_types_are_left_alone(pair, make):
    client = pair.serve()
    with client.writer(4, delta_encoded=True, chunk_length=2) as writer:
        for i in range(4):
            writer.append([make(i)])
        writer.create_item("t", 4, 1.0)
    [sample] = client.sample("t", emit_timesteps=False)
    expected = [str(i).encode() for i in range(4)] if make is str else [make(i) for i in range(4)]
    assert sample.data[0].tolist() == expected


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 4)], ids=str)
def test_shapes(pair, shape):
    steps = np.random.default_rng(1).integers(0, 256, (6, *shape), dtype=np.uint8)
    client = pair.serve(pair.table(max_times_sampled=1))
    with client.writer(6, delta_encoded=True, chunk_length=4) as writer:
        for i, step in enumerate(steps):
            writer.append([step])
            if i >= 2:
                writer.create_item("t", 3, 1.0)
    for i, sample in enumerate(client.sample("t", 4, emit_timesteps=False)):
        np.testing.assert_array_equal(sample.data[0], steps[i : i + 3])
