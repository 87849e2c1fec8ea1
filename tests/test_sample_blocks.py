"""Blocks of samples: what datasets are fed with, without TensorFlow."""

import threading
import time

import numpy as np
import pytest
from tables import make_table

import gear_reverb
from gear_reverb import _sample_blocks, pybind

OPTIONS = {
    "max_samples": -1,
    "max_in_flight": 4,
    "max_samples_per_stream": -1,
    "rate_limiter_timeout_ms": -1,
    "timesteps": False,
}


def sampler_of(client, **options):
    return pybind.BlockSampler(client._client, "t", **{**OPTIONS, **options})


def write(client, lengths):
    """One item per length; step i of the episode is i."""
    with client.trajectory_writer(max(lengths)) as writer:
        for length in lengths:
            for i in range(length):
                writer.append({"x": np.full(2, i, np.float32), "s": f"{i}"})
            history = writer.history
            item = {"x": history["x"][-length:], "s": history["s"][-length:]}
            writer.create_item("t", 1.0, item)
            writer.end_episode()


def queue(name="t", **options):
    return gear_reverb.Table.queue(name, 100, **options)


def test_a_block_has_the_info_and_the_columns_of_several_items(serve):
    client = serve(queue())
    write(client, [2, 2, 2])
    key, probability, size, priority, times, strings, x = sampler_of(client).next_block(
        3, 5000, 1 << 20
    )
    assert key.dtype == np.uint64 and len(set(key.tolist())) == 3
    assert (probability == 1).all() and (priority == 1).all() and (times == 1).all()
    assert size.dtype == np.int64
    assert x.shape == (3, 2, 2) and x.dtype == np.float32 and x[2, 1].tolist() == [1, 1]
    assert strings.tolist() == [[b"0", b"1"]] * 3
    assert x.ctypes.data % 64 == 0


def test_a_block_ends_where_shapes_differ(serve):
    client = serve(queue())
    write(client, [1, 1, 2, 1])
    sampler = sampler_of(client, max_samples=4)
    shapes = []
    while sum(shape[0] for shape in shapes) < 4:
        shapes.append(sampler.next_block(4, 5000, 1 << 20)[-1].shape)
    assert shapes == [(2, 1, 2), (1, 2, 2), (1, 1, 2)]


def test_a_block_of_steps_spans_items_of_any_length(serve):
    client = serve(queue())
    write(client, [1, 3])
    block = sampler_of(client, timesteps=True, max_samples=2).next_block(2, 5000, 1 << 20)
    assert block[-1][:, 0].tolist() == [0, 0, 1, 2]
    assert block[0][1] == block[0][3] != block[0][0]


def test_a_block_is_about_as_large_as_asked_for(serve):
    client = serve(queue())
    write(client, [2] * 4)
    sampler = sampler_of(client)
    assert len(sampler.next_block(4, 5000, 1)[0]) == 1
    assert len(sampler.next_block(4, 5000, 1 << 20)[0]) == 3


def test_nothing_is_lost_while_a_batch_is_incomplete(serve):
    client = serve(queue())
    sampler = sampler_of(client)
    write(client, [1, 1])
    assert sampler.next_batch(3, 100) is None
    write(client, [1])
    assert len(sampler.next_batch(3, 5000)[0]) == 3


def test_items_of_a_batch_are_alike(serve):
    client = serve(queue())
    write(client, [1, 2])
    with pytest.raises(ValueError, match="element 1 had shape"):
        sampler_of(client).next_batch(2, 5000)


def test_it_ends_after_max_samples_over_several_streams(serve):
    client = serve(make_table())
    client.insert([1], {"t": 1.0})
    sampler = sampler_of(client, max_samples=5, max_samples_per_stream=2)
    count = 0
    with pytest.raises(StopIteration):
        while True:
            count += len(sampler.next_block(4, 5000, 1 << 20)[0])
    assert count == 5
    assert client.server_info()["t"].rate_limiter_info.sample_stats.completed == 5


def test_it_ends_with_the_rate_limiters_timeout_and_gives_the_rest_first(serve):
    client = serve(queue())
    write(client, [1, 1])
    sampler = sampler_of(client, rate_limiter_timeout_ms=100)
    while (block := sampler.next_batch(3, 50)) is None:
        pass
    assert len(block[0]) == 2
    with pytest.raises(StopIteration):
        sampler.next_batch(3, 50)


def test_closing_ends_a_waiting_call(serve):
    sampler = sampler_of(serve(queue()))
    ended = threading.Event()

    def wait():
        with pytest.raises(StopIteration):
            sampler.next_block(1, 300, 1)
            sampler.next_block(1, 300, 1)
        ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    sampler.close()
    thread.join(20)
    assert ended.is_set()


@pytest.mark.parametrize("name", ["max_samples", "max_samples_per_stream"])
def test_counts_are_positive_or_none(serve, name):
    with pytest.raises(ValueError, match=rf"{name} \(0\)"):
        sampler_of(serve(queue()), **{name: 0})


def test_empty_blocks_come_while_there_is_nothing(serve):
    client = serve(queue())
    columns = [_sample_blocks.Column((None, 2), np.dtype(np.float32))]
    options = _sample_blocks.Options(columns, timesteps=False, max_in_flight=2)
    blocks = _sample_blocks.blocks(client.server_address, "t", options)
    start = time.monotonic()
    empty = next(blocks)
    assert time.monotonic() - start < 5
    assert [len(column) for column in empty] == [0] * 6
    assert empty[-1].shape == (0, 0, 2)
    client.insert(np.zeros(2, np.float32), {"t": 1.0})
    while len(block := next(blocks)[0]) == 0:
        pass
    assert len(block) == 1
    blocks.close()
    assert not _sample_blocks._open_samplers
