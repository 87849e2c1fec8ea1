"""Forked children: what they inherit is their parent's, and goes on."""

import gc
import multiprocessing
import subprocess
import sys
import textwrap

import pytest
from forks import SECONDS, in_child
from tables import make_table, sizes

import gear_reverb
from gear_reverb import structured_writer


def _use(client, queue):
    try:
        queue.put(str(client.server_info()))
    except Exception as error:
        queue.put(f"{type(error).__name__}: {error}")


def test_a_forked_child_is_told_to_spawn(serve):
    client = serve()
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    child = fork.Process(target=_use, args=(client, queue))
    child.start()
    answer = queue.get(timeout=SECONDS)
    child.join(SECONDS)
    assert "ReverbError" in answer and "spawn" in answer
    assert child.exitcode == 0
    assert sizes(client) == {"t": 0}, "the parent is not disturbed"


@pytest.mark.other_plane
@pytest.mark.parametrize("end", ["sys.exit(0)", "del server; os._exit(0)", "server.stop()"])
def test_a_server_outlives_the_children_of_its_process(end):
    code = f"""
        import os, sys
        import gear_reverb as reverb
        server = reverb.Server([reverb.Table.queue("t", 10)])
        print(server.port, flush=True)
        input()
        if (child := os.fork()) == 0:
            {end}
        else:
            print(os.waitpid(child, 0)[1], flush=True)
            input()
            os._exit(0)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        client = gear_reverb.Client(f"localhost:{int(process.stdout.readline())}")
        with client.trajectory_writer(1) as writer:
            for i in range(2):
                writer.append([i])
                writer.create_item("t", 1.0, [writer.history[0][-1:]])
                writer.flush(timeout_ms=SECONDS * 1000)
                if i == 0:
                    process.stdin.write("\n")
                    process.stdin.flush()
                    assert process.stdout.readline() == "0\n"
        assert client.data_plane == "shared-memory"
        assert sizes(client) == {"t": 2}
    finally:
        process.kill()
        process.communicate()


class _Trajectories:
    def __init__(self, client):
        self.writer = client.trajectory_writer(1)

    def write(self):
        self.writer.append([1])
        self.writer.create_item("t", 1.0, [self.writer.history[0][-1:]])
        self.writer.flush(timeout_ms=SECONDS * 1000)


class _Steps:
    def __init__(self, client):
        self.writer = client.writer(1)

    def write(self):
        self.writer.append([1])
        self.writer.create_item("t", 1, 1.0)
        self.writer.flush()


class _Patterns:
    def __init__(self, client):
        pattern = structured_writer.pattern_from_transform([1], lambda step: [step[0][-1:]])
        self.writer = client.structured_writer([structured_writer.create_config(pattern, "t")])

    def write(self):
        self.writer.append([1])
        self.writer.flush(timeout_ms=SECONDS * 1000)


@pytest.fixture(params=[_Trajectories, _Steps, _Patterns])
def writing(client, request):
    """A writer that has written one item to table t."""
    made = request.param(client)
    made.write()
    return made


def test_a_writer_goes_on_when_a_child_drops_it(client, writing):
    def drop():
        writing.writer = None
        gc.collect()

    assert in_child(drop) == 0
    writing.write()
    assert sizes(client)["t"] == 2


def test_a_trajectory_writer_goes_on_when_a_child_closes_it(client):
    writing = _Trajectories(client)
    writing.write()
    assert in_child(writing.writer.close) == 0
    writing.write()
    assert sizes(client)["t"] == 2


def test_an_inherited_writer_cannot_write(client, writing):
    def write():
        with pytest.raises(gear_reverb.ReverbError, match="spawn"):
            writing.write()

    assert in_child(write) == 0
    assert sizes(client)["t"] == 1


def test_an_inherited_sampler_cannot_sample(client):
    _Trajectories(client).write()
    samples = client.sample("t", 2)
    next(samples)

    def sample():
        with pytest.raises(gear_reverb.ReverbError, match="spawn"):
            next(samples)

    assert in_child(sample) == 0
    next(samples)


def test_a_client_goes_on_when_a_child_drops_it(serve):
    held = [serve(make_table())]
    held[0].insert([1], {"t": 1.0})
    assert in_child(held.clear) == 0
    assert sizes(held[0]) == {"t": 1}
