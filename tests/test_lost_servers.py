"""Calls with a limit end by it, whatever has become of the server."""

import socket
import time

import numpy as np
import pytest
from processes import start, stop

import gear_reverb
from gear_reverb import errors

LIMIT = 0.5
SILENCE = 5  # That a server which is there is given beyond the limit of a sample.

SERVER = """
    import gear_reverb as reverb
    signature = {"x": reverb.TensorSpec((1,), "float64")}
    fifo = reverb.selectors.Fifo()
    limiter = reverb.rate_limiters.MinSize(1)
    server = reverb.Server([reverb.Table("t", fifo, fifo, 100, limiter, signature=signature)])
    print(server.port, flush=True)
    server.wait()
"""

STEP = {"x": np.zeros(1)}
CALLS = {
    "sample": lambda client: next(client.sample("t", timeout=LIMIT)),
    "sample of structure": lambda client: next(
        client.sample("t", unpack_as_table_signature=True, timeout=LIMIT)
    ),
    "sample_batch": lambda client: client.sample_batch("t", 2, timeout=LIMIT),
    "batch_sampler": lambda client: next(client.batch_sampler("t", 2, timeout=LIMIT)),
    "batch_sampler without prefetching": lambda client: next(
        client.batch_sampler("t", 2, prefetch=0, timeout=LIMIT)
    ),
    "insert": lambda client: client.insert(STEP, {"t": 1.0}, timeout=LIMIT),
    "insert_batch": lambda client: client.insert_batch(
        "t", {"x": np.zeros((3, 1))}, 1.0, timeout=LIMIT
    ),
    "update_priorities": lambda client: client.update_priorities("t", [1], [1.0], timeout=LIMIT),
    "mutate_priorities": lambda client: client.mutate_priorities("t", deletes=[1], timeout=LIMIT),
    "reset": lambda client: client.reset("t", timeout=LIMIT),
    "checkpoint": lambda client: client.checkpoint(timeout=LIMIT),
    "server_info": lambda client: client.server_info(timeout=LIMIT),
}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """That of users: it must not be what ends a call."""
    monkeypatch.setenv("GEAR_REVERB_CONNECT_TIMEOUT", "60")


def expect_the_limit(call, client):
    began = time.monotonic()
    with pytest.raises(errors.DeadlineExceededError):
        call(client)
    assert LIMIT / 2 <= time.monotonic() - began < 30


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_of_a_server_that_is_not_there(call):
    with socket.socket() as taken:
        taken.bind(("localhost", 0))  # And does not listen.
        expect_the_limit(call, gear_reverb.Client(f"localhost:{taken.getsockname()[1]}"))


@pytest.fixture(scope="module", params=["grpc", ""])  # Else in shared memory.
def frozen(request):
    """The address of a server that was stopped, and its clients; they know its tables already."""
    process = start(SERVER)
    port = int(process.stdout.readline())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GEAR_REVERB_DATA_PLANE", request.param)
        clients = {name: gear_reverb.Client(f"localhost:{port}") for name in CALLS}
    plane = request.param or "shared-memory"
    assert all(client.data_plane == plane for client in clients.values())
    for client in clients.values():
        client.insert(STEP, {"t": 1.0})
        client.sample_batch("t", 1)
    stop(process)
    yield port, clients
    process.kill()
    process.communicate()


@pytest.mark.parametrize("name", CALLS)
def test_of_a_server_that_is_silent(frozen, name):
    expect_the_limit(CALLS[name], frozen[1][name])


def test_a_silent_server_is_not_waited_for_by_new_clients(frozen):
    for name in ("sample of structure", "sample_batch", "insert", "reset"):
        expect_the_limit(CALLS[name], gear_reverb.Client(f"localhost:{frozen[0]}"))


def test_the_error_names_what_sets_the_patience(monkeypatch):
    monkeypatch.setenv("GEAR_REVERB_CONNECT_TIMEOUT", "0.2")
    with pytest.raises(errors.ReverbError, match="GEAR_REVERB_CONNECT_TIMEOUT"):
        gear_reverb.Client("localhost:1").server_info()
