"""A server started with the checkpointer of an earlier one goes on where that one stopped."""

import pathlib

import numpy as np
import pytest

COUNTS = [
    "current_size",
    "num_episodes",
    "num_deleted_episodes",
    "num_unique_samples",
    "max_size",
    "max_times_sampled",
]


def state(client):
    found = {}
    for name, info in client.server_info().items():
        limiter = info.rate_limiter_info
        completed = (limiter.insert_stats.completed, limiter.sample_stats.completed)
        found[name] = (completed, *(getattr(info, field) for field in COUNTS))
    return found


@pytest.fixture
def start(pair, tmp_path):
    """Starts a server that stores to, and restores from, a directory of this test."""

    def tables():
        limiter = pair.rate_limiters.SampleToInsertRatio(2.0, 1, (-100.0, 100.0))
        yield pair.table("t", max_size=10)
        yield pair.table(
            "p",
            pair.selectors.Prioritized(1.0),
            pair.selectors.MinHeap(),
            max_size=10,
            max_times_sampled=3,
            rate_limiter=limiter,
        )

    def start(*more, only=2, path=tmp_path, **options):
        checkpointer = pair.server_lib.checkpointers_lib.DefaultCheckpointer(str(path), **options)
        server = pair.start(*list(tables())[:only], *more, checkpointer=checkpointer)
        return server, pair.connect(server)

    pair.server_lib.checkpointers_lib = pair.server_lib.import_module("platform.checkpointers_lib")
    return start


def fill(client):
    with client.trajectory_writer(3) as writer:
        for i in range(5):
            writer.append({"x": np.full(2, i, np.float32), "s": f"step {i}"})
            if i >= 2:
                history = writer.history
                columns = {"x": history["x"][-3:], "s": history["s"][-1]}
                writer.create_item("t", float(i), columns)
                writer.create_item("p", float(i), {"x": history["x"][-2:]})
        writer.end_episode()
    client.insert([1], {"t": 1.0})
    client.sample("t", 2, emit_timesteps=False)
    client.sample("p", 2, emit_timesteps=False)


def test_items_and_counts_come_back(start, bounded):
    server, client = start()
    fill(client)
    before = state(client)
    client.checkpoint()
    bounded(server.stop)
    _, client = start()
    assert state(client) == before
    values, infos = [], []
    for _ in range(3):
        [sample] = client.sample("t", emit_timesteps=False)
        values.append([sample.data[0].tolist(), sample.data[1].tolist()])
        infos.append((sample.info.priority, sample.info.times_sampled))
        client.mutate_priorities("t", deletes=[sample.info.key])
    # Columns by name: s, x.
    assert values == [
        [b"step %d" % i, [[step] * 2 for step in range(i - 2, i + 1)]] for i in [2, 3, 4]
    ]
    assert infos == [(2.0, 3), (3.0, 1), (4.0, 1)]


def test_keys_come_back(start, bounded):
    server, client = start()
    fill(client)
    [sample] = client.sample("t", emit_timesteps=False)
    client.checkpoint()
    bounded(server.stop)
    _, client = start()
    client.mutate_priorities("t", {sample.info.key: 123.0})
    [again] = client.sample("t", emit_timesteps=False)
    assert (again.info.key, again.info.priority) == (sample.info.key, 123.0)


def test_the_server_goes_on_after_storing_and_restoring(start, bounded):
    server, client = start()
    fill(client)
    client.checkpoint()
    client.insert([2], {"t": 1.0})
    assert client.size("t") == 5
    bounded(server.stop)
    _, client = start()
    assert client.size("t") == 4
    fill(client)
    assert client.size("t") == 8


def test_the_newest_checkpoint_counts(start, bounded):
    server, client = start()
    paths = []
    for i in range(3):
        client.insert([i], {"t": 1.0})
        paths.append(client.checkpoint())
    assert len(set(paths)) == 3
    bounded(server.stop)
    _, client = start()
    assert client.size("t") == 3


def test_checkpoint_gives_the_path(start, tmp_path):
    _, client = start()
    path = pathlib.Path(client.checkpoint())
    assert path.parent == tmp_path
    assert any(path.iterdir())


def test_a_directory_is_made_if_need_be(start, tmp_path):
    _, client = start(path=tmp_path / "not" / "yet")
    assert pathlib.Path(client.checkpoint()).exists()


def test_empty_tables(start, bounded):
    server, client = start()
    client.checkpoint()
    bounded(server.stop)
    _, client = start()
    assert [client.size(name) for name in "tp"] == [0, 0]


def test_new_tables_start_empty(pair, start, bounded):
    server, client = start()
    fill(client)
    client.checkpoint()
    bounded(server.stop)
    _, client = start(pair.table("new"))
    assert (client.size("t"), client.size("new")) == (4, 0)


def test_a_table_that_is_missing_is_an_error(start, bounded):
    server, client = start()
    fill(client)
    client.checkpoint()
    bounded(server.stop)
    with pytest.raises((RuntimeError, ValueError), match="'?p'?"):
        start(only=1)


def test_a_fallback_is_used_when_there_is_no_newer_one(start, bounded, tmp_path):
    server, client = start()
    fill(client)
    path = client.checkpoint()
    bounded(server.stop)
    server, client = start(path=tmp_path / "other", fallback_checkpoint_path=path)
    assert client.size("t") == 4
    client.reset("t")
    client.checkpoint()
    bounded(server.stop)
    _, client = start(path=tmp_path / "other", fallback_checkpoint_path=path)
    assert client.size("t") == 0


def test_without_a_checkpointer_there_is_a_temporary_one(pair):
    client = pair.serve()
    client.insert([1], {"t": 1.0})
    assert pathlib.Path(client.checkpoint()).exists()
