"""Client.insert_batch: what comes back, what is refused, what waits; in process, by
shared memory and over gRPC."""

import contextlib
import subprocess
import sys
import textwrap
import threading

import ml_dtypes
import numpy as np
import processes
import pytest
import tree
from tables import make_table, sizes

import gear_reverb
from gear_reverb import selectors


@pytest.fixture(params=["in-process", "shared-memory", "grpc"])
def connect(request, serve, monkeypatch):
    """A function from the source of tables to a client of a server that has them."""
    with contextlib.ExitStack() as servers:

        def start(tables):
            if request.param == "in-process":
                return serve(*eval(f"[{tables}]"))
            monkeypatch.setenv("GEAR_REVERB_DATA_PLANE", request.param)
            _, port = servers.enter_context(processes.serve(tables))
            return gear_reverb.Client(f"localhost:{port}")

        yield start


def take(client, count, table="t"):
    """The oldest `count` items of a table that samples and removes in order."""
    samples = list(client.sample(table, count, emit_timesteps=False))
    return [sample.info for sample in samples], [sample.data for sample in samples]


QUEUE = "make_table(max_size=5000, max_times_sampled=1)"


def test_rows_come_back_as_items_in_order(connect):
    client = connect(QUEUE)
    data = {
        "image": np.random.default_rng(0).integers(0, 255, (3000, 2, 5, 3), dtype=np.uint8),
        "reward": np.arange(6000, dtype=np.float64).reshape(3000, 2),
    }
    priorities = np.arange(3000) / 7
    keys = client.insert_batch("t", data, priorities)
    assert keys.dtype == np.uint64 and len(np.unique(keys)) == 3000
    infos, items = take(client, 3000)
    np.testing.assert_array_equal([info.key for info in infos], keys)
    np.testing.assert_array_equal([info.priority for info in infos], priorities)
    for column, leaf in enumerate(tree.flatten(data)):
        np.testing.assert_array_equal(np.stack([item[column] for item in items]), leaf)
    assert sizes(client) == {"t": 0}


@pytest.mark.parametrize("item_bytes", [0, 1, 1000, 65536, 65537, 3_000_000])
def test_items_of_any_size(connect, item_bytes):
    client = connect(QUEUE)
    rows = np.random.default_rng(0).integers(0, 255, (5, item_bytes), dtype=np.uint8)
    client.insert_batch("t", rows, 1.0)
    _, items = take(client, 5)
    np.testing.assert_array_equal([item[0] for item in items], rows)


def test_leaves_without_a_common_time_axis_are_single_steps(connect):
    client = connect(QUEUE)
    client.insert_batch("t", {"a": np.arange(6).reshape(2, 3), "b": np.arange(2.0)}, 1.0)
    _, items = take(client, 2)
    np.testing.assert_array_equal(items[1][0], [3, 4, 5])
    assert items[1][1] == 1.0 and items[1][1].shape == ()


def test_trajectories_can_be_read_by_timestep(connect):
    client = connect(QUEUE)
    client.insert_batch("t", {"a": np.arange(6).reshape(2, 3)}, 1.0)
    (first, second) = client.sample("t", 2, emit_timesteps=True)
    assert [step.data[0] for step in second] == [3, 4, 5]


@pytest.mark.parametrize(
    "leaf",
    [
        np.array([[b"a", b""], [b"bcd", b"e"], [b"", b""]], object),
        np.arange(3, dtype=ml_dtypes.bfloat16),
        np.arange(24).reshape(4, 6)[1:, ::2],
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(3, dtype=">i4"),
        [np.array([1, 2, 3])],
        np.array([True, False, True]),
    ],
    ids=["strings", "bfloat16", "strided", "fortran", "big-endian", "lists", "bool"],
)
def test_leaves_of_any_kind(connect, leaf):
    client = connect(QUEUE)
    client.insert_batch("t", leaf, 1.0)
    _, items = take(client, 3)
    np.testing.assert_array_equal(np.stack([item[0] for item in items]), tree.flatten(leaf)[0])


def test_no_items_are_inserted_at_once(connect):
    client = connect(QUEUE)
    keys = client.insert_batch("t", {"a": np.zeros((0, 4))}, 1.0)
    assert keys.shape == (0,) and keys.dtype == np.uint64
    assert sizes(client) == {"t": 0}


def test_a_full_table_evicts(connect):
    client = connect("make_table(max_size=100)")
    client.insert_batch("t", np.arange(1000), 1.0)
    client.insert_batch("t", np.arange(1000, 2050), 1.0)
    info = client.server_info()["t"]
    assert info.current_size == 100 and info.rate_limiter_info.insert_stats.completed == 2050
    assert next(iter(client.sample("t", 1, emit_timesteps=False))).data[0] == 1950


SIGNED = """make_table(signature={
    "a": gear_reverb.TensorSpec([2], np.float32, "a"),
    "b": gear_reverb.TensorSpec([2, None], np.int32, "b")})"""


def test_the_signature_gives_the_structure(connect):
    client = connect(SIGNED)
    data = {"a": np.ones((4, 2), np.float32), "b": np.ones((4, 2, 7), np.int32)}
    client.insert_batch("t", data, 1.0)
    assert sizes(client) == {"t": 4}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": np.ones((4, 2)), "b": np.ones((4, 2, 7), np.int32)}, "dtype"),
        ({"a": np.ones((4, 3), np.float32), "b": np.ones((4, 2, 7), np.int32)}, "shape"),
        ({"a": np.ones((4, 2), np.float32)}, "1 columns"),
        ({"a": np.ones((4, 2), np.float32), "b": np.ones((3, 2, 7), np.int32)},
         r"\('b',\) has 3 items, but leaf \('a',\) has 4"),
        ({"a": np.float32(1), "b": np.ones((3, 2, 7), np.int32)}, r"\('a',\) is a scalar"),
        ({"a": None, "b": np.ones((3, 2, 7), np.int32)}, r"\('a',\) is None"),
        ({}, "no leaf"),
    ],
)  # fmt: skip
def test_data_that_do_not_fit_are_refused_whole(connect, data, message):
    client = connect(SIGNED)
    with pytest.raises(ValueError, match=message):
        client.insert_batch("t", data, 1.0)
    assert sizes(client) == {"t": 0}


@pytest.mark.parametrize(
    ("priorities", "message"),
    [
        (np.ones(3), r"shape \(3,\), but there are 4"),
        (np.ones((4, 1)), "shape"),
        ([1, -2, float("nan"), 4], r"priorities\[2\] is nan: priorities must be finite"),
        ([1, 2, 3, float("-inf")], r"priorities\[3\] is -inf: priorities must be finite"),
        (float("inf"), r"priorities\[0\] is inf: priorities must be finite"),
    ],
)
def test_priorities_that_do_not_fit_are_refused_whole(connect, priorities, message):
    client = connect(QUEUE)
    with pytest.raises(ValueError, match=message):
        client.insert_batch("t", np.arange(4), priorities)
    assert sizes(client) == {"t": 0}


def test_negative_weights_are_refused_whole(serve):
    client = serve(make_table(sampler=selectors.Prioritized(1.0), max_size=5000))
    priorities = np.ones(3000)
    priorities[2500] = -1
    with pytest.raises(ValueError, match="negative"):
        client.insert_batch("t", np.arange(3000), priorities)
    assert sizes(client) == {"t": 0}


def test_an_unknown_table_is_named(connect):
    client = connect(QUEUE)
    with pytest.raises(gear_reverb.errors.ReverbError, match="'x'"):
        client.insert_batch("x", np.arange(4), 1.0)


def test_it_waits_for_the_rate_limiter(connect):
    client = connect("make_table(max_size=10, max_times_sampled=1, "
                     "rate_limiter=gear_reverb.rate_limiters.Queue(10))")  # fmt: skip
    seen = []

    def consume():
        for sample in client.sample("t", 3000, emit_timesteps=False):
            seen.append(int(sample.data[0]))

    thread = threading.Thread(target=consume)
    thread.start()
    client.insert_batch("t", np.arange(3000), 1.0, timeout=60)
    thread.join()
    assert seen == list(range(3000))


def test_a_timeout_tells_how_many_are_in(connect):
    client = connect("make_table(max_size=10, max_times_sampled=1, "
                     "rate_limiter=gear_reverb.rate_limiters.Queue(10))")  # fmt: skip
    assert sizes(client) == {"t": 0}  # It is connected.
    with pytest.raises(gear_reverb.errors.DeadlineExceededError, match="10 of 3000 items"):
        client.insert_batch("t", np.arange(3000), 1.0, timeout=3)
    assert sizes(client) == {"t": 10}


def test_chunks_go_when_their_last_item_does(serve):
    client = serve(make_table(max_size=100))
    client.insert_batch("t", np.zeros((200, 1, 1000), np.uint8), 1.0)
    bytes_now = client.server_info()["t"].num_bytes
    assert 100_000 <= bytes_now <= 165_000  # Up to one chunk more than its items need.
    client.reset("t")
    assert client.server_info()["t"].num_bytes == 0


_MEMORY = """
    import ctypes
    ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # No huge pages: they are resident as a whole.
    import numpy as np
    import gear_reverb as reverb

    def resident():
        with open("/proc/self/smaps_rollup") as lines:
            return next(int(x.split()[1]) << 10 for x in lines if x.startswith("Rss:"))

    n = {n}
    table = reverb.Table("t", reverb.selectors.Uniform(), reverb.selectors.Fifo(), n,
                         reverb.rate_limiters.MinSize(1))
    server = reverb.Server([table])
    client = server.localhost_client()
    x = np.zeros(4, np.float32)
    rows = np.zeros((n // 10, 2, 4), np.float32)
    {warm_up}
    client.reset("t")
    before = resident()
    {fill}
    assert client.server_info()["t"].current_size == n
    print((resident() - before) / n)
"""
_WRITER = """
    with client.trajectory_writer(num_keep_alive_refs=2) as writer:
        writer.append(x)
        for i in range({n}):
            writer.append(x)
            writer.create_item("t", 1.0, writer.history[-2:])
            if i % 500 == 0:
                writer.flush()
"""


@pytest.mark.parametrize(
    ("fill", "payload", "bar"),
    [
        ("for _ in range(10): client.insert_batch('t', rows, 1.0)", 32, 150),
        (_WRITER, 16, 230),
    ],
    ids=["insert_batch", "writer"],
)
def test_small_transitions_cost_little_memory(fill, payload, bar):
    n = 200_000
    warm_up = (
        fill.replace("{n}", "2000").replace("range(10)", "range(1)").replace("rows", "rows[:9]")
    )
    code = textwrap.dedent(_MEMORY).replace("{n}", str(n))
    code = code.replace("{warm_up}", textwrap.dedent(warm_up))
    code = code.replace("{fill}", textwrap.dedent(fill).replace("{n}", str(n)))
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert 50 < float(output.stdout) - payload < bar
