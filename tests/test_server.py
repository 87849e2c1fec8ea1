"""Servers and tables."""

import concurrent.futures
import threading

import numpy as np
import pytest
from tables import make_table

import gear_reverb
from gear_reverb import selectors

SECONDS = 30  # For threads that should end at once.


def test_servers_pick_a_free_port():
    servers = [gear_reverb.Server([make_table()]) for _ in range(2)]
    assert servers[0].port != servers[1].port
    assert servers[0].localhost_client().server_address == f"localhost:{servers[0].port}"
    assert str(servers[0].port) in repr(servers[0])
    for server in servers:
        server.stop()
        server.stop()


def test_a_server_that_cannot_start_leaves_anothers_tables_alone():
    table = make_table()
    server = gear_reverb.Server([table])
    with pytest.raises(RuntimeError, match="Cannot listen on port"):
        gear_reverb.Server([table], port=server.port)
    client = server.localhost_client()
    client.insert([1], {"t": 1.0})
    assert table.info.current_size == 1
    server.stop()


@pytest.mark.parametrize("tables", [None, [], ()])
def test_servers_need_tables(tables):
    with pytest.raises(ValueError, match="At least one table must be provided"):
        gear_reverb.Server(tables)


def test_tables_of_a_server_differ_in_name():
    with pytest.raises(ValueError, match="same name: same"):
        gear_reverb.Server([make_table("same"), make_table("same"), make_table("other")])


def test_wait_returns_when_the_server_stops():
    server = gear_reverb.Server([make_table()])
    waiting = threading.Thread(target=server.wait)
    waiting.start()
    server.stop()
    waiting.join(SECONDS)
    assert not waiting.is_alive()


@pytest.mark.parametrize(
    "options,message",
    [
        ({"name": ""}, "name must be nonempty"),
        ({"max_size": 0}, r"max_size \(0\) must be a positive integer"),
        ({"signature": {"a": 3}}, "Unsupported signature spec"),
    ],
)
def test_tables_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        make_table(**options)


def test_tables_say_what_the_limiter_allows():
    queue = gear_reverb.Table.queue("q", 5)
    assert (queue.name, queue.can_sample(1), queue.can_insert(5), queue.can_insert(6)) == (
        "q",
        False,
        True,
        False,
    )
    info = queue.info
    assert info.sampler_options.fifo and info.remover_options.fifo
    assert (info.max_size, info.max_times_sampled) == (5, 1)
    assert gear_reverb.Table.stack("s", 5).info.sampler_options.lifo


def test_empty_signatures_are_none():
    for signature in [None, {}, [], ()]:
        assert make_table(signature=signature).info.signature is None


def test_a_seed_makes_sampling_repeatable(serve):
    orders = []
    for _ in range(2):
        client = serve(make_table(sampler=selectors.Uniform(), seed=7))
        for i in range(20):
            client.insert([i], {"t": 1.0})
        orders.append([step[0].data[0].item() for step in client.sample("t", 30)])
    assert orders[0] == orders[1]
    assert len(set(orders[0])) > 5


def test_replace_keeps_what_is_not_given():
    table = make_table("a", max_size=7, max_times_sampled=3, sampler=selectors.Lifo())
    other = table.replace(name="b", max_times_sampled=0)
    assert (other.name, other.info.max_size, other.info.max_times_sampled) == ("b", 7, 0)
    assert other.info.sampler_options.lifo


def test_extensions_are_built_for_their_table():
    names = []

    class Extension(gear_reverb.server.TableExtensionBase):
        def build_internal_extensions(self, table_name):
            names.append(table_name)
            return []

    table = make_table("a", extensions=[Extension()])
    table.replace(name="b")
    assert names == ["a", "b"]
    with pytest.raises(TypeError, match="abstract"):
        gear_reverb.server.TableExtensionBase()


def test_a_table_of_another_class_is_replaced_by_a_plain_one():
    class Named(gear_reverb.Table):
        def __init__(self, name):
            super().__init__(
                name, selectors.Fifo(), selectors.Fifo(), 5, gear_reverb.rate_limiters.MinSize(1)
            )

    other = Named("a").replace(name="b")
    assert (type(other), other.name, other.info.max_size) == (gear_reverb.Table, "b", 5)


def test_checkpoints_by_the_hundred_leave_the_server_standing(serve, monkeypatch, tmp_path):
    monkeypatch.setenv("GEAR_REVERB_DATA_PLANE", "grpc")
    checkpointer = gear_reverb.checkpointers.DefaultCheckpointer(str(tmp_path))
    client = serve(checkpointer=checkpointer)
    client.insert_batch("t", np.zeros((50, 1 << 12)), 1.0)

    def checkpoint(_):
        try:
            return client.checkpoint()
        except IndexError as error:
            return str(error)

    with concurrent.futures.ThreadPoolExecutor(100) as threads:
        said = list(threads.map(checkpoint, range(100)))
    assert any(str(tmp_path) in each for each in said)
    assert all(str(tmp_path) in each or "Too many checkpoints" in each for each in said)
    assert client.server_info()["t"].current_size == 50
