"""Batches that a device draws by itself, on the kernels' twin."""

import threading
import time

import numpy as np
import pytest
from batches import LENGTH, alike, insert, queue, samples_done, steps
from devices import DEVICE, ON_DEVICE
from processes import wait_until
from tables import make_table

import gear_reverb
from gear_reverb import rate_limiters, selectors

# A device has the data of a server in its process.
pytestmark = pytest.mark.other_plane


def check(batch, expected):
    for i, key in enumerate(batch.info.key):
        priority, data = expected[int(key)]
        assert batch.info.priority[i] == priority
        for column, wanted in zip(batch.data, data):
            np.testing.assert_array_equal(column[i], wanted)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_batches_have_what_the_table_has(serve, prefetch):
    client = serve(make_table(sampler=selectors.Prioritized(0.8)))
    rng = np.random.default_rng(1)
    priorities = [float(p) for p in rng.integers(0, 5, 40)]
    insert(client, alike(rng, 40), priority=priorities)
    total = sum(p**0.8 for p in priorities)
    options = {**ON_DEVICE, "draw": "device", "prefetch": prefetch, "beta": 0.5}
    with client.batch_sampler("t", 16, **options) as sampler:
        drawn = [next(sampler) for _ in range(20)]
        assert sampler.device_stats()["why_host_draws"] == ""
        shown = f"BatchSampler, table=t, batch_size=16, device={DEVICE}, draw=device"
        assert repr(sampler) == shown
    with client.batch_sampler("t", 1) as sampler:
        expected = {}
        while len(expected) < sum(p > 0 for p in priorities):
            batch = next(sampler)
            data = [column[0] for column in batch.data]
            expected[int(batch.info.key[0])] = (batch.info.priority[0], data)
    for batch in drawn:
        check(batch, expected)
        assert batch.info.times_sampled is None
        np.testing.assert_array_equal(batch.info.table_size, [40] * 16)
        assert batch.info.table_size.dtype == np.int64
        np.testing.assert_allclose(batch.info.probability, batch.info.priority**0.8 / total)
        weights = (40 * batch.info.probability) ** -0.5
        np.testing.assert_allclose(batch.weights, weights / weights.max(), rtol=1e-6)
        assert batch.weights.dtype == np.float32 and batch.lengths is None
    keys = np.concatenate([batch.info.key for batch in drawn])
    assert len(set(keys)) > 20


def test_a_changing_table(serve):
    client = serve(make_table(max_size=30))
    rng = np.random.default_rng(2)
    options = {**ON_DEVICE, "draw": "device", "prefetch": 0}
    with client.batch_sampler("t", 8, **options) as sampler:
        for _ in range(20):
            keys = client.insert_batch(
                "t",
                [np.full((7, LENGTH, 3), i, np.int32) for i in range(2)],
                rng.uniform(1, 2, 7),
            )
            client.mutate_priorities("t", {int(keys[0]): 7.5}, deletes=[int(keys[1])])
            batch = next(sampler)
            present = client.server_info()["t"].current_size
            assert (batch.info.table_size == present).all()
            assert (batch.info.key != keys[1]).all()
            assert (batch.info.priority[batch.info.key == keys[0]] == 7.5).all()
            assert batch.data[1].shape == (8, LENGTH, 3) and (batch.data[1] == 1).all()


def test_equal_seeds_draw_equal_batches(serve):
    client = serve(make_table(sampler=selectors.Prioritized(1.0)))
    rng = np.random.default_rng(3)
    insert(client, alike(rng, 30), priority=[float(p) for p in rng.uniform(1, 9, 30)])

    def keys(seed, prefetch):
        options = {**ON_DEVICE, "draw": "device", "seed": seed, "prefetch": prefetch}
        with client.batch_sampler("t", 10, **options) as sampler:
            return np.concatenate([next(sampler).info.key for _ in range(5)])

    np.testing.assert_array_equal(keys(4, 0), keys(4, 3))
    assert (keys(4, 0) != keys(5, 0)).any()


def test_casts_and_frameworks(serve):
    torch = pytest.importorskip("torch")
    client = serve(make_table())
    insert(client, alike(np.random.default_rng(4), 5))
    options = {**ON_DEVICE, "out": "torch", "draw": "device", "beta": 1.0}
    with client.batch_sampler(
        "t", 4, cast={"float32": "bfloat16", "uint8": "float16"}, **options
    ) as sampler:
        batch = next(sampler)
    assert batch.data[0].dtype == torch.bfloat16 and batch.data[0].shape == (4, LENGTH, 11)
    assert batch.data[1].dtype == torch.float16 and batch.data[2].dtype == torch.int64
    assert isinstance(batch.info.key, np.ndarray) == (DEVICE == "cpu")
    assert batch.info.priority.tolist() == [1.0] * 4
    assert batch.weights.tolist() == [1.0] * 4


def test_draws_are_counted(serve):
    client = serve(make_table())
    insert(client, alike(np.random.default_rng(5), 3))
    with client.batch_sampler("t", 6, **ON_DEVICE, draw="device", prefetch=0) as sampler:
        keys = np.concatenate([next(sampler).info.key for _ in range(4)])
        next(sampler)  # A GPU's draws are told by a later batch.
        info = client.server_info()["t"]
        assert info.rate_limiter_info.sample_stats.completed == 30
        assert info.num_unique_samples == len(set(keys))
    # By the oldest first, the only one that this draws.
    batch = client.sample_batch("t", 1)
    assert batch.info.times_sampled[0] == 30 + 1 and batch.info.key[0] == keys[0]
    with client.batch_sampler("t", 6, **ON_DEVICE, draw="device", prefetch=3) as sampler:
        next(sampler)
        before = client.server_info()["t"].num_unused_samples
        wait_until(lambda: samples_done(client, "t") >= 30 + 4 * 6)
    assert client.server_info()["t"].num_unused_samples >= before + 18


ORDERS = {  # What an item is ordered by, of its key's place in time and its priority.
    selectors.Fifo: lambda age, priority: age,
    selectors.Lifo: lambda age, priority: -age,
    selectors.MinHeap: lambda age, priority: (priority, age),
    selectors.MaxHeap: lambda age, priority: (-priority, age),
}


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("sampler", ORDERS)
def test_the_first_items_of_an_order(serve, sampler, prefetch):
    client = serve(make_table(sampler=sampler(), max_size=60))
    rng = np.random.default_rng(12)
    options = {**ON_DEVICE, "draw": "top_k", "prefetch": prefetch, "beta": 0.7}
    priorities, keys = {}, []
    with client.batch_sampler("t", 7, **options) as first:
        for round_ in range(6):
            values = rng.integers(0, 99, (20, LENGTH, 2))
            added = rng.integers(1, 9, 20).astype(float)
            new = client.insert_batch("t", [values], added).tolist()
            keys = (keys + new)[-60:]
            priorities.update(zip(new, added))
            expected = sorted(keys, key=lambda k: ORDERS[sampler](keys.index(k), priorities[k]))[:7]
            for _ in range(prefetch + 1):  # Those drawn ahead are of the table as it was.
                next(first)
            batch = next(first)
            assert batch.info.key.tolist() == expected
            assert batch.info.priority.tolist() == [priorities[key] for key in expected]
            assert batch.info.probability.tolist() == batch.weights.tolist() == [1.0] * 7
            assert batch.data[0].shape == (7, LENGTH, 2)
            if round_ == 0:
                where = [new.index(key) for key in expected]
                np.testing.assert_array_equal(batch.data[0], values[where])
        assert first.device_stats()["why_host_draws"] == ""
        taken = 7 * 6 * (prefetch + 2)
        wait_until(lambda: samples_done(client, "t") == taken + 7 * prefetch)
    assert client.server_info()["t"].num_unused_samples == 7 * prefetch


def test_first_items_say_what_they_cannot_do(serve):
    client = serve(make_table("u", sampler=selectors.Uniform()), make_table(), queue())
    for table in ("t", "u"):
        insert(client, [steps(1, 2)] * 3, table=table)
    top_k = {**ON_DEVICE, "draw": "top_k", "prefetch": 0}
    with client.batch_sampler("u", 2, **top_k) as first:
        with pytest.raises(ValueError, match="Only an ordered strategy"):
            next(first)
    with client.batch_sampler("t", 1025, **top_k) as first:
        with pytest.raises(ValueError, match=r"batch_size \(1025\) must be at most 1024"):
            next(first)
    with client.batch_sampler("t", 4, **top_k) as first:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="first 4 of 3 items"):
                next(first)
        insert(client, [steps(7, 8)])
        assert next(first).data[0].tolist() == [[1, 2]] * 3 + [[7, 8]]
        insert(client, [steps(1, 2, 3)])
        for _ in range(2):
            with pytest.raises(RuntimeError, match="Only a device draws 'top_k'.*column 0"):
                next(first)


def test_the_rate_limiter_rules(serve):
    limiter = rate_limiters.SampleToInsertRatio(2.0, min_size_to_sample=1, error_buffer=4.0)
    client = serve(make_table(rate_limiter=limiter))
    insert(client, alike(np.random.default_rng(6), 2))
    done = lambda: client.server_info()["t"].rate_limiter_info.sample_stats.completed  # noqa: E731
    options = {**ON_DEVICE, "draw": "device", "prefetch": 0}
    with client.batch_sampler("t", 4, timeout=0.05, **options) as sampler:
        taken = 0
        with pytest.raises(gear_reverb.DeadlineExceededError):
            while True:
                next(sampler)
                taken += 4
        assert taken <= done() < taken + 4
        insert(client, alike(np.random.default_rng(7), 2))
        assert len(next(sampler).info.key) == 4  # Goes on with what was allowed.
        assert done() == taken + 4


def test_closing_ends_a_wait(serve):
    client = serve(make_table())
    for prefetch in (0, 2):
        sampler = client.batch_sampler("t", 2, **ON_DEVICE, draw="device", prefetch=prefetch)
        failed = []

        def draw(sampler=sampler, failed=failed):
            with pytest.raises(gear_reverb.ReverbError):
                next(sampler)
            failed.append(True)

        thread = threading.Thread(target=draw)
        thread.start()
        time.sleep(0.05)
        sampler.close()
        thread.join(10)
        assert failed


@pytest.mark.parametrize(
    "why, add",
    [
        ("its items have 1 or 2 columns", {"y": np.int32(1)}),
        ("does not always have the same dtype, shape and number of steps", None),
    ],
)
def test_falls_back_to_draws_by_the_host(serve, why, add):
    client = serve(make_table(signature=None))
    insert(client, [steps(1, 2, 3)])
    with client.batch_sampler("t", 2, **ON_DEVICE, draw="device", prefetch=0) as sampler:
        assert next(sampler).info.times_sampled is None
        client.reset("t")
        insert(client, [steps(1, 2, 3)])
        assert next(sampler).info.times_sampled is None
        insert(client, [[{**steps(1)[0], **add}]] if add else [steps(4, 5)])
        insert(client, [steps(6, 7, 8)] * 2)
        drawn = 0
        while drawn < 5:  # Batches of items that are not alike fail, as the host's do.
            try:
                batch = next(sampler)
            except ValueError:
                continue
            assert batch.info.times_sampled is not None
            drawn += 1
        assert why in sampler.device_stats()["why_host_draws"]
        assert why in repr(sampler) and "by the host, since" in repr(sampler)


def test_text_is_drawn_by_the_host(serve):
    client = serve(make_table(signature=None))
    insert(client, [[{"text": "a"}], [{"text": "b"}]])
    with client.batch_sampler("t", 3, **ON_DEVICE, draw="device") as sampler:
        assert set(next(sampler).data[0].ravel()) <= {b"a", b"b"}
        assert sampler.device_stats()["why_host_draws"] == "column 0 of its items is text"


def test_bad_arguments(serve):
    client = serve(make_table(), queue())
    insert(client, [steps(1)])
    insert(client, [steps(1)], table="q")
    for arguments, message in [
        ({"draw": "gpu"}, "draw must be 'host', 'device' or 'top_k', but is 'gpu'"),
        ({"draw": "device"}, "draw='device' needs a device, which may be 'cpu'"),
        ({"draw": "top_k"}, "draw='top_k' needs a device, which may be 'cpu'"),
    ]:
        with pytest.raises(ValueError, match=message):
            client.batch_sampler("t", 2, **arguments)
    with client.batch_sampler("q", 2, **ON_DEVICE, draw="device") as sampler:
        with pytest.raises(gear_reverb.ReverbError, match="max_times_sampled"):
            next(sampler)
    with client.batch_sampler("t", 2, **ON_DEVICE, draw="device", max_bytes=7) as sampler:
        with pytest.raises(ValueError, match="8 bytes, which is more than max_bytes"):
            next(sampler)


def test_needs_a_server_of_this_process(remote):
    insert(remote, [steps(1)])
    with remote.batch_sampler("t", 2, **ON_DEVICE, draw="device") as sampler:
        with pytest.raises(ValueError, match="draw='device' needs a server in this process"):
            next(sampler)
    with pytest.raises(ValueError, match="fixed_batch_sampler needs a server in this process"):
        remote.fixed_batch_sampler("t", 2, **ON_DEVICE)


def test_items_are_let_go_of(serve):
    """A sampler holds what it may read; the server has the memory back once it closes."""
    client = serve(make_table(max_size=10))
    rng = np.random.default_rng(10)
    sampler = client.batch_sampler("t", 4, **ON_DEVICE, draw="device", prefetch=0)
    for _ in range(50):
        insert(client, alike(rng, 5))
        check_shapes(next(sampler))
    sampler.close()
    check_shapes(client.sample_batch("t", 4))


def check_shapes(batch):
    assert [column.shape[:2] for column in batch.data] == [(4, LENGTH)] * 3
