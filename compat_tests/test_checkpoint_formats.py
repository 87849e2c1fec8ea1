"""A checkpoint moves between dm-reverb and us, both ways, with nothing lost.

`moved` is a way: who fills and stores, and who restores. dm-reverb's checkpoints are read as they
are; ours are exported for it. `ours_ours` goes by way of dm-reverb's format.
"""

import pathlib

import numpy as np
import pytest

from gear_reverb import _checkpoint_command

TABLES = ["f", "p", "q", "s", "u", "l"]


@pytest.fixture(params=["ours_reverb", "reverb_ours", "ours_ours"])
def moved(request, all_pairs, tmp_path, bounded):
    """The pairs (client and server of one side) to write with and to read with."""
    pairs = {pair.name: pair for pair in all_pairs()}
    writes, reads = (f"{side}_{side}" for side in request.param.split("_"))
    if not {writes, reads} <= set(pairs):
        pytest.skip("dm-reverb is not installed")
    yield Move(pairs[writes], pairs[reads], tmp_path, bounded)
    for pair in pairs.values():
        pair.stop()


class Move:
    def __init__(self, writes, reads, directory, bounded):
        self.writes, self.reads = writes, reads
        self.directory, self._bounded = directory, bounded

    def tables(self, pair):
        s, lim = pair.selectors, pair.rate_limiters
        spec = pair.server_lib.spec
        signature = {"x": spec([None, 2], np.float32), "a": {"i": spec([None], np.int64)}}
        return [
            pair.table("f", s.Fifo(), s.Lifo()),
            pair.table(
                "p",
                s.Prioritized(0.5),
                s.MinHeap(),
                max_size=10,
                max_times_sampled=9,
                rate_limiter=lim.SampleToInsertRatio(2.0, 1, (-100.0, 100.0)),
            ),
            pair.server_lib.module.Table.queue("q", 10),
            pair.table("s", s.Uniform(), s.Prioritized(1.0), signature=signature),
            pair.table("u", s.MaxHeap(), s.Fifo(), max_size=3),
            pair.table("l", s.Lifo(), s.Uniform()),
        ]

    def start(self, pair, path):
        checkpointers = pair.server_lib.import_module("platform.checkpointers_lib")
        server = pair.start(
            *self.tables(pair), checkpointer=checkpointers.DefaultCheckpointer(str(path))
        )
        return server, pair.connect(server)

    def write(self, fill):
        """Fills a server of the writing side; its state, and where the reading side finds it."""
        server, client = self.start(self.writes, self.directory / "written")
        fill(client)
        before = state(client)
        path = pathlib.Path(client.checkpoint())
        self._bounded(server.stop)
        if self.writes.name == "reverb_reverb":
            return before, path.parent
        return before, export(path, self.directory / "exported")

    def read(self, path):
        return self.start(self.reads, path)[1]


def export(path, out):
    assert _checkpoint_command.main(["export", str(path), str(out)]) == 0
    return out


def state(client):
    found = {}
    for name, info in client.server_info().items():
        limiter = info.rate_limiter_info
        found[name] = {
            "inserts": limiter.insert_stats.completed,
            "samples": limiter.sample_stats.completed,
            "spi": limiter.samples_per_insert,
            "min_diff": limiter.min_diff,
            "max_diff": limiter.max_diff,
            "min_size": limiter.min_size_to_sample,
            "sampler": str(info.sampler_options),
            "remover": str(info.remover_options),
            **{
                field: getattr(info, field)
                for field in [
                    "current_size",
                    "max_size",
                    "max_times_sampled",
                    "num_episodes",
                    "num_deleted_episodes",
                    "num_unique_samples",
                ]
            },
        }
    return found


def fill(client):
    rng = np.random.default_rng(3)
    with client.trajectory_writer(4) as writer:
        for episode in range(2):
            for i in range(6):
                x = np.array([episode, i], np.float32)
                writer.append({"x": x, "a": {"i": np.int64(2**40 + i)}, "s": f"step {i}\0é"})
                if i < 2:
                    continue
                history = writer.history
                last = slice(-3, None)
                both = {"x": history["x"][last], "s": history["s"][-1]}
                writer.create_item("f", float(i), both)
                writer.create_item("p", i + 0.5, {"x": history["x"][last]})
                columns = {"x": history["x"][last], "a": {"i": history["a"]["i"][last]}}
                writer.create_item("s", i + 0.25, columns)
                writer.create_item("u", float(i % 3), both)
            writer.end_episode()
    for delta_encoded in [False, True]:
        with client.writer(7, delta_encoded=delta_encoded, chunk_length=3) as writer:
            for _ in range(7):
                image = rng.integers(0, 256, (4, 5), dtype=np.uint8)
                writer.append([image, np.float64(rng.random()), rng.random(3) > 0.5])
            writer.create_item("q", 7, 1.0)
            writer.create_item("l", 4, 2.0)
    client.insert([np.complex64(1 + 2j), np.int8(-5)], {"l": 0.5, "q": 3.0})
    for table, n in [("f", 2), ("p", 3), ("u", 2), ("q", 1), ("s", 2)]:
        client.sample(table, n, emit_timesteps=False)
    [sample] = client.sample("f", 1, emit_timesteps=False)
    client.mutate_priorities("f", updates={sample.info.key: 77.0})
    [sample] = client.sample("p", 1, emit_timesteps=False)
    client.mutate_priorities("p", deletes=[sample.info.key])


def drain(client, table):
    """Every item of a table: key, priority, times sampled, data."""
    items = {}
    while client.size(table) > 0:
        [sample] = client.sample(table, 1, emit_timesteps=False)
        data = [(np.asarray(x).dtype.name, np.asarray(x).tolist()) for x in sample.data]
        items[sample.info.key] = (sample.info.priority, sample.info.times_sampled, data)
        client.mutate_priorities(table, deletes=[sample.info.key])
    return items


def test_all_that_a_table_is_comes_along(moved):
    before, path = moved.write(fill)
    assert {name: info["current_size"] for name, info in before.items()} == {
        "f": 8,
        "p": 7,
        "q": 2,
        "s": 8,
        "u": 3,
        "l": 3,
    }
    assert state(moved.read(path)) == before


def test_all_items_come_along(moved):
    _, path = moved.write(fill)
    # Looked at after a restore by the writing side itself: that is what was stored.
    _, client = moved.start(moved.writes, moved.directory / "written")
    expected = {table: drain(client, table) for table in TABLES}
    client = moved.read(path)
    for table in TABLES:
        found = drain(client, table)
        assert found.keys() == expected[table].keys()
        for key, item in found.items():
            assert item == expected[table][key], f"item {key} of table {table}"
    assert {"uint8", "float64", "bool", "complex64", "int8"} <= {
        dtype for items in expected.values() for *_, data in items.values() for dtype, _ in data
    }


def test_orders_are_kept(moved):
    def insert(client):
        for i in range(6):
            client.insert([i], {"f": 1.0, "l": 1.0})

    _, path = moved.write(insert)
    client = moved.read(path)
    client.insert([6], {"f": 1.0, "l": 1.0})
    assert [value[2][0][1] for value in drain(client, "f").values()] == [[i] for i in range(7)]
    assert [value[2][0][1] for value in drain(client, "l").values()] == [[6 - i] for i in range(7)]


def test_the_limiter_goes_on_where_it_was(moved):
    def insert(client):
        for i in range(10):
            client.insert([i], {"q": 1.0})
        client.sample("q", 4, emit_timesteps=False)

    _, path = moved.write(insert)
    client = moved.read(path)
    assert state(client)["q"]["inserts"] == 10
    assert client.values("q", 6) == [*range(4, 10)]
    client.insert([10], {"q": 1.0})
    assert client.values("q", 1) == [10]


def test_empty_tables(moved):
    before, path = moved.write(lambda client: None)
    client = moved.read(path)
    assert state(client) == before
    client.insert([1], {"f": 1.0})
    assert client.values("f", 1) == [1]
