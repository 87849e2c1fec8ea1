"""The history of a TrajectoryWriter, and the columns that are cut from it."""

import contextlib
import gc

import numpy as np
import pytest
import tree
from stand_in import Ref, values

from gear_reverb.trajectory_writer import TrajectoryColumn


@pytest.fixture
def history(writer):
    for i in range(4):
        writer.append(i)
    return writer.history


def test_history_needs_a_step(writer):
    with pytest.raises(RuntimeError, match="before `append`"):
        _ = writer.history


@pytest.mark.parametrize("index", [0, 3, -1, -4, True])
def test_an_integer_gives_a_squeezed_step(history, index):
    column = history[index]
    assert (values(column), column.is_squeezed) == ([list(range(4))[index]], True)


INDICES = [None, *range(-4, 4)]


def test_slices_are_those_of_a_list(history):
    for start in INDICES:
        for stop in [*INDICES, 4, 9]:
            for step in [None, 1, 2, -1, -2]:
                column = history[start:stop:step]
                assert values(column) == list(range(4))[start:stop:step]
                assert not column.is_squeezed


@pytest.mark.parametrize("indices", [[0], [0, -1], [2, 1, 2], []], ids=str)
def test_a_list_gives_its_steps(history, indices):
    column = history[indices]
    assert (values(column), column.is_squeezed) == ([range(4)[i] for i in indices], False)


@pytest.mark.parametrize("index", [4, [0, 4], 100])
def test_later_steps_do_not_exist(history, index):
    with pytest.raises(IndexError, match="has 4 steps"):
        history[index]


@pytest.mark.parametrize(
    "index",
    [-5, [-5], slice(-5, None), slice(-9, 2), slice(4, None), slice(7, 9)],
    ids=str,
)
def test_steps_outside_of_the_episode(history, index):
    with pytest.raises(ValueError, match="None data references"):
        history[index]


@pytest.mark.parametrize("index", ["x", 1.0, (0,), None, np.array([0]), ["x"], [slice(1)]], ids=str)
def test_other_indices_are_type_errors(history, index):
    with pytest.raises(TypeError, match="index"):
        history[index]


def test_only_the_last_steps_are_kept(writer):
    for i in range(23):
        writer.append(i)
        kept = [None] * max(0, i - 4) + list(range(max(0, i - 4), i + 1))
        assert values(writer.history) == kept
        assert len(writer.history) == i + 1
    assert values(writer.history[-5:]) == [18, 19, 20, 21, 22]
    assert values(writer.history[18:20]) == [18, 19]
    assert values(writer.history[:-1]) == [18, 19, 20, 21]
    for index in [0, -6, slice(None), slice(-6, None), slice(0, 3), slice(None, None, -1), [17]]:
        with pytest.raises(ValueError, match="None data references"):
            writer.history[index]


def test_steps_without_data_cannot_be_indexed(writer):
    writer.append({"a": 1})
    writer.append({"a": 2, "b": 3})
    assert list(writer.history["b"])[0] is None
    with pytest.raises(ValueError, match=r"path \('b', slice\(-2, None, None\)\) got \[None, Ref"):
        writer.history["b"][-2:]


def test_history_follows_later_steps(writer):
    writer.append({"a": 1})
    history = writer.history
    writer.append({"a": 2})
    assert values(history["a"][:]) == [1, 2]
    writer.end_episode()
    assert len(history["a"]) == 0
    assert values(history["a"][:]) == []


def test_history_may_outlive_an_episode(writer):
    writer.append({"a": 1})
    writer.end_episode(clear_buffers=False)
    writer.append({"a": 2})
    assert values(writer.history["a"][:]) == [1, 2]


def test_history_can_be_mapped(core, writer):
    writer.append({"a": 1, "b": (2, 3)})
    trajectory = tree.map_structure(lambda column: column[-1], writer.history)
    writer.create_item("t", 1.0, trajectory)
    assert core.take()[-1] == ("CreateItem", "t", 1.0, [[Ref(1)], [Ref(2)], [Ref(3)]], [True] * 3)


def test_an_index_may_run_code_that_clears_the_history(core, writer):
    core.max_num_keep_alive_refs = 60
    for i in range(60):
        writer.append(i)
    history = writer.history
    last = slice(-50, None)

    class Clears:
        def __del__(self):
            writer.end_episode()

    threshold = gc.get_threshold()
    gc.disable()
    try:
        garbage = [Clears()]
        garbage.append(garbage)
        del garbage
        gc.set_threshold(1)
        with contextlib.suppress(ValueError):
            gc.enable()  # Before CPython 3.12, garbage is collected within the next call.
            assert len(history[last]) == 50
    finally:
        gc.enable()
        gc.set_threshold(*threshold)


# Columns.


def test_a_column_has_a_time_axis_unless_squeezed():
    refs = [Ref(np.zeros((2, 3), np.float32)), Ref(np.ones((2, 3), np.float32))]
    column = TrajectoryColumn(refs)
    assert (len(column), column.shape, column.dtype) == (2, (2, 2, 3), np.float32)
    np.testing.assert_array_equal(column.numpy()[1], np.ones((2, 3)))
    squeezed = TrajectoryColumn(refs[:1], squeeze=True)
    assert (squeezed.shape, squeezed.numpy().shape) == ((2, 3), (2, 3))


def test_columns_can_be_indexed():
    column = TrajectoryColumn([Ref(0), Ref(1), Ref(2)])
    assert (values(column[1]), column[1].is_squeezed) == ([1], True)
    assert (values(column[1:]), column[1:].is_squeezed) == ([1, 2], False)
    assert (values(column[[2, 0]]), column[[2, 0]].is_squeezed) == ([2, 0], False)
    with pytest.raises(IndexError):
        column[3]
    with pytest.raises(TypeError, match="TrajectoryColumn indices"):
        column["x"]


@pytest.mark.parametrize("refs", [[], [Ref(1), Ref(2)]], ids=len)
def test_only_single_steps_are_squeezed(refs):
    with pytest.raises(ValueError, match=f"exactly one .* got {len(refs)}"):
        TrajectoryColumn(refs, squeeze=True)


def test_columns_refuse_none():
    with pytest.raises(ValueError, match=r"at path \('x', 0\) got \[None\]"):
        TrajectoryColumn([None], path=("x", 0))


def test_expired_steps_have_no_data(history):
    column = history[:]
    next(iter(column)).expired = True
    with pytest.raises(RuntimeError, match="expired"):
        column.numpy()


@pytest.mark.parametrize("step", [{"a": 1, "b": 2}, [1, 2], {"a": (1, [2])}, (1, (2, 3)), 7])
def test_a_history_is_the_callers_own(client, step):
    """What is done to its containers is not seen by the next one."""
    with client.trajectory_writer(2) as writer:
        for _ in range(2):
            writer.append(step)
        history = writer.history
        tree.assert_same_structure(history, step)
        flat = [(path, len(leaf)) for path, leaf in tree.flatten_with_path(history)]
        if isinstance(history, (dict, list)):
            history.clear()
        if "a" in (step if isinstance(step, dict) else ()) and isinstance(step["a"], tuple):
            writer.history["a"][1].clear()
        again = tree.flatten_with_path(writer.history)
        assert [(path, len(leaf)) for path, leaf in again] == flat


def test_a_column_can_be_read_from_its_end(client):
    with client.trajectory_writer(3) as writer:
        for i in range(3):
            writer.append([i])
        assert [ref.numpy() for ref in reversed(writer.history[0])] == [2, 1, 0]
