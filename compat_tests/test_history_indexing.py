"""`TrajectoryWriter.history`: picking steps of a column."""

import numpy as np
import pytest


@pytest.fixture
def writer(pair):
    writer = pair.serve().trajectory_writer(5)
    for i in range(5):
        writer.append({"x": np.full(2, i, np.float32), "y": [i * 10]})
    yield writer
    writer.close()


def test_is_nested_like_the_steps(writer):
    assert set(writer.history) == {"x", "y"}
    assert len(writer.history["y"]) == 1
    assert len(writer.history["x"]) == len(writer.history["y"][0]) == 5


@pytest.mark.parametrize("index", [0, 2, 4, -1, -5])
def test_a_number_gives_one_step_without_time_axis(writer, index):
    column = writer.history["y"][0][index]
    assert column.is_squeezed and len(column) == 1
    assert (tuple(column.shape), column.dtype) == ((), np.int64)
    assert column.numpy() == range(0, 50, 10)[index]


@pytest.mark.parametrize(
    "index",
    [
        slice(None),
        slice(1, 3),
        slice(-2, None),
        slice(None, -1),
        slice(None, None, 2),
        slice(None, None, -1),
        slice(4, 0, -2),
    ],
    ids=str,
)
def test_a_slice_gives_several(writer, index):
    column = writer.history["y"][0][index]
    expected = list(range(0, 50, 10))[index]
    assert not column.is_squeezed and len(column) == len(expected)
    assert (tuple(column.shape), column.dtype) == ((len(expected),), np.int64)
    assert column.numpy().tolist() == expected


@pytest.mark.parametrize("index", [[0], [0, 1], [3, 1], [2, 2, 2], [-1, 0]], ids=str)
def test_a_list_gives_these(writer, index):
    column = writer.history["x"][index]
    assert not column.is_squeezed
    assert tuple(column.shape) == (len(index), 2)
    assert column.numpy()[:, 0].tolist() == [range(5)[i] for i in index]


@pytest.mark.parametrize("index", [None, "x", 1.5, (0, 1), np.array([0, 1])], ids=repr)
def test_nothing_else_is_an_index(writer, index):
    with pytest.raises(TypeError, match="ind"):
        writer.history["x"][index]


@pytest.mark.parametrize("index", [50, -50])
def test_steps_that_never_were(writer, index):
    with pytest.raises((IndexError, ValueError)):
        writer.history["x"][index]


@pytest.fixture
def four_steps(our_client):
    with our_client.serve().trajectory_writer(6) as writer:
        for i in range(4):
            writer.append([i])
        yield writer.history[0]


def test_the_step_after_the_last_is_none(four_steps):
    with pytest.raises((IndexError, ValueError)):
        four_steps[4]


@pytest.mark.parametrize("stop", [4, 5, 9])
def test_slices_end_at_the_last_step(four_steps, stop):
    assert four_steps[:stop].numpy().tolist() == [0, 1, 2, 3]
    assert four_steps[1:stop].numpy().tolist() == [1, 2, 3]


def test_before_the_first_append(pair):
    with pair.serve().trajectory_writer(1) as writer:
        with pytest.raises(RuntimeError, match="append"):
            _ = writer.history


def test_only_the_last_steps_are_kept(pair):
    with pair.serve().trajectory_writer(2) as writer:
        for i in range(4):
            writer.append([i])
        column = writer.history[0]
        assert len(column) == 4
        assert [column[-1].numpy(), column[-2].numpy()] == [3, 2]
        assert column[-2:].numpy().tolist() == [2, 3]
        for index in [0, -3, slice(None), slice(-3, None)]:
            with pytest.raises(ValueError, match="None"):
                column[index]


def test_an_ended_episode_clears_it(pair):
    with pair.serve().trajectory_writer(3) as writer:
        writer.append([1])
        writer.append([2])
        writer.end_episode()
        assert len(writer.history[0]) == 0
        writer.append([3])
        assert writer.history[0][:].numpy().tolist() == [3]


@pytest.mark.parametrize("index", [slice(None), [1, 0], [0, 2], slice(None, None, -1)], ids=str)
def test_items_are_made_of_any_of_it(pair, index):
    client = pair.serve()
    with client.trajectory_writer(3) as writer:
        for i in range(3):
            writer.append([np.int32(i)])
        column = writer.history[0][index]
        expected = column.numpy().tolist()
        writer.create_item("t", 1.0, [column])
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].tolist() == expected


@pytest.mark.parametrize("index", [[1, 1, 1], [0, 1, 1, 2], [2, 2, 0, 0]], ids=str)
def test_steps_may_come_again(our_client, index):
    client = our_client.serve()
    with client.trajectory_writer(3) as writer:
        for i in range(3):
            writer.append([np.int32(i)])
        writer.create_item("t", 1.0, [writer.history[0][index]])
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].tolist() == index
