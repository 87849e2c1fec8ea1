"""Servers in other processes, and what tests of the shared-memory plane do with them."""

import os

import processes
import tree

VARIABLE = "GEAR_REVERB_DATA_PLANE"

TABLES = """
    make_table("t", max_size=1000), make_table("u", max_size=1000),
    make_table("uniform", max_size=1000, sampler=selectors.Uniform()),
    gear_reverb.Table.queue("q", 2)"""


def serve(**options):
    return processes.serve(TABLES, **options)


def end(process):
    process.kill()
    process.communicate()


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
