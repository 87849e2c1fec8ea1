"""`Table.queue` and `Table.stack`."""

import pytest


def test_a_queue_gives_every_item_once_in_order(pair):
    client = pair.serve(pair.server_lib.Table.queue("t", 5))
    for i in range(5):
        client.insert([i], {"t": 1.0})
    assert client.values("t", 2) == [0, 1]
    client.insert([5], {"t": 1.0})
    assert client.values("t", 4) == [2, 3, 4, 5]
    assert client.size("t") == 0


def test_a_stack_gives_every_item_once_the_newest_first(pair):
    client = pair.serve(pair.server_lib.Table.stack("t", 5))
    for i in range(5):
        client.insert([i], {"t": 1.0})
    assert client.values("t", 2) == [4, 3]
    client.insert([5], {"t": 1.0})
    assert client.values("t", 4) == [5, 2, 1, 0]
    assert client.size("t") == 0


@pytest.mark.parametrize("kind,selector", [("queue", "fifo"), ("stack", "lifo")])
def test_is_an_ordinary_table_with_these_options(lib, kind, selector):
    info = getattr(lib.Table, kind)("name", 7).info
    assert (info.name, info.max_size, info.max_times_sampled) == ("name", 7, 1)
    assert info.sampler_options.WhichOneof("distribution") == selector
    assert info.remover_options.WhichOneof("distribution") == selector
    limiter = info.rate_limiter_info
    assert (limiter.samples_per_insert, limiter.min_size_to_sample) == (1.0, 1)
    assert (limiter.min_diff, limiter.max_diff) == (0.0, 7.0)


@pytest.mark.parametrize("kind", ["queue", "stack"])
def test_takes_a_signature(lib, kind, describe):
    table = getattr(lib.Table, kind)("name", 7, signature={"x": lib.spec([2], "int32")})
    assert describe(table.info.signature) == {"x": ((2,), "int32")}


@pytest.mark.parametrize("kind", ["queue", "stack"])
def test_a_full_one_takes_nothing(pair, kind):
    table = getattr(pair.server_lib.Table, kind)("t", 2)
    client = pair.serve(table)
    for i in range(2):
        assert table.can_insert(1)
        client.insert([i], {"t": 1.0})
    assert not table.can_insert(1)
    assert table.can_sample(2) and not table.can_sample(3)
    client.values("t", 1)
    assert table.can_insert(1) and not table.can_insert(2)


def test_deleting_from_a_queue_makes_no_room(pair):
    # The limiter counts inserts and samples, not items.
    table = pair.server_lib.Table.queue("t", 2)
    client = pair.serve(table)
    client.insert([1], {"t": 1.0})
    client.insert([2], {"t": 1.0})
    [[first]] = client.sample("t")
    client.insert([3], {"t": 1.0})
    client.mutate_priorities("t", deletes=[first.info.key])
    assert not table.can_insert(1)
