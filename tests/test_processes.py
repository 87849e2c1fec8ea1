"""Processes: signals, exit in the middle of a call, killed clients."""

import contextlib
import gc
import signal
import threading
import time

import pytest
from processes import SECONDS, finish, start, stop, wait_until
from processes import serve as serve_elsewhere
from tables import make_table, sizes

import gear_reverb
from gear_reverb import errors, rate_limiters


@pytest.fixture
def remote_server():
    with serve_elsewhere("gear_reverb.Table.queue('t', 10)") as (process, port):
        yield process, gear_reverb.Client(f"localhost:{port}")


def catches(process, number):
    """Whether the process has a handler for the signal."""
    with open(f"/proc/{process.pid}/status") as status:
        caught = next(line for line in status if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (number - 1) & 1


def test_sigterm_drains_a_waiting_server(remote_server):
    process, client = remote_server
    client.insert([1], {"t": 1.0})
    wait_until(lambda: catches(process, signal.SIGTERM))  # Not before it waits.
    process.send_signal(signal.SIGTERM)
    assert finish(process)[:2] == (0, "drained\n")


def test_sigint_stops_a_waiting_server(remote_server):
    process, client = remote_server
    assert sizes(client) == {"t": 0}
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert (code != 0, out) == (True, "")
    assert "KeyboardInterrupt" in err


@pytest.mark.other_plane
def test_a_server_in_another_process_is_reached_through_shared_memory(remote_server):
    _, client = remote_server
    assert client.data_plane == "shared-memory"
    client.insert([7], {"t": 1.0})
    [[step]] = client.sample("t")
    assert step.data[0] == 7


@pytest.mark.other_plane
def test_a_server_of_this_process_is_reached_without_a_wire(serve):
    assert serve().data_plane == "in-process"


def test_a_killed_server_is_reported_to_a_blocked_sampler(remote_server, impatient):
    process, client = remote_server
    errors = []

    def sample():
        try:
            next(client.sample("t"))
        except gear_reverb.ReverbError as error:
            errors.append(error)

    thread = threading.Thread(target=sample)
    thread.start()
    wait_until(lambda: client.server_info()["t"].waiting_samples == 1)
    process.kill()
    thread.join(SECONDS)
    assert len(errors) == 1


def test_other_threads_run_while_a_client_ends(remote_server):
    process, other = remote_server
    client = gear_reverb.Client(other.server_address)
    client.insert([0], {"t": 1.0})
    with contextlib.suppress(errors.DeadlineExceededError):  # The one item waits for another.
        client.sample_batch("t", 2, timeout=0.2)
    stop(process)
    ended = threading.Event()
    ticks = []

    def tick():
        while not ended.wait(0.01):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    before = len(ticks)
    del client  # Which tells the server of an unused sample, and waits for an answer.
    gc.collect()
    during = len(ticks) - before
    ended.set()
    thread.join()
    assert during > 3


def test_a_killed_sampler_no_longer_waits(remote_server):
    _, client = remote_server
    sampler = start(f"""
        import gear_reverb as reverb
        next(reverb.Client("{client.server_address}").sample("t"))
    """)
    wait_until(lambda: client.server_info()["t"].waiting_samples == 1)
    sampler.kill()
    sampler.communicate()
    wait_until(lambda: client.server_info()["t"].waiting_samples == 0)
    client.insert([1], {"t": 1.0})
    assert sizes(client) == {"t": 1}, "the dead sampler took the item"


def test_a_writer_goes_on_when_its_server_comes_back():
    server = gear_reverb.Server([make_table()])
    writer = start(
        f"""
        import gear_reverb as reverb
        writer = reverb.Client("localhost:{server.port}").trajectory_writer(1)
        for _ in range(2):
            writer.append([1])
            writer.create_item("t", 1.0, [writer.history[0][-1:]])
            print("created", flush=True)
            writer.flush()
            print("flushed", flush=True)
            input()
        """,
        GEAR_REVERB_CONNECT_TIMEOUT=str(SECONDS),
    )
    assert [writer.stdout.readline() for _ in range(2)] == ["created\n", "flushed\n"]
    server.stop()
    writer.stdin.write("\n")
    writer.stdin.flush()
    assert writer.stdout.readline() == "created\n"
    again = gear_reverb.Server([make_table()], port=server.port)
    code, out, err = finish(writer, "\n")
    assert (code, out) == (0, "flushed\n"), err
    assert sizes(again.localhost_client()) == {"t": 1}
    again.stop()


@pytest.mark.parametrize("call", ["client.sample('t', 1)", "writer.flush()"])
def test_a_process_ends_though_a_daemon_thread_waits(call):
    code, out, err = finish(
        start(f"""
        import threading, time
        import gear_reverb as reverb
        table = reverb.Table.queue("t", 1)
        server = reverb.Server([table])
        client = server.localhost_client()
        if "writer" in "{call}":
            writer = client.trajectory_writer(1)
            for i in range(2):
                writer.append([i])
                writer.create_item("t", 1.0, [writer.history[0][-1:]])
        threading.Thread(target=lambda: list({call} or []), daemon=True).start()
        time.sleep(0.3)
        print("end", flush=True)
    """)
    )
    assert (code, out) == (0, "end\n"), err


def test_a_process_ends_with_everything_still_open():
    code, out, err = finish(
        start("""
        import gear_reverb as reverb
        server = reverb.Server([reverb.Table.queue("t", 2)])
        client = server.localhost_client()
        writer = client.trajectory_writer(1)
        writer.append([1])
        writer.create_item("t", 1.0, [writer.history[0][-1:]])
        samples = client.sample("t", 2)
        next(samples)
    """)
    )
    assert (code, out) == (0, ""), err


@pytest.mark.other_plane
@pytest.mark.parametrize("plane", ["in-process", "grpc", "shared-memory"])
@pytest.mark.parametrize("call", ["next(client.sample('t'))", "client.sample_batch('t', 2)"])
def test_ctrl_c_ends_a_waiting_sample(plane, call):
    process = start(
        f"""
        import gear_reverb as reverb
        server = reverb.Server([reverb.Table.queue("t", 2)])
        client = server.localhost_client()
        assert client.data_plane == "{plane}"
        try:
            print("waiting", flush=True)
            {call}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """,
        GEAR_REVERB_DATA_PLANE=plane,
    )
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert finish(process)[:2] == (0, "interrupted\n")


def test_blocked_calls_say_which_inequality_blocks_them(serve):
    client = serve(make_table(rate_limiter=rate_limiters.MinSize(3)))
    thread = threading.Thread(target=lambda: list(client.sample("t")))
    thread.start()
    wait_until(lambda: client.server_info()["t"].waiting_samples == 1)
    info = client.server_info()["t"]
    assert "min_size_to_sample" in info.blocked_sample and "3" in info.blocked_sample
    assert (info.waiting_inserts, info.blocked_insert) == (0, "")
    for i in range(3):
        client.insert([i], {"t": 1.0})
    thread.join(SECONDS)
    info = client.server_info()["t"]
    assert (info.blocked_sample, info.num_bytes) == ("", 3 * 8)


_FULL = """
    import os, signal, sys, threading
    import gear_reverb as reverb

    server = reverb.Server([reverb.Table.queue("q", 1)])
    client = server.localhost_client()
    make = {"trajectory": lambda: client.trajectory_writer(1), "legacy": lambda: client.writer(1)}
    try:
        with make[sys.stdin.readline().strip()]() as writer:
            for i in range(3):
                writer.append([i])
                if hasattr(writer, "history"):
                    writer.create_item("q", 1.0, [writer.history[0][-1:]])
                else:
                    writer.create_item("q", 1, 1.0)
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            writer.flush()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    os._exit(0)
"""


@pytest.mark.parametrize("kind", ["trajectory", "legacy"])
def test_one_interrupt_ends_a_writers_block(kind):
    assert finish(start(_FULL), f"{kind}\n")[:2] == (0, "interrupted\n")
