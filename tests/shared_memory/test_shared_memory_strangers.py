"""Whoever else talks to a server's socket: gets nothing, and does no harm."""

import os
import socket
import struct

import numpy as np
import pytest
from processes import SECONDS, finish, start
from servers import VARIABLE, connect, sample, socket_name

pytestmark = pytest.mark.other_plane


def frame(kind, body=b""):
    return struct.pack("<II", kind, len(body)) + body


def read_end(stranger):
    """The last message, up to the end of the connection."""
    data = b""
    try:
        while part := stranger.recv(1 << 16):
            data += part
    except ConnectionResetError:
        pass
    return data


@pytest.mark.parametrize(("version", "why"), [(3, b"token"), (2, b"version 2")])
def test_strangers_are_refused(remote, client, version, why):
    with connect(remote[0]) as stranger:
        hello = struct.pack("<QIII", 0x3142565245523147, version, 2, 16) + b"x" * 16
        stranger.sendall(frame(1, hello))
        assert why in read_end(stranger)
    assert client.data_plane == "shared-memory"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_other_users_are_served_over_grpc(remote, client):
    client.insert([np.int64(7)], {"t": 1.0})
    reader = start(f"""
        import os
        import gear_reverb as reverb
        os.setuid(65534)
        client = reverb.Client("localhost:{remote[1]}")
        print(client.data_plane, next(client.sample("t", emit_timesteps=False)).data[0][0])
        os.environ["{VARIABLE}"] = "shared-memory"
        try:
            reverb.Client("localhost:{remote[1]}").server_info()
        except RuntimeError as error:
            print(error)
    """)
    code, out, err = finish(reader)
    assert code == 0, err
    assert out.startswith("grpc 7\n")
    assert "of user 0, not 65534" in out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_other_users_are_turned_away_by_the_server(remote, client):
    name = socket_name(remote[0].pid)
    stranger = start(f"""
        import os, socket
        os.setuid(65534)
        stranger = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stranger.settimeout({SECONDS})
        stranger.connect(b"\\0" + {name!r})
        print(stranger.recv(1))
    """)
    assert finish(stranger)[:2] == (0, "b''\n")
    assert client.data_plane == "shared-memory"


def test_random_bytes_harm_nobody(remote, client):
    client.insert([1], {"t": 1.0})
    random = np.random.default_rng(0)
    for _ in range(30):
        with connect(remote[0]) as stranger:
            try:
                stranger.sendall(random.bytes(int(random.integers(1, 5000))))
                stranger.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass
            read_end(stranger)
    assert sample(client).data[0][0] == 1


def test_idle_strangers_hold_nobody_up(remote, client):
    strangers = [connect(remote[0]) for _ in range(100)]
    client.insert([1], {"t": 1.0})
    assert sample(client).data[0][0] == 1
    for stranger in strangers:
        stranger.close()
