"""Imports the modules named on the command line in that order, then puts every one of them to work.

Run in a fresh process by test_import_orders.py; status 0 if everything worked, the process's
end included. A second process, in which gear_reverb is alone, makes sure that our side really
speaks gRPC: within one process client and server take a shortcut.
"""

import importlib
import os
import subprocess
import sys

import numpy as np

PEER = """
import sys
sys.path.insert(0, sys.argv[1])
from import_order_probe import make_server, round_trip
import gear_reverb
server = make_server(gear_reverb)
print(server.port, flush=True)
round_trip(gear_reverb, int(sys.stdin.readline()))
print("done", flush=True)
sys.stdin.readline()  # Serves until told, or until the other end is gone.
server.stop()
"""


def make_server(library):
    table = library.Table(
        name="t",
        sampler=library.selectors.Uniform(),
        remover=library.selectors.Fifo(),
        max_size=10,
        rate_limiter=library.rate_limiters.MinSize(1),
    )
    return library.Server([table])


def round_trip(library, port):
    """Writes an item to the server and draws it again."""
    client = library.Client(f"localhost:{port}")
    client.reset("t")
    expected = np.arange(12, dtype=np.float32).reshape(3, 4)
    with client.trajectory_writer(3) as writer:
        for row in expected:
            writer.append({"x": row, "s": "text"})
        writer.create_item("t", 1.5, {"x": writer.history["x"][:], "s": writer.history["s"][-1]})
        writer.flush(timeout_ms=30_000)
    [sample] = client.sample("t", 1, emit_timesteps=False)
    text, rows = sample.data
    np.testing.assert_array_equal(rows, expected)
    assert (text.item(), sample.info.priority) == (b"text", 1.5)
    assert client.server_info(30)["t"].current_size == 1


def use_gear_reverb():
    import gear_reverb

    server = make_server(gear_reverb)
    round_trip(gear_reverb, server.port)
    peer = subprocess.Popen(
        [sys.executable, "-c", PEER, os.path.dirname(os.path.abspath(__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "GEAR_REVERB_TENSORFLOW": "0"},
    )
    with peer:
        round_trip(gear_reverb, int(peer.stdout.readline()))
        print(server.port, file=peer.stdin, flush=True)
        assert peer.stdout.readline() == "done\n"
        print(file=peer.stdin, flush=True)
    assert peer.returncode == 0
    server.stop()


def use_reverb():
    """With itself, and with us in both directions."""
    import reverb

    import gear_reverb

    theirs, ours = make_server(reverb), make_server(gear_reverb)
    round_trip(reverb, theirs.port)
    round_trip(reverb, ours.port)
    round_trip(gear_reverb, theirs.port)
    theirs.stop()
    ours.stop()


def use_tensorflow():
    import tensorflow as tf

    dataset = tf.data.Dataset.range(5).map(lambda x: x * 2)
    assert [int(x) for x in dataset] == [0, 2, 4, 6, 8]
    assert tf.constant([b"a"]).numpy()[0] == b"a"


def use_torch():
    import torch

    assert (torch.arange(4.0).reshape(2, 2) @ torch.eye(2)).sum().item() == 6.0


def use_jax():
    import jax

    assert float(jax.jit(lambda x: (x * x).sum())(np.arange(3.0))) == 5.0


def main(modules):
    for module in modules:
        importlib.import_module(module)
        print(f"imported {module}", flush=True)
    for module in modules:
        globals()[f"use_{module}"]()
        print(f"used {module}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
