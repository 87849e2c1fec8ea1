"""The shared-memory data plane: data between processes."""

import contextlib
import os

import ml_dtypes
import numpy as np
import pytest
from forks import in_child
from processes import SECONDS, wait_until
from servers import sample, write

import gear_reverb

pytestmark = pytest.mark.other_plane

# ---- data ----


def test_a_server_of_another_process_shares_memory(client):
    assert "data_plane" not in repr(client), "repr does not connect"
    assert client.data_plane == "shared-memory"
    assert repr(client).endswith(", data_plane=shared-memory")
    assert client.server_info()["t"].data_plane == "shared-memory"


@pytest.mark.parametrize(
    "values",
    [
        np.arange(12, dtype=np.float32).reshape(4, 3),
        np.array([True, False]),
        np.arange(3, dtype=np.uint64) + 2**63,
        np.arange(6).reshape(3, 2).astype(ml_dtypes.bfloat16),
        np.zeros((3, 0), np.float32),
        np.array([1 + 2j, 3], np.complex128),
    ],
    ids=lambda values: str(values.dtype),
)
def test_numbers_survive(client, values):
    write(client, list(values))
    column = sample(client).data[0]
    assert column.dtype == values.dtype
    np.testing.assert_array_equal(column, values)


def test_strings_survive(client):
    texts = ["", "a", "bb", "naïve", "x" * 100_000]
    write(client, [{"text": text, "pair": [text, "same"]} for text in texts])
    pair, text = sample(client).data[:2], sample(client).data[-1]
    assert [value.decode() for value in text] == texts
    assert len(pair) == 2


def test_chunks_larger_than_the_ring_survive(client):
    big = np.random.default_rng(0).integers(0, 255, (3, 5_000_000), dtype=np.uint8)
    write(client, [{"big": row, "small": np.int32(i)} for i, row in enumerate(big)])
    data = sample(client).data
    np.testing.assert_array_equal(data[0], big)
    np.testing.assert_array_equal(data[1], [0, 1, 2])


def test_squeezed_columns_and_several_tables(client):
    with client.trajectory_writer(num_keep_alive_refs=3) as writer:
        for i in range(3):
            writer.append({"a": np.float32(i), "b": np.full(2, i)})
        for table in ("t", "u"):
            writer.create_item(
                table, 2.0, {"all": writer.history["a"][:], "last": writer.history["b"][-1]}
            )
    for table in ("t", "u"):
        item = sample(client, table)
        assert item.info.priority == 2.0
        np.testing.assert_array_equal(item.data[0], [0, 1, 2])
        np.testing.assert_array_equal(item.data[1], [2, 2])


def test_many_items_are_all_confirmed_and_sampled(client):
    with client.trajectory_writer(num_keep_alive_refs=2) as writer:
        for i in range(3000):
            writer.append([np.int64(i)])
            writer.create_item("t" if i < 900 else "u", 1.0, [writer.history[0][-1:]])
    info = client.server_info()
    assert (info["t"].current_size, info["u"].current_size) == (900, 1000)
    keys = {s.info.key for s in client.sample("u", 10, emit_timesteps=False)}
    assert len(keys) == 1, "first in, first out"


def test_priorities_change_and_items_go(client):
    write(client, [[1]])
    key = sample(client).info.key
    client.update_priorities("t", [key], [7.0])
    assert sample(client).info.priority == 7.0
    client.mutate_priorities("t", deletes=[key])
    assert client.server_info()["t"].current_size == 0
    with pytest.raises(gear_reverb.ReverbError, match="nowhere"):
        client.mutate_priorities("nowhere", deletes=[key])


def test_a_change_for_another_way_leaves_the_connections_alone(client):
    def sockets():
        count = 0
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # Closed meanwhile.
                count += os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
        return count

    client.mutate_priorities("t", deletes=[1])
    before = sockets()
    client.mutate_priorities("t", deletes=np.zeros((16 << 20) + 1, np.uint64))
    client.mutate_priorities("t", deletes=[1])
    assert sockets() <= before  # Channels of earlier tests may close meanwhile.


def test_a_writer_goes_on_when_a_forked_child_drops_it(client):
    writers = [client.trajectory_writer(1)]

    def put():
        writers[0].append([1])
        writers[0].create_item("t", 1.0, [writers[0].history[0][-1:]])
        writers[0].flush(timeout_ms=SECONDS * 1000)

    put()
    assert in_child(writers.clear) == 0
    put()
    assert client.server_info()["t"].current_size == 2


def test_batches_come_from_shared_memory(client):
    for i in range(20):
        client.insert([np.full(4, i, np.float32)], {"q" if i < 2 else "t": 1.0})
    batch = client.sample_batch("q", 2)
    np.testing.assert_array_equal(batch.data[0][:, 0, 0], [0, 1])
    with pytest.raises(gear_reverb.DeadlineExceededError):
        client.sample_batch("q", 1, timeout=0.1)
    client.insert([np.full(4, 30, np.float32)], {"q": 1.0})
    assert client.sample_batch("q", 1).data[0].flat[0] == 30


@pytest.mark.parametrize("prefetch", [0, 1, 2, 4])
def test_batches_are_drawn_as_far_ahead_as_was_said_and_all_are_counted(client, prefetch):
    def draws():
        return client.server_info()["t"].rate_limiter_info.sample_stats.completed

    client.insert([1], {"t": 1.0})
    used = 0
    for taken in [1, 3, 2, 5] * 5:
        before = draws()
        with client.batch_sampler("t", 8, prefetch=prefetch) as sampler:
            for _ in range(taken):
                next(sampler)
            if taken == 1:
                wait_until(lambda: draws() - before == 8 * (1 + prefetch))  # noqa: B023
            assert draws() - before <= 8 * (taken + prefetch)
        used += 8 * taken
        assert client.server_info()["t"].num_unused_samples == draws() - used


def test_a_seed_draws_the_same_batches_whatever_is_drawn_ahead(client):
    for i in range(100):
        client.insert([i], {"uniform": 1.0})

    def batches(prefetch):
        with client.batch_sampler("uniform", 4, prefetch=prefetch, seed=3) as sampler:
            return [next(sampler).info.key.tolist() for _ in range(10)]

    first = batches(0)
    assert len({tuple(keys) for keys in first}) > 1
    for prefetch in (1, 2, 4):
        assert batches(prefetch) == first


def test_a_draw_that_has_to_wait_says_why_it_ended(client):
    with pytest.raises(gear_reverb.DeadlineExceededError, match="Rate Limiter"):
        next(client.sample("t", timeout=0.2))


def test_a_full_table_holds_the_writer_back(client):
    with client.trajectory_writer(num_keep_alive_refs=1) as writer:
        for i in range(10):
            writer.append([i])
            writer.create_item("q", 1.0, [writer.history[0][-1:]])
        with pytest.raises(gear_reverb.DeadlineExceededError):
            writer.flush(timeout_ms=200)
        assert [sample(client, "q").data[0][0] for _ in range(8)] == list(range(8))
        writer.flush()


def test_a_wrong_table_is_an_error_of_the_writer(client):
    writer = client.trajectory_writer(1, validate_items=False)
    writer.append([1])
    writer.create_item("nowhere", 1.0, [writer.history[0][-1:]])
    with pytest.raises(gear_reverb.ReverbError, match="nowhere"):
        writer.flush()
