"""What the tests of the adapters share: tables whose items tell which one they are."""

import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
from tables import make_table

import gear_reverb
from gear_reverb import selectors

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS, ITEMS = 3, 20
SECONDS = 120  # For processes that import a framework; the machine may be busy.


def numbered_table(name="t", **options):
    """Of items whose column `x` is full of their priority, and `wide` of that as int64."""
    signature = {
        "x": gear_reverb.TensorSpec((STEPS, 2), np.float32),
        "wide": gear_reverb.TensorSpec((STEPS,), np.int64),
    }
    options = {"sampler": selectors.Uniform(), "signature": signature, **options}
    return make_table(name, **options)


def insert_numbered(client, count=ITEMS, table="t"):
    with client.trajectory_writer(num_keep_alive_refs=STEPS) as writer:
        for number in range(1, count + 1):
            for _ in range(STEPS):
                writer.append({"x": np.full(2, number, np.float32), "wide": np.int64(number)})
            writer.create_item(
                table, number, {name: writer.history[name][-STEPS:] for name in ("x", "wide")}
            )
            writer.end_episode()


def insert_ragged(client, lengths, table="t"):
    """Items of one column `x`, full of their length."""
    with client.trajectory_writer(num_keep_alive_refs=max(lengths)) as writer:
        for length in lengths:
            for _ in range(length):
                writer.append({"x": np.float32(length)})
            writer.create_item(table, 1.0, {"x": writer.history["x"][-length:]})
            writer.end_episode()


def assert_numbered(batch):
    """Every item of the batch is the one that its priority says."""
    expected = np.asarray(batch.info.priority)
    x, wide = np.asarray(batch.data["x"]), np.asarray(batch.data["wide"])
    assert x.dtype == np.float32 and wide.dtype == np.int64
    np.testing.assert_array_equal(x, np.broadcast_to(expected[:, None, None], x.shape))
    np.testing.assert_array_equal(wide, np.broadcast_to(expected[:, None], wide.shape))


def draws(client, table="t"):
    """Items drawn from the table so far."""
    return client.server_info()[table].rate_limiter_info.sample_stats.completed


def run(code, *args):
    """Runs a program of its own; its status and what it wrote."""
    done = subprocess.run(
        [sys.executable, *(["-c", textwrap.dedent(code)] if "\n" in code else [code]), *args],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "GEAR_REVERB_CONNECT_TIMEOUT": "5"},
    )
    return done.returncode, done.stdout + done.stderr
