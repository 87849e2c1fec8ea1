"""Servers in other processes, and what tests of the shared-memory plane do with them."""

import os
import subprocess
import sys
import textwrap
import time

import tree

SECONDS = 60  # For processes that should end at once; the machine may be busy.
VARIABLE = "GEAR_REVERB_DATA_PLANE"

SERVER = """
    import gear_reverb as reverb
    table = lambda name, **options: reverb.Table(
        name, **{**dict(sampler=reverb.selectors.Fifo(), remover=reverb.selectors.Fifo(),
                        max_size=1000, rate_limiter=reverb.rate_limiters.MinSize(1)), **options})
    uniform = table("uniform", sampler=reverb.selectors.Uniform())
    server = reverb.Server([table("t"), table("u"), uniform, reverb.Table.queue("q", 2)])
    print(server.port, flush=True)
    server.wait()
"""


def start(code, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "GEAR_REVERB_CONNECT_TIMEOUT": "2", **environment},
    )


def start_server(**environment):
    process = start(SERVER, **environment)
    return process, int(process.stdout.readline())


def end(process):
    process.kill()
    process.communicate()


def finish(process, text=None):
    out, err = process.communicate(text, timeout=SECONDS)
    return process.returncode, out, err


def wait_until(condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def shared_bytes(pid):
    """Memory that a process has in memfds, in bytes."""
    total = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        try:
            if "gear_reverb_arena" in os.readlink(path):
                total += os.stat(path).st_blocks * 512
        except FileNotFoundError:
            pass
    return total


def write(client, steps, table="t"):
    with client.trajectory_writer(num_keep_alive_refs=max(len(steps), 1)) as writer:
        for step in steps:
            writer.append(step)
        writer.create_item(table, 1.0, tree.map_structure(lambda column: column[:], writer.history))
        writer.flush()


def sample(client, table="t"):
    [item] = client.sample(table, 1, emit_timesteps=False)
    return item
