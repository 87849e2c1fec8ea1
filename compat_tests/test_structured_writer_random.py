"""Random configs and operations on a StructuredWriter of each pair, and on a model.

After the operations, all of them have inserted the same items with the same priorities in the same
order. The examples are the same in every run.

dm-reverb's StructuredWriter crashes now and then in these examples: with its client the test runs
in a process of its own, which is started again if it dies of a signal.
"""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

STEP = {"a": None, "b": None, "c": None}
NAMES = list(STEP)
LEFT_SIDES = ["step_index", "steps_since_applied", "buffer_length", "data"]


@st.composite
def nodes(draw):
    """`(column, start, stop, step)`; a start of None stands for a single step."""
    column = draw(st.integers(0, 2))
    if draw(st.booleans()):
        return column, None, -draw(st.integers(1, 3)), None
    start = -draw(st.integers(1, 4))
    stop = draw(st.sampled_from([None, *range(start + 1, 1)]))
    return column, start, stop, draw(st.sampled_from([None, 1, 2]))


@st.composite
def conditions(draw):
    """`(left, column, compare, value)`"""
    left = draw(st.sampled_from(LEFT_SIDES))
    compares = ["eq", "ne", "ge", "gt", "lt", "le", "mod_eq", "mod_ne"]
    if left == "buffer_length":  # Reverb crashes if it need not wait for a pattern's steps.
        compares = ["eq", "ge", "mod_eq"]
    return left, draw(st.integers(0, 2)), draw(st.sampled_from(compares)), draw(st.integers(0, 4))


@st.composite
def configs(draw):
    """`(nodes, conditions, at end, priority)`"""
    priority = draw(st.sampled_from([1.0, 2.5, ("td_error", 0.25, 0), ("td_error", 0.75, 2)]))
    return (
        draw(st.lists(nodes(), min_size=1, max_size=3)),
        draw(st.lists(conditions(), max_size=2)),
        draw(st.integers(0, 3)) == 0,
        priority,
    )


@st.composite
def operations(draw):
    """Parts of steps as lists of columns, and ends of episodes."""
    operations = []
    for _ in range(draw(st.integers(1, 14))):
        if draw(st.integers(0, 5)) == 0:
            operations.append(("end", draw(st.booleans())))
            continue
        left = draw(st.permutations(range(3)))
        if draw(st.booleans()):
            left = left[: draw(st.integers(0, 3))]  # Not every column has a value.
        parts = draw(st.integers(1, 2))
        for part in range(parts):
            cut = len(left) if part == parts - 1 else draw(st.integers(0, len(left)))
            operations.append(("append", left[:cut], part < parts - 1))
            left = left[cut:]
        if parts > 1 and draw(st.integers(0, 3)) == 0:
            operations.pop()  # The step stays open; only an end closes it.
            operations.append(("end", draw(st.booleans())))
    return operations


def values(column, number):
    """The value of a column at the `number`-th append: different everywhere, and small."""
    return np.int64(number * 3 + column) if column else np.float64(number) * (-1) ** number


def build(lib, config):
    structured = lib.structured
    from_nodes, from_conditions, at_end, priority = config
    step = structured.create_reference_step(STEP)
    pattern = {
        f"column_{i}": step[NAMES[column]][stop if start is None else slice(start, stop, by)]
        for i, (column, start, stop, by) in enumerate(from_nodes)
    }
    built = [build_condition(lib, *condition) for condition in from_conditions]
    if at_end:
        built.append(structured.Condition.is_end_episode())
    if isinstance(priority, tuple):
        fn = structured.td_error(priority[1], STEP, lambda step: step[NAMES[priority[2]]])
    else:
        fn = structured.constant_priority_fn(priority)
    return structured.create_config(pattern, "t", built, fn)


def build_condition(lib, left, column, compare, value):
    condition = lib.structured.Condition
    if left == "buffer_length":  # Has no builder.
        proto = lib.structured.ConditionProto
        if compare == "mod_eq":
            return proto(buffer_length=True, mod_eq={"mod": 3, "eq": value})
        return proto(buffer_length=True, **{compare: value})
    if left == "data":
        builder = condition.data(STEP)[NAMES[1 + column % 2]]
    else:
        builder = getattr(condition, left)()
    return {
        "eq": lambda: builder == value,
        "ne": lambda: builder != value,
        "ge": lambda: builder >= value,
        "gt": lambda: builder > value,
        "lt": lambda: builder < value,
        "le": lambda: builder <= value,
        "mod_eq": lambda: builder % 3 == value,
        "mod_ne": lambda: builder % 3 != value,
    }[compare]()


class Model:
    """What a StructuredWriter inserts, as plain as it can be."""

    def __init__(self, all_configs):
        self.configs = all_configs
        self.since = [0] * len(all_configs)
        self.history: list[list] = []
        self.index = -1
        self.is_open = self.has_values = False
        self.items: list[tuple] = []
        used = {node[0] for config in all_configs for node in config[0]}
        for config in all_configs:
            used |= {1 + c[1] % 2 for c in config[1] if c[0] == "data"}
        self.used = used
        self.reach = max(reach(node) for config in all_configs for node in config[0])

    def append(self, columns, partial, number):
        if not self.is_open:
            self.history.append([None] * 3)
            self.index += 1
            self.has_values = False
        self.is_open = partial
        for column in columns:
            self.history[-1][column] = values(column, number)
        if not self.has_values and self.used & set(columns):
            self.has_values = True
            self.since = [since + 1 for since in self.since]
        self.apply(at_end=False)

    def end(self, clear):
        self.apply(at_end=True)
        self.index, self.is_open, self.has_values = -1, False, False
        if clear:
            self.history.clear()

    def apply(self, at_end):
        for i, config in enumerate(self.configs):
            if config[2] == at_end and self.has_values and self.since[i] and self.is_due(i):
                self.since[i] = 0
                self.items.append((self.columns(config), self.priority(config)))

    def is_due(self, i):
        lefts = {
            "step_index": self.index,
            "steps_since_applied": self.since[i],
            "buffer_length": min(len(self.history), self.reach),
        }
        for left, column, compare, right in self.configs[i][1]:
            value = self.history[-1][1 + column % 2] if left == "data" else lefts[left]
            if value is None or not holds(int(value), compare, right):
                return False
        if len(self.history) < max(map(reach, self.configs[i][0])):
            return False
        return not any(None in steps for steps in self.columns(self.configs[i]))

    def columns(self, config):
        columns = []
        for column, start, stop, step in config[0]:
            steps = [row[column] for row in self.history]
            size = len(steps)
            picked = (
                [size + stop]
                if start is None
                else range(size + start, size + (stop or 0), step or 1)
            )
            columns.append([steps[i] for i in picked])
        return columns

    def priority(self, config):
        if not isinstance(config[3], tuple):
            return config[3]
        _, weight, column = config[3]
        for node, steps in reversed(list(zip(config[0], self.columns(config)))):
            if node[0] == column:
                errors = [abs(float(step)) for step in steps]
                return weight * max(errors) + (1 - weight) * sum(errors) / len(errors)
        return 0.0


def reach(node):
    return -(node[2] if node[1] is None else node[1])


def holds(value, compare, right):
    return {
        "eq": value == right,
        "ne": value != right,
        "ge": value >= right,
        "gt": value > right,
        "lt": value < right,
        "le": value <= right,
        "mod_eq": value % 3 == right,
        "mod_ne": value % 3 != right,
    }[compare]


def drain(client):
    size = client.size("t")
    if size == 0:
        return []
    samples = client.sample("t", size, emit_timesteps=False)
    return [
        (
            [np.atleast_1d(leaf).tolist() for leaf in sample.data],
            pytest.approx(sample.info.priority),
        )
        for sample in samples
    ]


def run(client, lib, all_configs, all_operations):
    """The items, and after each operation whether the step is open."""
    writer = client.structured_writer([build(lib, config) for config in all_configs])
    open_after = []
    for number, operation in enumerate(all_operations):
        if operation[0] == "end":
            writer.end_episode(clear_buffers=operation[1])
        else:
            step = {NAMES[c]: values(c, number) if c in operation[1] else None for c in range(3)}
            writer.append(step, partial_step=operation[2])
        open_after.append(writer.step_is_open)
    writer.flush()
    return drain(client), open_after


def check_pairs(pairs):
    clients = [(pair, pair.serve(pair.server_lib.Table.queue("t", 10_000))) for pair in pairs]
    inserted = 0

    @settings(
        max_examples=300,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(configs(), min_size=1, max_size=4), operations())
    def check(all_configs, all_operations):
        nonlocal inserted
        model, open_after = Model(all_configs), []
        for number, operation in enumerate(all_operations):
            if operation[0] == "end":
                model.end(operation[1])
            else:
                model.append(operation[1], operation[2], number)
            open_after.append(model.is_open)
        expected = [([list(map(float, c)) for c in item], p) for item, p in model.items]
        inserted += len(expected)
        for pair, client in clients:
            assert (expected, open_after) == run(
                client, pair.client_lib, all_configs, all_operations
            ), pair.name

    try:
        check()
        assert inserted > 200
    finally:
        for pair in pairs:
            pair.stop()


def test_ours_insert_what_the_model_says(all_pairs):
    check_pairs([pair for pair in all_pairs() if pair.name.startswith("ours_")])


_IN_CHILD = "GEAR_REVERB_TEST_IN_CHILD"


@pytest.mark.skipif(
    not importlib.util.find_spec("reverb"), reason="needs dm-reverb, which is not installed"
)
def test_reverbs_insert_what_the_model_says(all_pairs):
    if os.environ.get(_IN_CHILD):
        check_pairs([pair for pair in all_pairs() if pair.name.startswith("reverb_")])
        return
    test = f"{__file__}::test_reverbs_insert_what_the_model_says"
    for _ in range(5):
        child = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test],
            env={**os.environ, _IN_CHILD: "1"},
            capture_output=True,
            text=True,
        )
        if child.returncode >= 0:  # Not killed by a signal.
            break
    assert child.returncode == 0, child.stdout[-4000:] + child.stderr[-2000:]
