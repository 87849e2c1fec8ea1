"""What several test files share."""

import os
import subprocess
import sys
import textwrap

import pytest
from batches import queue
from stand_in import InternalWriter
from tables import make_table

import gear_reverb
from gear_reverb.trajectory_writer import TrajectoryWriter

# Calls to a server that is gone end with an error after so many seconds.
os.environ.setdefault("GEAR_REVERB_CONNECT_TIMEOUT", "2")


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


_SERVER = """
    import gear_reverb as reverb
    fifo = reverb.selectors.Fifo()
    server = reverb.Server([
        reverb.Table("t", fifo, fifo, 1000, reverb.rate_limiters.MinSize(1)),
        reverb.Table("q", fifo, fifo, 1000, reverb.rate_limiters.Queue(1000), max_times_sampled=1),
    ])
    print(server.port, flush=True)
    server.wait()
"""


@pytest.fixture
def remote(monkeypatch):
    """A client of a server in another process, over gRPC."""
    monkeypatch.setenv("GEAR_REVERB_DATA_PLANE", "grpc")
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_SERVER)], stdout=subprocess.PIPE, text=True
    )
    yield gear_reverb.Client(f"localhost:{int(process.stdout.readline())}")
    process.kill()
    process.communicate()


@pytest.fixture(params=["in-process", "grpc"])
def client(request):
    """Tables t (Fifo) and q (gives each item once), by either way of the data."""
    if request.param == "grpc":
        return request.getfixturevalue("remote")
    return request.getfixturevalue("serve")(make_table(max_size=1000), queue())
