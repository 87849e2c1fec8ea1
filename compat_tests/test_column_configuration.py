"""`TrajectoryWriter.configure`: chunk length and kept steps of one column."""

import numpy as np
import pytest


@pytest.mark.parametrize("length", [1, 2, 3, 7, 10])
def test_any_chunk_length_gives_the_same_items(pair, length):
    client = pair.serve()
    with client.trajectory_writer(10) as writer:
        writer.configure(("x",), num_keep_alive_refs=10, max_chunk_length=length)
        for i in range(10):
            writer.append({"x": np.array([i, -i]), "auto": i})
        history = writer.history
        for some in [slice(None), slice(3, 8), slice(-1, None), [2, 3]]:
            writer.create_item("t", 1.0, {"x": history["x"][some], "auto": history["auto"][some]})
            writer.flush()
    for some in [slice(None), slice(3, 8), slice(-1, None), [2, 3]]:
        [sample] = client.sample("t", emit_timesteps=False)
        expected = np.arange(10)[some].tolist()
        auto, x = sample.data
        assert auto.tolist() == expected
        assert x.tolist() == [[i, -i] for i in expected]
        client.mutate_priorities("t", deletes=[sample.info.key])


@pytest.mark.parametrize("length", [1, 3, 10])
def test_any_choice_of_steps_within_a_chunk(our_client, length):
    client = our_client.serve()
    with client.trajectory_writer(10) as writer:
        writer.configure((0,), num_keep_alive_refs=10, max_chunk_length=length)
        for i in range(10):
            writer.append([i])
        writer.create_item("t", 1.0, [writer.history[0][[0, 9, 4, 4, 5, 6, 0]]])
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].tolist() == [0, 9, 4, 4, 5, 6, 0]


def test_columns_may_differ(pair):
    client = pair.serve()
    with client.trajectory_writer(6) as writer:
        writer.configure(("a",), num_keep_alive_refs=6, max_chunk_length=1)
        writer.configure(("b",), num_keep_alive_refs=6, max_chunk_length=4)
        for i in range(6):
            writer.append({"a": i, "b": np.full(3, i, np.float32)})
        writer.create_item("t", 1.0, {"a": writer.history["a"][:], "b": writer.history["b"][1:]})
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].tolist() == list(range(6))
    assert sample.data[1][:, 0].tolist() == [1, 2, 3, 4, 5]


def test_nested_paths(pair):
    client = pair.serve()
    with client.trajectory_writer(2) as writer:
        writer.configure(("a", 1, "b"), num_keep_alive_refs=2, max_chunk_length=1)
        for i in range(2):
            writer.append({"a": [i, {"b": i}]})
        column = writer.history["a"][1]["b"][:]
        writer.create_item("t", 1.0, [column])
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].tolist() == [0, 1]


@pytest.mark.parametrize(
    "keep,length,message",
    [
        (0, 1, "num_keep_alive_refs"),
        (-1, 1, "num_keep_alive_refs"),
        (2, 3, "max_chunk_length"),
        (2, 0, "max_chunk_length"),
        (2, -1, "max_chunk_length"),
    ],
)
def test_refused(pair, keep, length, message):
    with pair.serve().trajectory_writer(2) as writer:
        with pytest.raises(ValueError, match=message):
            writer.configure(("x",), num_keep_alive_refs=keep, max_chunk_length=length)


def test_without_a_length_it_is_tuned(pair):
    client = pair.serve()
    with client.trajectory_writer(4) as writer:
        writer.configure(("x",), num_keep_alive_refs=4, max_chunk_length=None)
        for i in range(4):
            writer.append({"x": i})
        writer.create_item("t", 1.0, {"x": writer.history["x"][:]})
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].tolist() == [0, 1, 2, 3]


def test_a_column_may_be_configured_later(pair):
    client = pair.serve()
    with client.trajectory_writer(4) as writer:
        writer.append({"x": 0})
        writer.end_episode()
        writer.configure(("x",), num_keep_alive_refs=4, max_chunk_length=2)
        writer.configure(("y",), num_keep_alive_refs=4, max_chunk_length=1)
        for i in range(4):
            writer.append({"x": i, "y": i})
        writer.create_item("t", 1.0, {"x": writer.history["x"][:], "y": writer.history["y"][:]})
    [sample] = client.sample("t", emit_timesteps=False)
    assert [leaf.tolist() for leaf in sample.data] == [[0, 1, 2, 3]] * 2


@pytest.mark.parametrize("keep,error", [(0, ValueError), (-1, ValueError), ("x", TypeError)])
def test_a_writer_needs_a_positive_number_of_steps(pair, keep, error):
    client = pair.serve()
    with pytest.raises(error):
        client.trajectory_writer(keep)
