"""What several test files share."""

import os

import processes
import pytest
from batches import queue
from stand_in import InternalWriter
from tables import make_table

import gear_reverb
from gear_reverb.trajectory_writer import TrajectoryWriter

# Calls to a server that is gone end with an error after so many seconds, which one that is there,
# but slow, has to accept a connection.
os.environ.setdefault("GEAR_REVERB_CONNECT_TIMEOUT", "10")


@pytest.fixture
def impatient(monkeypatch):
    """For tests with a server that is gone."""
    monkeypatch.setenv("GEAR_REVERB_CONNECT_TIMEOUT", "2")


@pytest.fixture
def serve():
    servers = []

    def start(*tables, **options):
        server = gear_reverb.Server(tables or [make_table()], **options)
        servers.append(server)
        return server.localhost_client()

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def core():
    return InternalWriter()


@pytest.fixture
def writer(core):
    return TrajectoryWriter(core)


@pytest.fixture
def remote(monkeypatch):
    """A client of a server in another process, over gRPC."""
    monkeypatch.setenv("GEAR_REVERB_DATA_PLANE", "grpc")
    with processes.serve("make_table(max_size=1000), queue()") as (_, port):
        yield gear_reverb.Client(f"localhost:{port}")


@pytest.fixture(params=["in-process", "grpc"])
def client(request):
    """Tables t (Fifo) and q (gives each item once), by either way of the data."""
    if request.param == "grpc":
        return request.getfixturevalue("remote")
    return request.getfixturevalue("serve")(make_table(max_size=1000), queue())
