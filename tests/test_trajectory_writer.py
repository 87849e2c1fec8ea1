"""TrajectoryWriter over a stand-in for the core's writer: structures, items, errors."""

import collections
import gc
import types

import numpy as np
import pytest
import tree
from stand_in import Ref, values

import gear_reverb
from gear_reverb import pybind
from gear_reverb.trajectory_writer import TrajectoryWriter

# Appending.


def test_leaves_are_appended_in_the_order_of_tree_flatten(core, writer):
    step = {"b": [2, 3], "a": 1}
    for _ in range(3):
        writer.append(step)
    assert core.take() == [("Append", tree.flatten(step))] * 3


def test_a_lone_leaf_is_one_column(core, writer):
    for i in range(3):
        writer.append(np.float32(i))
    assert [args for _, args in core.take()] == [[0.0], [1.0], [2.0]]
    assert values(writer.history) == [0, 1, 2]


Step = collections.namedtuple("Step", "x y")


@pytest.mark.parametrize(
    "step",
    [
        {"z": 1, "a": 2, "m": 3},
        [1, (2, [3, {"k": 4}]), ()],
        (1, 2),
        Step(x=1, y=Step(2, {"b": 3, "a": 4})),
        collections.OrderedDict(b=1, a=2),
        types.MappingProxyType({"b": 1, "a": 2}),
        {"a": {}, "b": [], "c": 1},
        {"a": "text", "b": b"bytes", "c": np.zeros((2, 2)), "d": np.int8(1), "e": True},
        {1: 1, 0: 0},
    ],
    ids=str,
)
def test_any_nest_can_be_appended_again_and_again(core, writer, step):
    for _ in range(3):
        writer.append(step)
    expected = tree.flatten(step)
    for _, row in core.take():
        assert all(actual is wanted for actual, wanted in zip(row, expected))
        assert len(row) == len(expected)
    tree.assert_same_structure(writer.history, step)


def test_new_columns_go_behind_the_old_ones(core, writer):
    writer.append({"c": 1, "a": 2})
    writer.append({"b": 3, "a": 4, "d": 5})
    writer.append({"a": 6, "c": 7})
    assert [row for _, row in core.take()] == [[2, 1], [4, None, 3, 5], [6, 7, None, None]]
    history = writer.history
    assert {name: values(history[name]) for name in history} == {
        "a": [2, 4, 6],
        "b": [None, 3, None],
        "c": [1, None, 7],
        "d": [None, 5, None],
    }


def test_structures_may_alternate(core, writer):
    for i in range(6):
        writer.append({"a": i} if i % 2 else {"a": i, "b": {"c": -i}})
    assert values(writer.history["b"]["c"])[-2:] == [-4, None]
    assert values(writer.history["a"]) == [None, 1, 2, 3, 4, 5]


def test_lists_and_tuples_may_grow(writer):
    writer.append((1, [2]))
    writer.append((1, [2, 3], 4))
    assert isinstance(writer.history, tuple)
    assert [values(h) for h in tree.flatten(writer.history)] == [
        [1, 1],
        [2, 2],
        [None, 3],
        [None, 4],
    ]


def test_none_is_no_data(core, writer):
    writer.append({"a": None, "b": 1})
    writer.append({"a": 2, "b": None})
    writer.append({"a": 3, "b": 4})
    assert [row for _, row in core.take()] == [[None, 1], [2, None], [3, 4]]


def test_none_may_stand_for_a_whole_nest(core, writer):
    writer.append(Step(1, (2, 3)))
    writer.append(Step(4, None))
    assert core.take()[-1] == ("Append", [4, None, None])


@pytest.mark.parametrize(
    "step", [{"a": {"x": 1}, "b": 2}, {"a": 1, "b": {"x": 2}}, [1, 2], 3], ids=str
)
def test_a_leaf_cannot_become_a_nest_or_the_other_way_round(core, writer, step):
    writer.append({"a": 1, "b": [2]})
    core.take()
    with pytest.raises(ValueError, match="Field"):
        writer.append(step)
    assert core.take() == []
    writer.append({"a": 1, "b": [2]})
    assert core.take() == [("Append", [1, 2])]


def test_named_tuples_keep_their_fields(writer):
    writer.append(Step(1, 2))
    with pytest.raises(ValueError, match="was a Step"):
        writer.append(collections.namedtuple("Step", "x z")(1, 2))


def test_empty_steps_count(core, writer):
    writer.append({})
    writer.append({"a": 1})
    assert core.take() == [("Append", []), ("Append", [1])]
    assert values(writer.history["a"]) == [None, 1]


def test_errors_of_the_core_name_the_path(core, writer):
    writer.append({"a": 1, "b": {"c": 2}})
    core.errors["Append"] = ValueError("Tensor of wrong dtype provided for column 1.")
    with pytest.raises(ValueError, match=r"column \('b', 'c'\)"):
        writer.append({"a": 1, "b": {"c": 2.0}})
    assert len(writer.history["a"]) == 1


# Partial steps.


def test_parts_of_a_step_share_one_index(core, writer):
    writer.append({"a": 1}, partial_step=True)
    writer.append({"b": 2}, partial_step=True)
    assert values(writer.history["a"]) == [1]
    writer.append({"c": 3})
    writer.append({"a": 4, "b": 5, "c": 6})
    assert core.take() == [
        ("AppendPartial", [1]),
        ("AppendPartial", [None, 2]),
        ("Append", [None, None, 3]),
        ("Append", [4, 5, 6]),
    ]
    assert [values(writer.history[name]) for name in "abc"] == [[1, 4], [2, 5], [3, 6]]


def test_a_column_is_given_once_per_step(core, writer):
    writer.append({"a": 1, "b": None}, partial_step=True)
    core.take()
    with pytest.raises(ValueError, match=r"\('a',\) has already been set .* got: 2"):
        writer.append({"a": 2, "b": 3})
    assert core.take() == []
    writer.append({"a": None, "b": 3})
    assert [values(writer.history[name]) for name in "ab"] == [[1], [3]]


def test_the_end_of_an_episode_ends_the_step(writer):
    writer.append({"a": 1}, partial_step=True)
    writer.end_episode(clear_buffers=False)
    writer.append({"a": 2})
    assert values(writer.history["a"]) == [1, 2]


# Items.


def test_items_are_flattened_like_nests(core, writer):
    for i in range(3):
        writer.append({"a": i, "b": -i})
        if i:
            history = writer.history
            item = {"y": [history["a"][-2:], history["b"][-1]], "x": history["a"][-1]}
            writer.create_item(table="t", priority=2.5, trajectory=item)
    items = [call for call in core.take() if call[0] == "CreateItem"]
    assert items == [
        ("CreateItem", "t", 2.5, [[Ref(i)], [Ref(i - 1), Ref(i)], [Ref(-i)]], [True, False, True])
        for i in (1, 2)
    ]


def test_items_of_one_table_may_differ(core, writer):
    writer.append({"a": 1})
    column = writer.history["a"][:]
    for trajectory, count in [({"x": column}, 1), ([column, column], 2), (column, 1), ({}, 0)]:
        writer.create_item("t", 1.0, trajectory)
        assert len(core.take()[-1][3]) == count


@pytest.mark.parametrize("make", [lambda h: {"x": h}, lambda h: {"x": 1}, lambda h: [h[:], None]])
def test_items_hold_columns_only(core, writer, make):
    writer.append(1)
    writer.create_item("t", 1.0, {"x": writer.history[:]})
    core.take()
    with pytest.raises(TypeError, match="must be `TrajectoryColumn`"):
        writer.create_item("t", 1.0, make(writer.history))
    assert core.take() == []


# Configuration, flushing, closing.


def test_known_columns_are_configured_at_once(core, writer):
    writer.append({"a": 1, "b": [2, 3]})
    core.take()
    writer.configure(("b", 1), num_keep_alive_refs=7, max_chunk_length=2)
    options = pybind.ConstantChunkerOptions(num_keep_alive_refs=7, max_chunk_length=2)
    assert core.take() == [("ConfigureChunker", 2, options)]


def test_unknown_columns_are_configured_before_their_first_step(core, writer):
    writer.configure(("b",), num_keep_alive_refs=7, max_chunk_length=None)
    writer.append({"a": 1})
    writer.append({"a": 1, "b": 2})
    writer.append({"a": 1, "b": 2})
    options = pybind.AutoTunedChunkerOptions(num_keep_alive_refs=7, throughput_weight=1.0)
    assert core.take() == [
        ("Append", [1]),
        ("ConfigureChunker", 1, options),
        ("Append", [1, 2]),
        ("Append", [1, 2]),
    ]


@pytest.mark.parametrize(
    "keep,length,message",
    [(0, None, "num_keep_alive_refs"), (2, 3, "max_chunk_length"), (2, 0, "max_chunk_length")],
)
def test_configuration_is_checked(core, writer, keep, length, message):
    with pytest.raises(ValueError, match=message):
        writer.configure(("a",), num_keep_alive_refs=keep, max_chunk_length=length)
    with pytest.raises(TypeError, match="path"):
        writer.configure("a", num_keep_alive_refs=1, max_chunk_length=1)
    assert core.take() == []


def test_flush_and_end_episode_pass_their_arguments(core, writer):
    writer.flush()
    writer.flush(3)
    writer.flush(block_until_num_items=2, timeout_ms=0)
    writer.end_episode()
    writer.end_episode(False, timeout_ms=3)
    assert core.take() == [
        ("Flush", 0, -1),
        ("Flush", 3, -1),
        ("Flush", 2, 0),
        ("EndEpisode", True, None),
        ("EndEpisode", False, 3),
    ]
    with pytest.raises(ValueError, match="block_until_num_items must be >= 0, got -1"):
        writer.flush(-1)


def test_deadlines(core, writer):
    writer.append(1)
    error = gear_reverb.DeadlineExceededError("late")
    core.errors = {"Flush": error, "EndEpisode": error}
    with pytest.raises(gear_reverb.DeadlineExceededError, match=r"^Flush call .* 0:00:00.1"):
        writer.flush(timeout_ms=100)
    with pytest.raises(gear_reverb.DeadlineExceededError, match=r"^End episode call .* 0:00:01.5"):
        writer.end_episode(timeout_ms=1500)
    assert len(writer.history) == 0


def test_other_errors_pass(core, writer):
    core.errors["Flush"] = RuntimeError("no server")
    with pytest.raises(RuntimeError, match="no server"):
        writer.flush(timeout_ms=100)


@pytest.mark.parametrize(
    "error,flushes", [(None, True), (KeyError, True), (gear_reverb.ReverbError, False)]
)
def test_a_with_block_flushes_unless_the_core_failed(core, error, flushes):
    class Outer(Exception):
        pass

    with pytest.raises(error or Outer):
        with TrajectoryWriter(core):
            if error:
                raise error("x")
        raise Outer
    assert [call[0] for call in core.take()][:1] == (["Flush"] if flushes else ["Close"])


def test_a_forgotten_writer_is_closed_once(core):
    writer = TrajectoryWriter(core)
    del writer
    gc.collect()
    assert core.take() == [("Close",)]
    writer = TrajectoryWriter(core)
    writer.close()
    del writer
    gc.collect()
    assert core.take() == [("Close",)]


def test_episode_steps_are_the_cores(core, writer):
    writer.append(1)
    assert writer.episode_steps == 1
    writer.end_episode()
    assert writer.episode_steps == 0
