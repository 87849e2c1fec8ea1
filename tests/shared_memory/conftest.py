"""A server in a process of its own, and a client of it that no variable steers."""

import pytest
from servers import VARIABLE, serve

import gear_reverb


@pytest.fixture(autouse=True)
def nothing_forced(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def remote():
    with serve() as server:
        yield server


@pytest.fixture
def client(remote):
    return gear_reverb.Client(f"localhost:{remote[1]}")
