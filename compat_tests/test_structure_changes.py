"""Steps may gain and lose columns; their types and shapes stay."""

import numpy as np
import pytest


@pytest.fixture
def writer(pair):
    with pair.serve().trajectory_writer(4) as writer:
        writer.append({"a": np.zeros(2, np.float32), "b": np.int32(1)})
        yield writer


def test_a_new_column_has_no_earlier_steps(writer):
    writer.append({"a": np.zeros(2, np.float32), "b": np.int32(2), "c": 5.0})
    assert {k: len(v) for k, v in writer.history.items()} == {"a": 2, "b": 2, "c": 2}
    assert writer.history["c"][-1].numpy() == 5.0
    with pytest.raises(ValueError, match="None"):
        writer.history["c"][:]


def test_a_column_left_out_has_a_gap(writer):
    writer.append({"b": np.int32(2)})
    writer.append({"a": None, "b": np.int32(3)})
    writer.append({"a": np.ones(2, np.float32)})
    a, b = writer.history["a"], writer.history["b"]
    assert len(a) == len(b) == 4
    assert a[-1].numpy().tolist() == [1, 1]
    assert b[:-1].numpy().tolist() == [1, 2, 3]
    for column, index in [(a, 1), (a, 2), (b, -1), (a, slice(None))]:
        with pytest.raises(ValueError, match="None"):
            column[index]


def test_items_over_columns_with_gaps(pair):
    client = pair.serve()
    with client.trajectory_writer(4) as writer:
        writer.append({"a": 0, "b": 0})
        writer.append({"b": 1})
        writer.append({"a": 2, "b": 2, "c": 2})
        history = writer.history
        writer.create_item(
            "t", 1.0, {"a": history["a"][[0, 2]], "b": history["b"][:], "c": history["c"][2]}
        )
    [sample] = client.sample("t", emit_timesteps=False)
    assert [leaf.tolist() for leaf in sample.data] == [[0, 2], [0, 1, 2], 2]


def test_empty_steps_count(writer):
    writer.append({})
    writer.append({"a": None})
    assert writer.episode_steps == 3


def test_nested_columns_may_join(pair):
    with pair.serve().trajectory_writer(2) as writer:
        writer.append({"a": {"x": 1}})
        writer.append({"a": {"x": 2, "y": 3}, "b": [4, 5]})
        history = writer.history
        assert history["a"]["x"][:].numpy().tolist() == [1, 2]
        assert history["a"]["y"][-1].numpy() == 3
        assert [column[-1].numpy() for column in history["b"]] == [4, 5]


@pytest.mark.parametrize(
    "value,message",
    [
        (np.zeros(2, np.float64), "dtype"),
        (np.zeros(3, np.float32), "shape"),
        (np.float32(0), "shape"),
        (np.zeros([1, 2], np.float32), "shape"),
        ("text", "dtype"),
    ],
    ids=["float64", "longer", "scalar", "one_more_axis", "string"],
)
def test_types_and_shapes_stay(writer, value, message):
    with pytest.raises(ValueError, match=message) as error:
        writer.append({"a": value, "b": np.int32(2)})
    assert "a" in str(error.value)


def test_types_and_shapes_stay_over_episodes(writer):
    writer.end_episode()
    with pytest.raises(ValueError, match="dtype"):
        writer.append({"a": np.zeros(2, np.float64)})


@pytest.mark.parametrize("step", [[1, 2], 5, {"a": {"deeper": 1}}], ids=str)
def test_another_kind_of_nest(writer, step):
    with pytest.raises((AttributeError, KeyError, TypeError, ValueError)):
        writer.append(step)
