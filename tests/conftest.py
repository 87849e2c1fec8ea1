"""What several test files share."""

import os

import pytest
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
