"""A server that is gone, or never was, is reported; nothing waits for it for ever."""

import pytest


def test_info_gives_up_at_its_deadline(lib, bounded, free_port):
    with pytest.raises(lib.errors.DeadlineExceededError, match="1"):
        bounded(lib.Client(f"localhost:{free_port}").server_info, 1)


def test_info_of_a_stopped_server(pair, bounded):
    server = pair.start(pair.table())
    client = pair.connect(server)
    assert set(client.server_info(5)) == {"t"}
    bounded(server.stop)
    with pytest.raises(RuntimeError if pair.client_lib.is_ours else Exception):
        client.server_info(1)


def test_a_checkpoint_of_a_stopped_server(pair, bounded, impatient):
    server = pair.start(pair.table())
    client = pair.connect(server)
    client.insert([1], {"t": 1.0})
    bounded(server.stop)
    with pytest.raises(RuntimeError):
        client.checkpoint()


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.sample("t", 1),
        lambda client: client.insert([1], {"t": 1.0}),
        lambda client: client.reset("t"),
        lambda client: client.mutate_priorities("t", {1: 1.0}),
        lambda client: client.server_info(),
    ],
    ids=["sample", "insert", "reset", "mutate", "info"],
)
def test_calls_to_a_stopped_server(our_client, bounded, impatient, call):
    server = our_client.start(our_client.table())
    client = our_client.connect(server)
    client.insert([1], {"t": 1.0})
    bounded(server.stop)
    with pytest.raises(RuntimeError):
        call(client)


def test_a_client_finds_a_server_that_starts_later(lib, bounded, free_port):
    client = lib.Client(f"localhost:{free_port}")
    server = lib.Server([lib.table()], port=free_port)
    assert set(bounded(client.server_info, 20)) == {"t"}
    bounded(server.stop)


def test_a_client_finds_a_server_that_starts_again(lib, bounded, free_port):
    for _ in range(2):
        server = lib.Server([lib.table()], port=free_port)
        client = lib.Client(f"localhost:{free_port}")
        bounded(client.insert, [1], {"t": 1.0})
        assert bounded(client.server_info, 20)["t"].current_size == 1
        bounded(server.stop)
