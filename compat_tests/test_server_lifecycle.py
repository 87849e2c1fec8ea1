"""Starting and stopping servers."""

import pytest


def test_needs_a_table(lib):
    for tables in [[], None]:
        with pytest.raises(ValueError, match="table"):
            lib.Server(tables)


def test_names_must_differ(lib):
    with pytest.raises(ValueError, match="same_name"):
        lib.Server([lib.table("same_name"), lib.table("same_name")])


def test_tables_must_be_a_list(lib):
    with pytest.raises(TypeError):
        lib.Server(lib.table())


@pytest.mark.parametrize("port,error", [(-1, (ValueError, RuntimeError)), ("x", TypeError)])
def test_bad_ports(lib, port, error):
    with pytest.raises(error):
        lib.Server([lib.table()], port=port)


def test_bad_checkpointer(lib):
    with pytest.raises((AttributeError, TypeError)):
        lib.Server([lib.table()], checkpointer="x")


def test_a_given_port_is_used(pair, free_port):
    server = pair.start(pair.table(), port=free_port)
    assert server.port == free_port
    assert set(pair.connect(server).server_info()) == {"t"}


def test_two_servers_are_apart(pair):
    first, second = pair.start(pair.table()), pair.start(pair.table())
    assert first.port != second.port
    pair.connect(first).insert([1], {"t": 1.0})
    assert pair.connect(first).size("t") == 1
    assert pair.connect(second).size("t") == 0


def test_stopping_twice_and_waiting_after(pair, bounded):
    server = pair.start(pair.table())
    port = server.port
    for _ in range(2):
        bounded(server.stop)
    assert server.port == port
    bounded(server.wait)


def test_stop_ends_wait(pair, bounded):
    import threading

    server = pair.start(pair.table())
    waiter = threading.Thread(target=server.wait, daemon=True)
    waiter.start()
    bounded(server.stop)
    waiter.join(30)
    assert not waiter.is_alive()


def test_localhost_client(lib, bounded):
    server = lib.Server([lib.table()])
    client = server.localhost_client()
    assert isinstance(client, lib.Client)
    assert client.server_address == f"localhost:{server.port}"
    bounded(client.insert, [1], {"t": 1.0})
    assert bounded(client.server_info)["t"].current_size == 1
    bounded(server.stop)


def test_several_clients_see_one_server(pair):
    server = pair.start(pair.table(max_times_sampled=1))
    clients = [pair.connect(server) for _ in range(3)]
    for i, client in enumerate(clients):
        client.insert([i], {"t": 1.0})
    assert [client.values("t", 1) for client in clients] == [[0], [1], [2]]


@pytest.mark.parametrize("address", [3, None])
def test_an_address_is_text(lib, address):
    with pytest.raises(TypeError):
        lib.Client(address)
