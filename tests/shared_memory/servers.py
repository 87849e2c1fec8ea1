"""Servers in other processes, and what tests of the shared-memory plane do with them."""

import os
import time

import tree
from processes import SECONDS, start

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


def start_server(**environment):
    process = start(SERVER, **environment)
    return process, int(process.stdout.readline())


def end(process):
    process.kill()
    process.communicate()


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
