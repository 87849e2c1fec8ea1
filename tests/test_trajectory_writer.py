"""TrajectoryWriter over a stand-in for the core's writer: structures, history, items, errors."""

import collections
import gc
import types

import numpy as np
import pytest
import tree

import gear_reverb
from gear_reverb import pybind
from gear_reverb.trajectory_writer import TrajectoryColumn, TrajectoryWriter


class Ref:
    """A reference to one step of one column."""

    def __init__(self, value):
        self.value = np.asarray(value)
        self.expired = False

    shape = property(lambda self: list(self.value.shape))
    dtype = property(lambda self: self.value.dtype)

    def numpy(self):
        return self.value

    def __eq__(self, other):
        return isinstance(other, Ref) and np.array_equal(self.value, other.value)

    def __repr__(self):
        return f"Ref({self.value})"


class InternalWriter:
    """Records calls; `errors` maps a method's name to what it raises."""

    def __init__(self, max_num_keep_alive_refs=5):
        self.max_num_keep_alive_refs = max_num_keep_alive_refs
        self.episode_steps = 0
        self.calls = []
        self.errors = {}

    def _call(self, name, *args):
        self.calls.append((name, *args))
        if name in self.errors:
            raise self.errors[name]

    def Append(self, data):
        self._call("Append", list(data))
        self.episode_steps += 1
        return [None if value is None else Ref(value) for value in data]

    def AppendPartial(self, data):
        self._call("AppendPartial", list(data))
        return [None if value is None else Ref(value) for value in data]

    def CreateItem(self, table, priority, py_trajectory, squeeze_column):
        self._call("CreateItem", table, priority, py_trajectory, squeeze_column)

    def ConfigureChunker(self, column, options):
        self._call("ConfigureChunker", column, options)

    def Flush(self, ignore_last_num_items, timeout_ms):
        self._call("Flush", ignore_last_num_items, timeout_ms)

    def EndEpisode(self, clear_buffers, timeout_ms):
        self._call("EndEpisode", clear_buffers, timeout_ms)
        self.episode_steps = 0

    def Close(self):
        self._call("Close")

    def take(self):
        calls, self.calls = self.calls, []
        return calls


@pytest.fixture
def core():
    return InternalWriter()


@pytest.fixture
def writer(core):
    return TrajectoryWriter(core)


def values(column):
    return [None if ref is None else ref.value.item() for ref in column]


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


# History.


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


@pytest.mark.parametrize(
    "error", [gear_reverb.DeadlineExceededError("late"), RuntimeError("Timeout exceeded")], ids=str
)
def test_deadlines(core, writer, error):
    writer.append(1)
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
