"""What TrajectoryWriter takes as steps and as columns of items, down to the core and back."""

import copy
import pickle
import sys

import numpy as np
import pytest

from gear_reverb import pybind
from gear_reverb.trajectory_writer import TrajectoryColumn


@pytest.fixture
def client(serve):
    return serve()


def written(client, value):
    """What becomes of a step."""
    with client.trajectory_writer(num_keep_alive_refs=1) as writer:
        writer.append(value)
        stored = writer.history[-1].numpy()
        writer.create_item("t", 1.0, writer.history[-1])
    (sample,) = client.sample("t", 1, emit_timesteps=False)
    np.testing.assert_array_equal(sample.data[0], stored)
    return sample.data[0]


@pytest.mark.parametrize(
    "value",
    [
        *[0.5, float("nan"), True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, 1j],
        *[np.float32(0.5), np.int8(-3), np.bool_(True), np.float64(2), np.array(7, np.uint16)],
        *[np.arange(6).reshape(2, 3).T, np.arange(6)[::-2], np.arange(3, dtype=">i4")],
        np.zeros((0, 2)),
    ],
    ids=repr,
)
def test_values_are_stored_as_numpy_has_them(client, value):
    expected = np.asarray(value)
    stored = written(client, value)
    assert stored.dtype == expected.dtype.newbyteorder("=")
    np.testing.assert_array_equal(stored, expected)


def test_a_number_must_have_its_columns_dtype(client):
    writer = client.trajectory_writer(num_keep_alive_refs=1)
    writer.append({"a": 1.0})
    for other in (1, True, np.float32(1)):
        with pytest.raises(ValueError, match=r"\('a',\)"):
            writer.append({"a": other})
    writer.append({"a": np.float64(2)})


@pytest.mark.parametrize("value", [2**64, object(), {"a": {1}}], ids=str)
def test_values_that_cannot_be_carried(client, value):
    writer = client.trajectory_writer(num_keep_alive_refs=1)
    with pytest.raises(TypeError):
        writer.append(value)


def test_columns_can_be_made_of_references(client):
    with client.trajectory_writer(num_keep_alive_refs=4) as writer:
        for i in range(4):
            writer.append(i)
        references = list(writer.history)
        assert [int(reference.numpy()) for reference in references] == [0, 1, 2, 3]
        assert list(writer.history[1:3]) == references[1:3]
        mixed = TrajectoryColumn([references[2], references[0], references[2]])
        single = TrajectoryColumn(references[3:], squeeze=True)
        for column in (mixed, copy.copy(mixed)):
            writer.create_item("t", 1.0, [column, single])
    (sample,) = client.sample("t", 1, emit_timesteps=False)
    assert [sample.data[0].tolist(), sample.data[1].tolist()] == [[2, 0, 2], 3]


def test_nothing_is_left_of_steps_and_columns(client):
    with client.trajectory_writer(num_keep_alive_refs=2) as writer:
        value = np.zeros(3, np.float32)
        writer.append({"a": value})
        kinds = [type(writer.history["a"]), TrajectoryColumn, pybind.WeakCellRef]
        before = [sys.getrefcount(object_) for object_ in (value, None, *kinds)]
        for _ in range(5000):
            writer.append({"a": value})
            columns = [writer.history["a"][-1], writer.history["a"][-2:], writer.history["a"][[-1]]]
            assert columns
        columns = None
        after = [sys.getrefcount(object_) for object_ in (value, None, *kinds)]
    for count, earlier in zip(after, before):
        assert count - earlier < 100


def test_references_expire(client):
    writer = client.trajectory_writer(num_keep_alive_refs=2)
    writer.append(np.zeros(3, np.float32))
    column = writer.history[-1:]
    (reference,) = column
    assert (column.shape, column.dtype, reference.shape) == ((1, 3), np.float32, [3])
    assert not reference.expired and repr(reference) == "WeakCellRef"
    writer.append(np.zeros(3, np.float32))
    writer.append(np.zeros(3, np.float32))
    assert reference.expired and repr(reference) == "WeakCellRef(expired)"
    with pytest.raises(RuntimeError, match="expired"):
        column.numpy()
    with pytest.raises(ValueError, match="expired"):
        writer.create_item("t", 1.0, column)


def test_references_are_made_by_writers_only(client):
    with pytest.raises(TypeError):
        pybind.WeakCellRef()
    writer = client.trajectory_writer(num_keep_alive_refs=2)
    writer.append(1)
    for make in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            make(writer.history[-1])


@pytest.mark.parametrize(
    "column",
    [TrajectoryColumn(["x"]), TrajectoryColumn.__new__(TrajectoryColumn)],
    ids=["str", "new"],
)
def test_items_refer_to_cells_only(client, column):
    writer = client.trajectory_writer(num_keep_alive_refs=2)
    writer.append(1)
    with pytest.raises(TypeError):
        writer.create_item("t", 1.0, column)


def test_an_items_arguments_are_checked(client):
    writer = client.trajectory_writer(num_keep_alive_refs=2)
    writer.append(1)
    for table, priority in ((1, 1.0), ("t", "x"), (None, 1.0), ("t", None)):
        with pytest.raises(TypeError):
            writer.create_item(table, priority, writer.history[-1])
    writer.create_item(b"t", np.float32(1), writer.history[-1])
    writer.flush()
    with pytest.raises(TypeError):
        pybind.TrajectoryWriter.Append(object(), [1])
