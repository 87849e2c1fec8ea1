"""Servers in other processes, and what tests of the shared-memory plane do with them."""

import contextlib
import os
import socket

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


def socket_name(pid):
    """The abstract name that a server listens on."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # Closed meanwhile.
            link = os.readlink(f"/proc/{pid}/fd/{fd}")
            inodes.add(link.removeprefix("socket:[").removesuffix("]"))
    with open("/proc/net/unix") as sockets:
        rows = [line.split() for line in sockets]
    [name] = {
        row[7] for row in rows if len(row) == 8 and row[6] in inodes and "@gear_reverb/" in row[7]
    }
    return name.removeprefix("@").encode()


def connect(process):
    stranger = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stranger.settimeout(processes.SECONDS)
    stranger.connect(b"\0" + socket_name(process.pid))
    return stranger
