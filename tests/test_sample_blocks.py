"""Blocks of samples: what datasets are fed with, without TensorFlow."""

import threading

import numpy as np
import pytest
from tables import make_table

import gear_reverb
from gear_reverb import _sample_blocks, pybind

OPTIONS = {
    "form": "items",
    "size": 4,
    "block_bytes": 1 << 20,
    "prefetch": 0,
    "ahead": 0,
    "max_samples": -1,
    "max_samples_per_stream": -1,
    "rate_limiter_timeout_ms": -1,
}
PATIENCE_MS = 60_000


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
    info, (strings, x), lengths = sampler_of(client, size=3).next(PATIENCE_MS)
    key, probability, size, priority, times = info
    assert key.dtype == np.uint64 and len(set(key.tolist())) == 3
    assert (probability == 1).all() and (priority == 1).all() and (times == 1).all()
    assert size.dtype == np.int64
    assert x.shape == (3, 2, 2) and x.dtype == np.float32 and x[2, 1].tolist() == [1, 1]
    assert strings.tolist() == [[b"0", b"1"]] * 3
    assert x.ctypes.data % 64 == 0 and key.ctypes.data % 64 == 0
    assert lengths == [None, None]


def test_items_of_different_lengths_lie_one_after_another(serve):
    client = serve(queue())
    write(client, [1, 3, 2])
    info, (strings, x), lengths = sampler_of(client).next(PATIENCE_MS)
    assert [of_column.tolist() for of_column in lengths] == [[1, 3, 2]] * 2
    assert x[:, 0].tolist() == [0, 0, 1, 2, 0, 1]
    assert strings.tolist() == [b"0", b"0", b"1", b"2", b"0", b"1"]
    assert len(info[0]) == 3


def test_steps_span_items_of_any_length(serve):
    client = serve(queue())
    write(client, [1, 3])
    _, (_, x), lengths = sampler_of(client, form="steps", max_samples=2).next(PATIENCE_MS)
    assert x[:, 0].tolist() == [0, 0, 1, 2]
    assert lengths[0].tolist() == [1, 3]


def test_padding_is_empty(serve):
    client = serve(queue())
    write(client, [1, 2])
    _, (strings, x), lengths = sampler_of(client, form="padded", size=2).next(PATIENCE_MS)
    assert x[..., 0].tolist() == [[0, 0], [0, 1]]
    assert strings.tolist() == [[b"0", b""], [b"0", b"1"]]
    assert lengths == [None, None]


def test_a_block_is_about_as_large_as_asked_for(serve):
    client = serve(queue())
    write(client, [2] * 4)
    assert len(sampler_of(client, block_bytes=1).next(PATIENCE_MS)[0][0]) == 1
    client = serve(queue())
    write(client, [2] * 4)
    assert len(sampler_of(client).next(PATIENCE_MS)[0][0]) == 4


def test_nothing_is_lost_while_a_batch_is_incomplete(serve):
    client = serve(queue())
    sampler = sampler_of(client, form="stacked", size=3)
    write(client, [1, 1])
    assert sampler.next(100) is None
    write(client, [1])
    assert len(sampler.next(PATIENCE_MS)[0][0]) == 3


def test_items_of_a_batch_are_alike(serve):
    client = serve(queue())
    write(client, [1, 2])
    with pytest.raises(ValueError, match="element 1 had shape"):
        sampler_of(client, form="stacked", size=2).next(PATIENCE_MS)


def test_it_ends_after_max_samples_over_several_streams(serve):
    client = serve(make_table())
    client.insert([1], {"t": 1.0})
    sampler = sampler_of(client, max_samples=5, max_samples_per_stream=2)
    count = 0
    with pytest.raises(StopIteration):
        while True:
            count += len(sampler.next(PATIENCE_MS)[0][0])
    assert count == 5
    assert client.server_info()["t"].rate_limiter_info.sample_stats.completed == 5


def test_it_ends_with_the_rate_limiters_timeout_and_gives_the_rest_first(serve):
    client = serve(queue())
    write(client, [1, 1])
    sampler = sampler_of(client, form="stacked", size=3, rate_limiter_timeout_ms=100)
    while (block := sampler.next(50)) is None:
        pass
    assert len(block[0][0]) == 2
    with pytest.raises(StopIteration):
        sampler.next(50)


def test_closing_ends_a_waiting_call(serve):
    sampler = sampler_of(serve(queue()))
    ended = threading.Event()

    def wait():
        with pytest.raises(StopIteration):
            while True:
                sampler.next(300)
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
    empty = next(blocks)
    assert [len(column) for column in empty] == [0] * 6
    assert empty[-1].shape == (0, 0, 2)
    client.insert(np.zeros(2, np.float32), {"t": 1.0})
    while len(block := next(blocks)[0]) == 0:
        pass
    assert len(block) == 1
    blocks.close()
    assert not _sample_blocks._open_samplers


def rows_of(client, lengths, shape, **options):
    """The blocks of a table with items of these lengths, taken apart into items by hand."""
    columns = [
        _sample_blocks.Column(None if shape is None else shape[:1], np.dtype(object)),
        _sample_blocks.Column(shape, np.dtype(np.float32)),
    ]
    options = _sample_blocks.Options(
        columns, timesteps=False, max_in_flight=20, max_samples=len(lengths), **options
    )
    return [
        block
        for block in _sample_blocks.blocks(client.server_address, "t", options)
        if len(block[0]) > 0
    ]


def test_items_of_unknown_rank_come_in_runs_of_equal_length(serve):
    client = serve(queue())
    lengths = [1, 1, 2, 3, 3, 1]
    write(client, lengths)
    blocks = rows_of(client, lengths, None)
    found = [(len(item), item[:, 0].tolist()) for block in blocks for item in block[6]]
    assert found == [(length, list(range(length))) for length in lengths]
    texts = [item.tolist() for block in blocks for item in block[5]]
    assert texts == [[b"%d" % i for i in range(length)] for length in lengths]
    assert len({key for block in blocks for key in block[0].tolist()}) == len(lengths)


@pytest.mark.parametrize("lengths", [[2, 2, 2], [1, 3, 2]])
def test_packed_columns_come_with_their_lengths(serve, lengths):
    client = serve(queue())
    write(client, lengths)
    found = []
    for *_, strings, x, string_lengths, x_lengths in rows_of(
        client, lengths, (None, 2), ragged=(0, 1)
    ):
        assert string_lengths.tolist() == x_lengths.tolist() and len(x_lengths) == 10
        ends = np.cumsum(x_lengths)
        assert len(x) == len(strings) == ends[-1]
        found += [int(length) for length in x_lengths if length]
    assert found == lengths


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 60), ("x", 60), ("-1", 60), ("0", 0), ("1.5", 1.5), (None, 60)]
)
def test_the_patience_with_a_server_is_read_as_the_core_reads_it(monkeypatch, text, seconds):
    monkeypatch.delenv("GEAR_REVERB_CONNECT_TIMEOUT", raising=False)
    if text is not None:
        monkeypatch.setenv("GEAR_REVERB_CONNECT_TIMEOUT", text)
    assert _sample_blocks._connect_seconds() == seconds
