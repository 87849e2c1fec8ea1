"""`Client.writer`: items are the last steps, of all columns alike."""

import numpy as np
import pytest


def test_items_are_the_last_steps(pair):
    client = pair.serve(pair.table(max_times_sampled=1))
    with client.writer(3) as writer:
        for i in range(5):
            writer.append({"x": np.full(2, i, np.float32), "y": i})
        for steps in [1, 2, 3]:
            writer.create_item("t", num_timesteps=steps, priority=1.0)
    for steps, sample in zip([1, 2, 3], client.sample("t", 3, emit_timesteps=False), strict=True):
        expected = list(range(5 - steps, 5))
        assert sample.data[1].tolist() == expected
        assert sample.data[0][:, 1].tolist() == expected


@pytest.mark.parametrize("chunk_length", [1, 2, 3, 7, None])
@pytest.mark.parametrize("delta_encoded", [False, True])
def test_items_over_chunks(pair, chunk_length, delta_encoded):
    client = pair.serve(pair.table(max_times_sampled=1))
    with client.writer(7, delta_encoded=delta_encoded, chunk_length=chunk_length) as writer:
        for i in range(12):
            writer.append([i, f"{i}"])
            if i >= 6:
                writer.create_item("t", 7, float(i))
    for i, sample in enumerate(client.sample("t", 6, emit_timesteps=False)):
        assert sample.data[0].tolist() == list(range(i, i + 7))
        assert sample.data[1].tolist() == [b"%d" % step for step in range(i, i + 7)]
        assert sample.info.priority == i + 6


def test_sequences(pair):
    client = pair.serve()
    with client.writer(6) as writer:
        writer.append_sequence({"x": np.arange(4), "y": np.zeros((4, 2), np.float32)})
        writer.append({"x": 4, "y": np.ones(2, np.float32)})
        writer.create_item("t", 5, 2.0)
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].tolist() == [0, 1, 2, 3, 4]
    assert sample.data[1].tolist() == [[0, 0]] * 4 + [[1, 1]]


def test_several_tables(pair):
    client = pair.serve(pair.table("a"), pair.table("b"))
    with client.writer(2) as writer:
        for i in range(2):
            writer.append([i])
        writer.create_item("a", 1, 1.0)
        writer.create_item("b", 2, 2.0)
    [a] = client.sample("a", emit_timesteps=False)
    [b] = client.sample("b", emit_timesteps=False)
    assert (a.data[0].tolist(), a.info.priority) == ([1], 1.0)
    assert (b.data[0].tolist(), b.info.priority) == ([0, 1], 2.0)


def test_items_are_there_after_flush(our_client):
    client = our_client.serve()
    with client.writer(2, chunk_length=2) as writer:
        writer.append([1])
        writer.create_item("t", 1, 1.0)
        writer.flush()
        assert client.size("t") == 1
        writer.append([2])
        writer.create_item("t", 2, 1.0)
    assert client.size("t") == 2


def test_items_are_there_after_close(pair):
    client = pair.serve()
    with client.writer(2, chunk_length=2) as writer:
        for i in range(3):
            writer.append([i])
            writer.create_item("t", 1, 1.0)
    assert client.size("t") == 3


def test_items_are_there_after_the_writer_is_dropped(pair, bounded):
    client = pair.serve()

    def write():
        writer = client.raw.writer(4, chunk_length=4)
        for i in range(3):
            writer.append([i])
        writer.create_item("t", 2, 1.0)

    bounded(write)
    assert client.size("t") == 1


@pytest.mark.parametrize("max_in_flight_items", [1, 2, 25, None])
def test_items_in_flight(pair, max_in_flight_items):
    client = pair.serve()
    with client.writer(1, max_in_flight_items=max_in_flight_items) as writer:
        for i in range(30):
            writer.append([i])
            writer.create_item("t", 1, 1.0)
    assert client.size("t") == 30


def test_a_writer_is_an_episode(pair):
    client = pair.serve()
    for _ in range(2):
        with client.writer(1) as writer:
            for i in range(3):
                writer.append([i])
                writer.create_item("t", 1, 1.0)
    info = client.server_info()["t"]
    assert (info.current_size, info.num_episodes) == (6, 2)


def test_its_text(pair):
    with pair.serve().writer(3, chunk_length=2) as writer:
        text = repr(writer.raw)
    assert "Writer(" in text and "chunk_length=2" in text and "max_timesteps=3" in text
