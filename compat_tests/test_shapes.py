"""Arrays of any shape: scalars, empty axes, many axes."""

import numpy as np
import pytest

SHAPES = [(), (0,), (3, 0), (0, 3), (1,), (1, 1, 1), (2, 3, 4, 5, 6), (1000,)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_step(pair, shape):
    expected = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    client = pair.serve()
    client.insert([expected], {"t": 1.0})
    [[step]] = client.sample("t")
    assert (step.data[0].dtype, step.data[0].shape) == (np.int32, shape)
    np.testing.assert_array_equal(step.data[0], expected)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_trajectory_over_two_chunks(pair, shape):
    client = pair.serve()
    with client.trajectory_writer(4) as writer:
        writer.configure((0,), num_keep_alive_refs=4, max_chunk_length=2)
        for i in range(4):
            writer.append([np.full(shape, i, np.float32)])
        writer.create_item("t", 1.0, [writer.history[0][1:]])
    [sample] = client.sample("t", emit_timesteps=False)
    expected = np.stack([np.full(shape, i, np.float32) for i in range(1, 4)])
    assert (sample.data[0].dtype, sample.data[0].shape) == (np.float32, (3, *shape))
    np.testing.assert_array_equal(sample.data[0], expected)


def test_many_columns(pair):
    client = pair.serve()
    client.insert([np.full([i % 3], i) for i in range(200)], {"t": 1.0})
    [[step]] = client.sample("t")
    assert [leaf.tolist() for leaf in step.data] == [[i] * (i % 3) for i in range(200)]
