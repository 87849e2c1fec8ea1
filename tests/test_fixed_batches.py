"""Batches that a device draws into always the same arrays, on the kernels' twin."""

import numpy as np
import pytest
from batches import LENGTH, alike, insert, queue, steps
from devices import ON_DEVICE
from tables import make_table

import gear_reverb
from gear_reverb import selectors

# A device has the data of a server in its process.
pytestmark = pytest.mark.other_plane


def test_fixed_batches(serve):
    client = serve(make_table(sampler=selectors.Prioritized(1.0), max_size=50))
    rng = np.random.default_rng(8)
    with client.fixed_batch_sampler("t", 8, **ON_DEVICE, beta=0.5, seed=3) as sampler:
        for call in (sampler.enqueue, lambda: sampler.batch):
            with pytest.raises(RuntimeError, match="prepare"):
                call()
        with pytest.raises(gear_reverb.DeadlineExceededError):
            sampler.prepare(timeout=0.01)
        batch = None
        drawn = []
        for round_ in range(30):
            values = np.arange(9 * LENGTH * 2).reshape(9, LENGTH, 2) + 1000 * round_
            keys = client.insert_batch("t", [values], rng.uniform(1, 2, 9))
            sampler.prepare()
            sampler.enqueue()
            if batch is None:
                batch = sampler.batch
                known = {}
            known.update(zip(keys.tolist(), values))
            assert sampler.batch is batch
            assert sampler.table_size == min(9 * (round_ + 1), 50)
            assert batch.info.table_size is None and batch.info.times_sampled is None
            for key, row in zip(batch.info.key, batch.data[0]):
                np.testing.assert_array_equal(row, known[int(key)])
            assert batch.weights.max() == 1
            drawn.append(batch.info.key.copy())
        info = client.server_info()["t"]
        assert info.rate_limiter_info.sample_stats.completed == 30 * 8
        sampler.prepare()
    info = client.server_info()["t"]
    assert info.num_unused_samples == 8
    assert len({tuple(keys) for keys in drawn}) == 30
    with pytest.raises(RuntimeError, match="closed"):
        sampler.prepare()
    sampler.close()
    assert batch.data[0].shape == (8, LENGTH, 2)


def test_fixed_batches_draw_as_others_do(serve):
    client = serve(make_table(sampler=selectors.Prioritized(0.7)))
    rng = np.random.default_rng(9)
    insert(client, alike(rng, 20), priority=[float(p) for p in rng.uniform(1, 9, 20)])
    options = {**ON_DEVICE, "seed": 5, "beta": 0.4}
    with (
        client.batch_sampler("t", 6, draw="device", **options) as one,
        client.fixed_batch_sampler("t", 6, **options) as other,
    ):
        for a in (next(one) for _ in range(4)):
            other.prepare()
            other.enqueue()
            b = other.batch
            np.testing.assert_array_equal(a.info.key, b.info.key)
            np.testing.assert_array_equal(a.weights, b.weights)
            for x, y in zip(a.data, b.data):
                np.testing.assert_array_equal(x, y)


def test_fixed_batches_say_what_they_cannot_do(serve):
    client = serve(make_table(signature=None, max_size=10), queue())
    for arguments, message in [
        ({"batch_size": 0}, "batch_size"),
        ({"beta": -1.0}, "beta"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"cast": {"int8": "int4"}}, "int8"),
        ({"device": "tpu"}, "device must be"),
        ({"seed": -1}, "seed"),
        ({"out": "jax"}, "out='jax' has arrays that never change"),
        ({"draw": "host"}, "draw must be 'device' or 'top_k', but is 'host'"),
        ({"draw": "top_k", "batch_size": 1025}, "must be at most 1024"),
    ]:
        with pytest.raises(ValueError, match=message):
            client.fixed_batch_sampler(**{"table": "t", "batch_size": 2, **ON_DEVICE} | arguments)
    for table in ("q", "nothing"):
        with pytest.raises(gear_reverb.ReverbError):
            client.fixed_batch_sampler(table, 2, **ON_DEVICE)
    insert(client, [steps(1, 2)])
    with client.fixed_batch_sampler("t", 2, **ON_DEVICE) as sampler:
        sampler.prepare()
        insert(client, [steps(1)])
        for call in (sampler.prepare, sampler.enqueue):
            with pytest.raises(gear_reverb.ReverbError, match="dtype, shape and number of steps"):
                call()
    client.reset("t")
    insert(client, [steps(1, 2)])
    with client.fixed_batch_sampler("t", 2, **ON_DEVICE) as sampler:
        sampler.prepare()
        client.reset("t")
        with pytest.raises(gear_reverb.DeadlineExceededError):
            sampler.prepare(timeout=0)
        insert(client, [steps(1)])
        for call in (sampler.prepare, sampler.enqueue):
            with pytest.raises(gear_reverb.ReverbError, match="no longer as they were"):
                call()
    with client.fixed_batch_sampler("t", 2, **ON_DEVICE, max_bytes=7) as sampler:
        with pytest.raises(ValueError, match="max_bytes"):
            sampler.prepare()


def test_first_items_in_place(serve):
    uniform = make_table("u", sampler=selectors.Uniform())
    client = serve(make_table(sampler=selectors.MaxHeap()), uniform)
    with pytest.raises(ValueError, match="Only an ordered strategy"):
        client.fixed_batch_sampler("u", 3, **ON_DEVICE, draw="top_k")
    with client.fixed_batch_sampler("t", 3, **ON_DEVICE, draw="top_k") as sampler:
        keys = client.insert_batch("t", [np.arange(2, dtype=np.int32)[:, None]], [5.0, 6.0])
        with pytest.raises(gear_reverb.ReverbError, match="Cannot give the first 3 of 2 items"):
            sampler.prepare()
        first = {6.0: keys[1], 5.0: keys[0]}
        for priority in (1.0, 9.0, 7.0, 2.0):
            [key] = client.insert_batch("t", [np.zeros((1, 1), np.int32)], priority)
            first[priority] = key
            sampler.prepare()
            sampler.enqueue()
            wanted = sorted(first, reverse=True)[:3]
            assert np.asarray(sampler.batch.info.key).tolist() == [first[p] for p in wanted]
            assert np.asarray(sampler.batch.info.priority).tolist() == wanted
