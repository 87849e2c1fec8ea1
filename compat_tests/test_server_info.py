"""The twelve fields of `TableInfo`, and how a client gets them."""

import numpy as np
import pytest

FIELDS = [
    "name",
    "sampler_options",
    "remover_options",
    "max_size",
    "max_times_sampled",
    "rate_limiter_info",
    "signature",
    "current_size",
    "num_episodes",
    "num_deleted_episodes",
    "num_unique_samples",
    "table_worker_time",
]
SELECTORS = {
    "Fifo": ([], "fifo", True),
    "Lifo": ([], "lifo", True),
    "Uniform": ([], "uniform", False),
    "Prioritized": ([0.75], "prioritized", False),
    "MaxHeap": ([], "heap", True),
    "MinHeap": ([], "heap", True),
}


def test_every_table_by_name(pair):
    client = pair.serve(pair.table("a"), pair.table("b"), pair.table("c"))
    info = client.server_info()
    assert set(info) == {"a", "b", "c"}
    assert all(info[name].name == name for name in info)


def test_fields(pair):
    info = pair.serve().server_info()["t"]
    for field in FIELDS:
        getattr(info, field)
    assert info.signature is None
    numbers = ["max_size", "max_times_sampled", "current_size", "num_episodes"]
    numbers += ["num_deleted_episodes", "num_unique_samples"]
    assert [type(getattr(info, field)) for field in numbers] == [int] * 6


def test_values_of_a_used_table(pair):
    limiter = pair.rate_limiters.SampleToInsertRatio(2.0, 3, (-10.0, 50.0))
    table = pair.table(
        "t", pair.selectors.Uniform(), max_size=5, max_times_sampled=4, rate_limiter=limiter
    )
    client = pair.serve(table)
    with client.trajectory_writer(1) as writer:
        for _ in range(7):
            writer.append([1])
            writer.create_item("t", 1.0, [writer.history[0][-1:]])
            writer.end_episode()
    client.values("t", 3)
    info = client.server_info()["t"]
    assert (info.max_size, info.max_times_sampled) == (5, 4)
    assert (info.current_size, info.num_episodes, info.num_deleted_episodes) == (5, 5, 2)
    assert 1 <= info.num_unique_samples <= 3
    limiter = info.rate_limiter_info
    assert (limiter.samples_per_insert, limiter.min_size_to_sample) == (2.0, 3)
    assert (limiter.min_diff, limiter.max_diff) == (-10.0, 50.0)
    assert (limiter.insert_stats.completed, limiter.sample_stats.completed) == (7, 3)


@pytest.mark.parametrize("selector", SELECTORS)
def test_selector_options(pair, selector):
    arguments, distribution, deterministic = SELECTORS[selector]

    def make():
        return getattr(pair.selectors, selector)(*arguments)

    info = pair.serve(pair.table(sampler=make(), remover=make())).server_info()["t"]
    for options in [info.sampler_options, info.remover_options]:
        assert options.WhichOneof("distribution") == distribution
        assert options.is_deterministic is deterministic
        if selector == "Prioritized":
            assert options.prioritized.priority_exponent == 0.75
        if distribution == "heap":
            assert options.heap.min_heap is (selector == "MinHeap")


def test_unique_samples_are_items_and_stay_counted(pair):
    client = pair.serve(pair.table(max_times_sampled=2))
    for i in range(3):
        client.insert([i], {"t": 1.0})
    for drawn, unique in [(1, 1), (1, 1), (1, 2), (1, 2)]:
        client.values("t", drawn)
        assert client.server_info()["t"].num_unique_samples == unique


def test_signature(pair, describe):
    spec = pair.server_lib.spec
    signature = {
        "b": [spec([None, 2], np.float32), spec([], np.int64)],
        "a": {"x": spec([3], np.uint8), "y": spec([0], np.bool_)},
    }
    client = pair.serve(pair.table(signature=signature))
    assert describe(client.server_info()["t"].signature) == {
        "b": [((None, 2), "float32"), ((), "int64")],
        "a": {"x": ((3,), "uint8"), "y": ((0,), "bool")},
    }


def test_the_table_itself_says_the_same(pair):
    table = pair.table(max_size=3)
    client = pair.serve(table)
    for i in range(5):
        client.insert([i], {"t": 1.0})
    client.values("t", 2)
    here, there = table.info, client.server_info()["t"]
    for field in FIELDS:
        if field != "table_worker_time":
            mine, other = getattr(here, field), getattr(there, field)
            assert str(mine) == str(other), field


@pytest.mark.parametrize("timeout", [None, 0, 20])
def test_timeouts(pair, timeout):
    assert set(pair.serve().server_info(timeout)) == {"t"}


def test_equality(lib):
    info = lib.table().info
    changed = lib.table().info
    changed.table_worker_time = info.table_worker_time
    assert changed == info
    changed.max_size = 3
    assert changed != info
