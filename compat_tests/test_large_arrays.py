"""Steps beyond the sizes at which clients and servers split messages."""

import numpy as np
import pytest


def noise(num_bytes):
    return np.random.default_rng(0).integers(0, 256, num_bytes, dtype=np.uint8)


@pytest.mark.parametrize("megabytes", [5, 45])
def test_one_step(pair, megabytes):
    expected = noise(megabytes << 20)
    client = pair.serve()
    client.insert([expected], {"t": 1.0})
    [[step]] = client.sample("t")
    np.testing.assert_array_equal(step.data[0], expected)


def test_many_chunks_that_are_large_together(pair):
    expected = noise(24 << 20).reshape(12, -1)
    client = pair.serve()
    with client.trajectory_writer(12) as writer:
        writer.configure((0,), num_keep_alive_refs=12, max_chunk_length=2)
        for row in expected:
            writer.append([row])
        writer.create_item("t", 1.0, [writer.history[0][1:]])
    [sample] = client.sample("t", emit_timesteps=False)
    np.testing.assert_array_equal(sample.data[0], expected[1:])


def test_samples_that_are_large_together(pair):
    client = pair.serve(pair.table(max_times_sampled=1))
    for i in range(8):
        client.insert([np.full(1 << 20, i, np.uint8)], {"t": 1.0})
    samples = client.sample("t", 8, emit_timesteps=False)
    assert [(s.data[0].min(), s.data[0].max()) for s in samples] == [(i, i) for i in range(8)]
